"""Help: what it says is a snapshot that is looked at, and how it says it is a rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.help_text import Parameter, help_text, leaves, parameters

SNAPSHOT = Path(__file__).with_name("help.txt")

PARAMETERS = [each for path, command in leaves() for each in parameters(path, command)]

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


def identity(each: Parameter) -> str:
    return f"{each.command} {each.name}"


def test_the_help_of_every_command_is_the_one_that_was_looked_at() -> None:
    """Make it anew with `python -m tests.cli.help_text > tests/cli/help.txt`, and read the difference."""
    assert help_text() == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize("each", PARAMETERS, ids=identity)
def test_a_help_is_a_whole_phrase(each: Parameter) -> None:
    assert re.match(r"[A-Z$0-9-]", each.help), "it begins with a capital"
    assert each.help.endswith("."), "it ends with a full stop"
    assert len(re.findall(r"\w+", each.help)) >= 3, "it makes sense without the option's name"
    assert not LOOSE_WORDS.search(each.help), "it is standard English"


@pytest.mark.parametrize("each", [each for each in PARAMETERS if not each.is_argument], ids=identity)
def test_an_option_s_help_is_a_noun_phrase(each: Parameter) -> None:
    first = each.help.split()[0].rstrip(",:").lower()
    orders = {
        "add", "choose", "compute", "create", "do", "get", "give", "go", "ignore", "keep", "list", "log", "make",
        "overwrite", "print", "put", "read", "receive", "refuse", "remove", "run", "send", "serve", "set", "show",
        "turn", "use", "wait", "write",
    }  # fmt: skip
    assert first not in orders or VERBS.fullmatch(each.help) or re.match(r"(?:Log as|Run folder)\b", each.help)
    assert first not in {"of", "a", "an", "the", "instead", "only", "how", "what", "where", "whether", "when", "its"}


@pytest.mark.parametrize(
    "each", [each for each in PARAMETERS if not each.is_argument and not each.is_flag], ids=identity
)
def test_an_option_s_help_states_its_default_or_that_there_is_none(each: Parameter) -> None:
    assert each.is_required or each.default


@pytest.mark.parametrize(
    "each", [each for each in PARAMETERS if not each.is_argument and not each.is_flag], ids=identity
)
def test_a_help_names_the_unit_of_a_quantity(each: Parameter) -> None:
    for about, unit in UNITS.items():
        if re.search(rf"\b(?:{about})\b", each.help, re.IGNORECASE) and not re.match(r"number of", each.help, re.I):
            assert re.search(unit, each.help), f"{about}: {unit}"
