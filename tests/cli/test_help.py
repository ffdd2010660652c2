"""Help: what it says is a snapshot that is looked at, and how it says it is a rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from qsctl.cli.help import _command_tree as command_tree
from tests.cli.help_text import Parameter, help_text

SNAPSHOT = Path(__file__).with_name("help.txt")

PARAMETERS = [each for command in command_tree.commands() for each in command.parameters]
OPTIONS = [each for each in PARAMETERS if not each.is_argument]
VALUED = [each for each in OPTIONS if not each.is_flag]

LOOSE_WORDS = re.compile(
    r"\b(who|whom|told|tells?|takes?|taken|took|says?|said|asks?|asked|nobody|somebody|settled?)\b", re.I
)
"""Words that stand for many things: see the glossary of qsctl/README.md."""

UNITS = {
    r"duration|lease|longest wait|longest stay|time between|time from|windows of": (
        r"a duration such as|in seconds|infinite"
    ),
    r"size of|length of a message|bytes": r"in bytes",
    r"fill level": r"in percent",
    r"confidence level|probability": r"between 0 and 1",
}
"""What a help is about, and how it names the unit of the value."""


def test_the_help_of_every_command_is_the_one_that_was_looked_at() -> None:
    """Make it anew with `python -m tests.cli.help_text > tests/cli/help.txt`, and read the difference."""
    assert help_text() == SNAPSHOT.read_text(encoding="utf-8")


def offenders(rule: Callable[[Parameter], bool], among: Iterable[Parameter] = PARAMETERS) -> list[str]:
    return [f"{each.command} {each.name}: {each.help}" for each in among if not rule(each)]


def test_helps_are_whole_phrases() -> None:
    assert offenders(lambda each: bool(re.match(r"[A-Z$0-9-]", each.help))) == [], "they begin with a capital"
    assert offenders(lambda each: each.help.endswith(".")) == [], "they end with a full stop"
    assert offenders(lambda each: len(re.findall(r"\w+", each.help)) >= 3) == [], "they make sense without the name"
    assert offenders(lambda each: not LOOSE_WORDS.search(each.help)) == [], "they are standard English"


ORDERS = frozenset({
    "accept", "add", "choose", "compute", "count", "create", "delete", "do", "export", "get", "give", "go", "ignore",
    "interrupt", "keep", "leave", "let", "list", "load", "log", "make", "overwrite", "print", "put", "read", "receive",
    "refresh", "refuse", "reject", "remove", "replace", "reset", "run", "select", "send", "serve", "set", "show",
    "skip", "split", "start", "treat", "turn", "use", "wait", "write",
})  # fmt: skip
"""Verbs with which the help of a switch begins. Of those that are nouns, too, `NOUNS` has the helps."""

NOUNS = re.compile(r"(?:Log as|Run folder)\b")


def is_order(text: str) -> bool:
    return text.split()[0].rstrip(",:").lower() in ORDERS


def test_helps_of_options_with_values_are_noun_phrases() -> None:
    no_nouns = {"of", "a", "an", "the", "instead", "only", "how", "what", "where", "whether", "when", "its"}

    def is_noun_phrase(each: Parameter) -> bool:
        first = each.help.split()[0].rstrip(",:").lower()
        return first not in no_nouns and (not is_order(each.help) or NOUNS.match(each.help) is not None)

    assert offenders(is_noun_phrase, VALUED) == []


def test_helps_of_switches_are_imperative_sentences() -> None:
    switches = [each for each in OPTIONS if each.is_flag]
    assert offenders(lambda each: is_order(each.help), switches) == []


def test_options_helps_state_their_default_or_that_there_is_none() -> None:
    assert offenders(lambda each: bool(each.is_required or each.default), VALUED) == []


@pytest.mark.parametrize(("about", "unit"), UNITS.items())
def test_helps_name_the_unit_of_a_quantity(about: str, unit: str) -> None:
    quantities = [
        each for each in VALUED
        if re.search(rf"\b(?:{about})\b", each.help, re.I) and not re.match(r"number of", each.help, re.I)
    ]  # fmt: skip
    assert quantities
    assert offenders(lambda each: bool(re.search(unit, each.help)), quantities) == []
