"""Help: what it says is a snapshot that is looked at, and how it says it is a rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.cli.help_text import Parameter, help_text, leaves, parameters

SNAPSHOT = Path(__file__).with_name("help.txt")

PARAMETERS = [each for path, command in leaves() for each in parameters(path, command)]
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

VERBS = re.compile(r"(?:print|list) .* and exit\.", re.I)
"""An option that does something else than the command and ends it is an order, as everywhere."""


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


def test_options_helps_are_noun_phrases() -> None:
    orders = {
        "add", "choose", "compute", "create", "do", "get", "give", "go", "ignore", "keep", "list", "log", "make",
        "overwrite", "print", "put", "read", "receive", "refuse", "remove", "run", "send", "serve", "set", "show",
        "turn", "use", "wait", "write",
    }  # fmt: skip
    no_nouns = {"of", "a", "an", "the", "instead", "only", "how", "what", "where", "whether", "when", "its"}

    def is_noun_phrase(each: Parameter) -> bool:
        first = each.help.split()[0].rstrip(",:").lower()
        is_order = first in orders and not re.match(r"(?:Log as|Run folder)\b", each.help)
        return first not in no_nouns and (not is_order or VERBS.fullmatch(each.help) is not None)

    assert offenders(is_noun_phrase, OPTIONS) == []


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
