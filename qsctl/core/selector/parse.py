"""The parser of selectors: from text to an expression tree [QS 5.2.2].

Decides: the bounds on a selector, and the texts of errors. The parser is table-driven, so nesting needs no recursion;
it is built for the first selector and then kept. `_build.py` builds and checks the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from qsctl.core.selector._build import Misfit, SelectorBuilder
from qsctl.core.selector.expression import EVERYTHING, Expression
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from lark import Lark
    from lark.parsers.lalr_interactive_parser import InteractiveParser

MAX_SIZE_BYTES: Final = 4096
MAX_TOKENS: Final = 512

_SPOKEN: Final[dict[str, str]] = {
    "FIELD": "a field such as @sample_queue_status",
    "NAME": "a status such as SENT_MESSAGE_STATUS",
    "INTEGER": "an integer",
    "BOOLEAN": "TRUE or FALSE",
    "STRING": "a string in single quotes",
    "OCTETS": "&hex(…)",
    "RELATION": "= or <>",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
    "VBAR": "'|'",
    "_AND": "AND",
    "_OR": "OR",
    "_NOT": "NOT",
    "$END": "the end",
}
"""The grammar's terminals in words for people, in the order in which an error lists them."""


class SelectorSyntaxError(UsageError):
    """A syntax error in a selector.

    Args:
        text: the selector.
        offset: position of the error in it, from 0; `line` and `column` count from 1.
        problem: what is wrong at that position.
        expected: what is allowed at that position, as text.
        remedy: what to write instead; by default it lists `expected`.
    """

    def __init__(self, text: str, offset: int, problem: str, expected: Iterable[str] = (), *, remedy: str = "") -> None:
        self.line = text.count("\n", 0, offset) + 1
        self.column = offset - text.rfind("\n", 0, offset)
        self.expected = tuple(expected)
        place = f"line {self.line}, column {self.column}" if "\n" in text else f"column {self.column}"
        if self.expected and not remedy:
            *most, last = self.expected
            remedy = f"Expected {', '.join(most)} or {last}." if most else f"Expected {last}."
        super().__init__(f"selector, {place}: {problem}", remedy=remedy)


def parse_selector(text: str) -> Expression:
    """Parse a selector; an empty one matches every sample.

    Raises:
        SelectorSyntaxError: it is too long, too deep, not a sentence of the grammar, refers to an unknown field or
            status, or compares terms of two types.
    """
    if len(text.encode("utf-8", "replace")) > MAX_SIZE_BYTES:
        raise SelectorSyntaxError(
            text, MAX_SIZE_BYTES, "it is longer than 4 KiB", remedy="Select in several steps with shorter selectors."
        )
    if not text.strip():
        return EVERYTHING
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    parser = _parser().parse_interactive(text)
    try:
        for count, token in enumerate(parser.iter_parse(), start=1):
            if count > MAX_TOKENS:
                raise SelectorSyntaxError(
                    text, token.start_pos or 0, f"it has more than {MAX_TOKENS} words and signs", remedy="Shorten it."
                )
        built = parser.feed_eof()  # type: ignore[no-untyped-call]
        return cast("Expression", built.node)
    except UnexpectedCharacters as error:
        at = cast("int", error.pos_in_stream)
        raise SelectorSyntaxError(text, at, f"{_word_at(text, at)!r} is not allowed here", _spoken(parser)) from None
    except UnexpectedToken as error:
        ended = error.token.type == "$END"
        at = len(text) if ended else error.token.start_pos or 0
        problem = "it ends too early" if ended else f"{str(error.token)!r} is not allowed here"
        raise SelectorSyntaxError(text, at, problem, _spoken(parser)) from None
    except Misfit as misfit:
        raise SelectorSyntaxError(text, misfit.offset, misfit.problem, remedy=misfit.remedy) from None


@cache
def _parser() -> Lark:
    from lark import Lark, Transformer

    # The builder's methods are called as rules are recognized: no parse tree is made and walked.
    builder = cast("Transformer[object, object]", SelectorBuilder())
    return Lark.open_from_package(__package__, "grammar.lark", parser="lalr", transformer=builder)


def _spoken(parser: InteractiveParser) -> list[str]:
    terminals: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    return [spoken for terminal, spoken in _SPOKEN.items() if terminal in terminals]


def _word_at(text: str, offset: int) -> str:
    words = text[offset : offset + 40].split(maxsplit=1)
    return words[0] if words else text[offset : offset + 1]
