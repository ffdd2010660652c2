"""Which application names a target means, by the rules of POSIX `fnmatch`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.admin.target import MAX_PATTERN_LENGTH, check_pattern, matches
from qsctl.errors import UsageError


@pytest.mark.parametrize(
    ("pattern", "name", "meant"),
    [
        ("MyQueuingService1", "MyQueuingService1", True),
        ("MyQueuingService*", "MyQueuingService1", True),
        ("MyQueuingService*", "MyQueuingService", True),
        ("MyQueuingService*", "myqueuingservice1", False),
        ("*", "", True),
        ("", "", True),
        ("", "a", False),
        ("?", "", False),
        ("a?c", "abc", True),
        ("*b*d", "abcd", True),
        ("*b*d", "abcde", False),
        ("**a**", "a", True),
        ("[abc]1", "b1", True),
        ("[!abc]1", "b1", False),
        ("[^abc]1", "d1", True),
        ("[a-c]", "b", True),
        ("[a-c]", "d", False),
        ("[c-a]", "b", False),
        ("[]x]", "]", True),
        ("[!]x]", "]", False),
        ("[a-]", "-", True),
        ("[[:digit:]]*", "7up", True),
        ("[[:digit:][:upper:]]", "U", True),
        ("[[:alpha:]-]", "-", True),
        ("[[:nonsense:]]", "n", False),
        ("[[.-.]]", "-", True),
        ("[[=a=]]", "a", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        (r"[\]]", "]", True),
        ("\\", "\\", True),
        ("[ab", "[ab", True),
        ("[[:digit:]", "[:d", False),
        ("a/b*", "a/b/c", True),
        (".*", ".x", True),
    ],
)
def test_a_pattern_means(pattern: str, name: str, meant: bool) -> None:
    assert matches(pattern, name) is meant


@given(st.text("ab?*", max_size=12), st.text("ab", max_size=12))
def test_stars_and_question_marks_agree_with_a_regular_expression(pattern: str, name: str) -> None:
    expression = pattern.replace("*", ".*").replace("?", ".")
    assert matches(pattern, name) is (re.fullmatch(expression, name) is not None)


@given(st.text(max_size=40), st.text(max_size=20))
def test_no_pattern_is_an_error(pattern: str, name: str) -> None:
    assert matches(pattern, name) in (True, False)


@pytest.mark.timeout(30)
def test_a_pattern_of_many_stars_is_answered_at_once() -> None:
    assert not matches("*a" * 120 + "b", "a" * 255)


def test_a_pattern_longer_than_the_wire_allows_matches_no_service_and_is_refused_by_the_client() -> None:
    longest = "*" * MAX_PATTERN_LENGTH
    assert matches(longest, "x")
    assert check_pattern(longest) == longest
    assert not matches(longest + "*", "x")
    with pytest.raises(UsageError, match="256 characters"):
        check_pattern(longest + "*")
    with pytest.raises(UsageError, match="empty"):
        check_pattern("")
