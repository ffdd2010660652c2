"""Whatever a file holds: listings, or one error that names its place; never anything else, never without bound."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.declared.problems import SHOWN_MAX, InvalidFile
from qsctl.profiles.listings import read, semp, wildcard
from qsctl.profiles.listings.model import Listings
from qsctl.profiles.listings.read import read_listings
from tests.example_counts import examples

FIXTURES = sorted((Path(__file__).parents[3] / "fixtures" / "listings").iterdir())
WORDS = st.sampled_from(
    ["Client:", "Neighbor:", "Type:", "***", "Client Transmit Queues", "|", "-------+---------", "--- ---", "G-1",
     "C-1", "Conn-1", "0", "20000", "Listed from lowest", "\n", "  ", "Queue", "Length", "(Msgs)", "HWMark", "Max", "x",
     "Total Egress Discards:", "Transmit Congestion ", "Spool Over Quota", "Message VPN", "7",
     "router>", "Blocked %", "Name", "<rpc-reply>", "Uptime:", "-1"]
)  # fmt: skip


def outcome(data: bytes) -> Listings | InvalidFile:
    try:
        return read_listings(data, "f")
    except InvalidFile as error:
        assert 0 < len(error.problems) <= SHOWN_MAX
        assert all(each.file == "f" and each.message for each in error.problems)
        return error


@given(st.binary(max_size=300))
def test_any_bytes_are_listings_or_a_listing_error(data: bytes) -> None:
    outcome(data)


@given(st.lists(WORDS, max_size=60))
@settings(max_examples=examples(80))
def test_any_words_of_listings_are_listings_or_a_listing_error(words: list[str]) -> None:
    outcome(" ".join(words).encode())


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
@given(data=st.data())
@settings(max_examples=examples(20))
def test_a_changed_listing_is_a_listing_or_a_listing_error(path: Path, data: st.DataObject) -> None:
    text = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        match data.draw(st.sampled_from(["change", "cut", "remove", "repeat"])):
            case "change":
                text[at] = data.draw(st.integers(0, 255))
            case "cut":
                del text[at:]
            case "remove":
                del text[at : at + data.draw(st.integers(1, 40))]
            case _:
                text[at:at] = text[at : at + data.draw(st.integers(1, 200))]
        if not text:
            break
    outcome(bytes(text))


def error_of(text: str) -> InvalidFile:
    found = outcome(text.encode())
    assert isinstance(found, InvalidFile), found
    return found


def clients() -> str:
    return next(path for path in FIXTURES if path.name == "clients.txt").read_text(encoding="utf-8")


def read_of(text: str) -> Listings:
    found = outcome(text.encode())
    assert isinstance(found, Listings), found
    return found


def test_a_cell_that_cannot_be_read_costs_that_cell_and_is_named_with_its_line() -> None:
    text = clients().replace("|   38280 |", "|   many! |").replace("38280", "some").replace(" 4711", " -4")
    found = read_of(text)
    assert found.notes == (
        "f:20: Discards (Msgs) is not a whole number (client desk-1 D-1; found some)",
        "f:38: Delivered (Msgs) is not a whole number (client desk-2 D-1; found -4)",
    )
    whole = read_of(clients())
    for queues, others in zip(found.clients, whole.clients, strict=True):
        for queue, other in zip(queues.queues, others.queues, strict=True):
            unread = {"desk-1 D-1": "discarded_messages", "desk-2 D-1": "delivered_messages"}
            field = unread.get(f"{queues.name} {queue.queue}")
            assert queue == (other if field is None else dataclasses.replace(other, **{field: None}))


def test_what_cannot_be_read_is_counted_where_there_is_much_of_it() -> None:
    found = read_of("\n\n".join(clients().replace(" 0 |", " x |") for _ in range(20)))
    assert len(found.notes) == SHOWN_MAX + 1
    assert "more that could not be read" in found.notes[-1]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("   C-1 |       0 |       0 |        1 |    20000 |        0 |             400\n", "", 24, "the table is cut"),
        ("   D-3 |", "   X-9 |", 22, "there is no queue X-9"),
        ("   D-3 |", "   D-2 |", 22, "queue D-2 occurs a second time"),
        ("HWMark ", "Colour ", 16, "the columns of Client Transmit Queues are not the known ones"),
        ("Client Transmit Queues", "Server Receive Queues", 15, "this is another table"),
        ("Slow Subscriber:       Yes", "Slow Subscriber:       maybe", 8, "Slow Subscriber is not Yes or No"),
        ("  Message VPN:           markets\n", "  what is this\n", 6, "this line cannot be understood"),
        ("  Message VPN:           markets\n", "  Type: x\n", 6, "Type occurs a second time"),
        ("Client:                  desk-1", "Client:", 3, "Client has no name"),
        ("router1> show", "D-1 | 7 |", 1, "1 line belongs to no listing"),
    ],
)
def test_what_is_wrong_is_noted_with_its_line_and_the_rest_is_read(old: str, new: str, line: int, words: str) -> None:
    found = read_of(clients().replace(old, new, 1))
    assert any(note.startswith(f"f:{line}: {words}") for note in found.notes), found.notes
    assert "desk-2" in {client.name for client in found.clients}


def test_a_client_without_a_table_is_noted() -> None:
    assert "no table of queues follows Client: desk-1" in error_of("Client: desk-1\n  Type: Primary\n").message
    found = read_of("Client: a\n  Type: Primary\n" + clients()[clients().index("Client:") :])
    assert any("no table of queues follows Client: a" in note for note in found.notes)
    assert found.clients == read_of(clients()).clients


def test_a_file_that_is_too_large_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "LIMIT_BYTES", 100)
    assert "the file is too large" in error_of("x" * 101).message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("<rpc-reply", "this is not XML"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><rpc-reply>&b;</rpc-reply>", "document type declaration"),
        ("<rpc-reply><execute-result code='fail' reason='none'/></rpc-reply>", "the broker answers with a failure"),
        ("<rpc-reply><parse-error>schema</parse-error></rpc-reply>", "the broker refused the request"),
        ("<rpc-reply><rpc><show><version/></show></rpc></rpc-reply>", "has no known listing"),
        ("<html/>", "this is not a reply of SEMP v1"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_a_reply_is_reported(text: str, words: str) -> None:
    assert words in error_of(text).message


def test_problems_of_several_pages_are_noted_together_with_the_lines_of_the_file() -> None:
    text = next(path for path in FIXTURES if path.suffix == ".xml" and "two" in path.name).read_text(encoding="utf-8")
    bad = text.replace("<length-work>2500", "<length-work>wide").replace("<length-msgs>0<", "<length-msgs>none<")
    lines = [number for number, line in enumerate(bad.splitlines(), 1) if ">wide<" in line or ">none<" in line]
    found = read_of(bad)
    assert [int(note.split(":")[1]) for note in found.notes if "is not a whole number" in note] == lines
    assert [client.name for client in found.clients] == [client.name for client in read_of(text).clients]


def test_a_page_that_is_cut_costs_that_page() -> None:
    text = next(path for path in FIXTURES if path.suffix == ".xml" and "two" in path.name).read_text(encoding="utf-8")
    found = read_of(text[: text.rindex("</primary-virtual-router>")])
    assert [client.name for client in found.clients] == ["desk-1"]
    assert any("this is not XML" in note for note in found.notes)


def test_too_many_pages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semp, "MOST_PAGES", 3)
    assert "too many pages" in error_of("<rpc-reply/>" * 4).message


@pytest.mark.slow(beyond=1)
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    [
        "Client: a ", "Client: a\n", "a b\n--- ---\n", "G-1 | ", "*** ", "router> ", "a\n- -\n", "|", "Listed ",
        "Total Egress Discards: 1 ", "Client: a\nTotal Egress Discards: 1\n", "<rpc-reply/>",
        "name blocked%\n---- --------\n" + "x\n" * 50, "Client: a *** ",
        "Message VPN: a\n", "Queue: a\nMessage VPN: b\n", "Client: a\n*** Egress Discards ***\n", "a\b", "a:  1 2\n",
        "--More--\r", "--More--\n", "\x1b[K", "\x1b]", "\x1b[", "# CLI command: show queue a\n", "*** Ingress x ***\n",
        "Spool Over Quota: 1\n*** Ingress ***\n", "Maximum Spool Usage:  1 MB\n",
        "Queue Name  Messages Spooled\n----  ----\n" + "a   1\nb\n" * 20,
    ],
)  # fmt: skip
def test_a_long_text_of_one_piece_comes_to_an_end(piece: str) -> None:
    outcome((piece * (200_000 // len(piece))).encode())


@given(st.text("ab?*", max_size=8), st.text("ab", max_size=8))
@settings(max_examples=examples(80))
def test_wildcards_match_as_in_the_broker(pattern: str, name: str) -> None:
    def plain(p: str, n: str) -> bool:
        if not p:
            return not n
        if p[0] == "*":
            return plain(p[1:], n) or bool(n and plain(p, n[1:]))
        return bool(n) and p[0] in {"?", n[0]} and plain(p[1:], n[1:])

    assert wildcard.matches(pattern, name) is plain(pattern, name)


def test_a_wildcard_of_many_stars_is_quick() -> None:
    assert not wildcard.matches("*a" * 200 + "b", "a" * 2000)
