"""What is printed is read back the same, in each form, alone and one form after another."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.dumps.model import ListedMessage, ListingForm
from qsctl.dumps.payload_text import payload_octets, payload_text
from qsctl.dumps.read import read_messages
from qsctl.dumps.write import listing
from tests.dumps.drawn import MESSAGES
from tests.dumps.listed import as_listed
from tests.example_counts import examples


def printed(messages: Sequence[ListedMessage], form: ListingForm, *, expanded: bool = False) -> str:
    return "".join(f"{line}\n" for line in listing(messages, form, expanded=expanded))


def read(text: str, encoding: str = "utf-8") -> list[ListedMessage]:
    return list(read_messages(io.BytesIO(text.encode(encoding)), "f", with_data=True))


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("form", ListingForm)
@settings(max_examples=examples(40, 400), deadline=None)
@given(messages=st.lists(MESSAGES, max_size=4), expanded=st.booleans())
def test_a_printed_listing_reads_back_the_same(
    form: ListingForm, messages: list[ListedMessage], expanded: bool
) -> None:
    assert read(printed(messages, form, expanded=expanded)) == [as_listed(each, form) for each in messages]


@settings(max_examples=examples(20, 400), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ListingForm), st.lists(MESSAGES, max_size=2)), min_size=1, max_size=4))
def test_listings_one_after_the_other_read_back_the_same(parts: list[tuple[ListingForm, list[ListedMessage]]]) -> None:
    text = "".join(printed(messages, form) for form, messages in parts)
    assert read(text) == [as_listed(each, form) for form, messages in parts for each in messages]


@settings(max_examples=examples(20, 400), deadline=None)
@given(st.lists(MESSAGES, max_size=2), st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]))
def test_a_byte_order_mark_names_the_encoding(messages: list[ListedMessage], encoding: str) -> None:
    assert read(printed(messages, ListingForm.EXTENDED), encoding) == [
        as_listed(each, ListingForm.EXTENDED) for each in messages
    ]


@given(st.binary(max_size=80))
def test_data_becomes_one_printable_line_and_back(data: bytes) -> None:
    text = payload_text(data)
    assert text.isascii()
    assert text.isprintable()
    assert payload_octets(text) == data


def test_data_keeps_the_escapes_of_hl7() -> None:
    assert payload_text(b"OBX|a\\.br\\b\\T\\\r") == r"'OBX|a\.br\b\T\\x0d'"
    assert payload_octets(r"'OBX|a\.br\b\T\\x0d'") == b"OBX|a\\.br\\b\\T\\\r"


@pytest.mark.parametrize(("form", "heading", "each"), [(ListingForm.SHORT, 6, 1), (ListingForm.LONG, 8, 8)])
@settings(max_examples=examples(10, 400), deadline=None)
@given(messages=st.lists(MESSAGES, max_size=4))
def test_a_listing_has_the_lines_that_scripts_count(
    form: ListingForm, heading: int, each: int, messages: list[ListedMessage]
) -> None:
    assert len(list(listing(messages, form))) == heading + each * len(messages) + 2


def test_the_long_form_has_its_columns_where_scripts_cut_them() -> None:
    (message,) = read("06:12:40 [0.0.605048] P D N 5120 101 594 adt_in lab_out\n")
    row = list(listing([message], ListingForm.LONG))[9]
    assert row[0:8] == "06:12:40"
    assert row[8:23].strip(" []") == "0.0.605048"
    assert (row[24], row[26], row[28]) == ("P", "D", "N")
    assert (row[35:41].strip(), row[41:48].strip(), row[48:].strip()) == ("101", "594", "adt_in")
