"""Lists of Tcl: words as Tcl itself splits them, lines, and everything that is no list named and passed over."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.netconfig.tcl import TclText, TclTrouble


def words(text: str) -> tuple[list[str], list[TclTrouble]]:
    troubles: list[TclTrouble] = []
    source = TclText(text, troubles.append)
    return [source.value(each) for each in source.words(0, len(text))], troubles


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n\t ", []),
        ("a b  c", ["a", "b", "c"]),
        ("a {b c} d", ["a", "b c", "d"]),
        ("{} {{}} {a {b {c}}}", ["", "{}", "a {b {c}}"]),
        ('"a b" c', ["a b", "c"]),
        (r'"a \" b" {a \} b} a\ b', ['a " b', r"a \} b", "a b"]),
        (r"\x41 \u00e4 \101 \t", ["A", "ä", "A", "\t"]),
        ("{a \\\n   b}", ["a \\\n   b"]),
        ("a\\\n b", ["a b"]),
        ("[exec x] $y", ["[exec", "x]", "$y"]),
        (r"\x01 \u2028", ["\ufffd", "\ufffd"]),
    ],
)
def test_words_are_split_as_tcl_splits_them(text: str, expected: list[str]) -> None:
    assert words(text) == (expected, [])


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("a {b", "brace is not closed", 2),
        ("a {b {c}", "brace is not closed", 2),
        ('a "b', "quotation mark is not closed", 2),
        ("{a}b c", "directly behind", 3),
        ('"a"b c', "directly behind", 3),
        ("{a\\}", "brace is not closed", 0),
    ],
)
def test_what_is_no_list_is_named_with_its_place(text: str, message: str, at: int) -> None:
    _, troubles = words(text)
    assert [(message in each.message, each.at) for each in troubles] == [(True, at)]


@given(st.text(alphabet='ab{}"\\ \n\t$[]u0x', max_size=40))
def test_any_text_ends_and_words_are_in_order(text: str) -> None:
    source = TclText(text, lambda _: None)
    found = list(source.words(0, len(text)))
    assert all(0 <= each.start <= each.end <= len(text) for each in found)
    assert [each.start for each in found] == sorted(each.start for each in found)
    for each in found:
        source.value(each)
        source.keyed(each)
        assert 1 <= source.line_of(each.start) <= text.count("\n") + 1


def test_texts_that_tcl_accepts_are_split_as_it_does() -> None:
    tkinter = pytest.importorskip("tkinter")
    tcl: Any = tkinter.Tcl()
    count = 0

    @given(
        st.lists(
            st.sampled_from(["p", "q", " ", "\n", "\\\n ", "{", "}", '"', "\\", "\\{", "{a b}", '"a b"', "$[", "\t"])
        )
    )
    def compare(parts: list[str]) -> None:
        nonlocal count
        text = "".join(parts)
        try:
            tcl.setvar("given", text)
            expected = [tcl.eval(f"lindex $given {at}") for at in range(int(tcl.eval("llength $given")))]
        except tkinter.TclError:
            return
        count += 1
        found, troubles = words(text)
        assert troubles == []
        assert found == expected

    compare()
    assert count > 5


def test_lists_that_tcl_writes_are_read_back() -> None:
    tkinter = pytest.importorskip("tkinter")
    tcl: Any = tkinter.Tcl()

    @given(st.lists(st.text(alphabet='ab{}"\\ \n\t$[];#', max_size=8), max_size=5))
    def compare(given_words: list[str]) -> None:
        for at, word in enumerate(given_words):
            tcl.setvar(f"w{at}", word)
        text = tcl.eval("list " + " ".join(f"$w{at}" for at in range(len(given_words))))
        assert words(text) == (given_words, [])

    compare()


def test_keys_are_found_without_regard_to_case_and_the_first_of_two_counts() -> None:
    troubles: list[TclTrouble] = []
    source = TclText("{Key a} {KEY b} {LIST {x {y z}}} {EMPTY {}} {FLAG}", troubles.append)
    keyed = source.keyed(next(source.words(0, 0), None) or _whole(source))
    assert (keyed.value("key".upper()), keyed.value("EMPTY"), keyed.value("NONE", "d")) == ("a", "", "d")
    assert [text for text, _ in keyed.words("LIST")] == ["x", "y z"]
    assert troubles == []


def _whole(source: TclText) -> Any:
    from qsctl.netconfig.tcl import TclWord

    return TclWord(0, len(source.text), "{")


@pytest.mark.parametrize(("text", "message"), [("a", "no pair"), ("{}", "no pair"), ("{K a b}", "several words")])
def test_what_is_no_pair_is_named(text: str, message: str) -> None:
    troubles: list[TclTrouble] = []
    source = TclText(text, troubles.append)
    source.keyed(_whole(source))
    assert [message in each.message for each in troubles] == [True]


def test_a_line_is_that_of_the_file_however_deep() -> None:
    text = "\n" * 70_000 + "{A {\n  {B {\n\n   {C deep} } } } }"
    source = TclText(text, lambda _: None)
    outer = source.keyed(_whole(source))
    inner = outer.keyed("A").keyed("B")
    assert (outer.line_of("A"), inner.line_of("C"), inner.value("C")) == (70_001, 70_004, "deep")
