"""Payloads as people and scripts see them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.cli.administer.get_results import instant_text
from qsctl.cli.output.payloads import ContentReader, shown


@pytest.mark.parametrize(
    ("payload", "content", "encoding"),
    [
        (b"hello", "hello", "text"),
        (b"", "", "text"),
        ("Grüße\n".encode(), "Grüße\n", "text"),
        (b"\xff\x00", "/wA=", "base64"),
        (b"\x1b[2J", "G1sySg==", "base64"),
        (None, None, None),
    ],
)
def test_text_is_shown_as_text_and_octets_as_base64(
    payload: bytes | None, content: str | None, encoding: str | None
) -> None:
    assert ContentReader().read(payload) == (content, encoding)


@given(st.binary(max_size=100))
def test_the_shown_content_gives_the_payload_back(payload: bytes) -> None:
    content, encoding = ContentReader().read(payload)
    assert isinstance(content, str)
    assert payload == (content.encode() if encoding == "text" else base64.b64decode(content))


@given(st.binary(max_size=200))
def test_a_table_cell_is_one_printable_line(payload: bytes) -> None:
    cell = shown(*ContentReader().read(payload))
    assert cell.isprintable()
    assert len(cell) <= 60


def test_a_cell_marks_unread_content_and_where_it_is_cut() -> None:
    assert shown(None, None) == "(on disk)"
    assert shown("x" * 100, "text") == "x" * 59 + "…"
    assert shown("a\nb", "text") == "a\\nb"
    assert shown({"id": 7}, "json") == '{"id": 7}'


def test_an_instant_is_iso_8601_in_utc() -> None:
    assert instant_text(0) == "1970-01-01T00:00:00Z"
    assert instant_text(1_700_000_000_123_456_789) == "2023-11-14T22:13:20.123456Z"
    assert instant_text(2**63 - 1).startswith("2262-04-11T")
    assert instant_text(2**80) == ""
