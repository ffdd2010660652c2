"""The tree of a sample selector [QS 5.2.2] and its canonical text.

Frozen values that compare by content; parsing the text of a tree gives an equal tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Final, TypeAlias, assert_never

from qsctl.identity import sequence_number_pair


class Field(StrEnum):
    """The metadata fields that a selector may refer to."""

    WRITER_GUID = "@original_sample_identity.writer_guid.value"
    SEQUENCE_NUMBER = "@original_sample_identity.sequence_number"
    STATUS = "@sample_queue_status"


class StatusMask(IntFlag):
    """Statuses of a sample in its queue; a sample has one, a selector may list several.

    UNDELIVERED: Enqueued or Assigned. SENT: with a consumer. DELIVERED: acknowledged and not yet removed.
    """

    UNDELIVERED_MESSAGE_STATUS = 1
    SENT_MESSAGE_STATUS = 2
    DELIVERED_MESSAGE_STATUS = 4


class Relation(StrEnum):
    """The relation between two compared terms."""

    EQUAL = "="
    NOT_EQUAL = "<>"


@dataclass(frozen=True, slots=True)
class SequenceNumber:
    """A sequence number `(high, low)`, as one number of 64 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class Octets:
    """An octet array `&hex(…)`: the left-most pair of digits is the octet at index 0."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Integer:
    """A decimal or hexadecimal integer."""

    value: int


@dataclass(frozen=True, slots=True)
class Boolean:
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class Text:
    """A string in single quotes, which cannot contain a single quote."""

    value: str


Term: TypeAlias = Field | StatusMask | SequenceNumber | Octets | Integer | Boolean | Text


@dataclass(frozen=True, slots=True)
class TermComparison:
    """A comparison of two terms of one type.

    `@sample_queue_status = A | B` is true if the sample's status is one of the mask; `<>` is its negation.
    """

    left: Term
    relation: Relation
    right: Term

    def __str__(self) -> str:
        return f"{_term_text(self.left)} {self.relation} {_term_text(self.right)}"


@dataclass(frozen=True, slots=True)
class Not:
    """A negation: true if its operand is false."""

    operand: Expression

    def __str__(self) -> str:
        return f"NOT {_operand_text(self.operand, (TermComparison, Not))}"


@dataclass(frozen=True, slots=True)
class And:
    """A conjunction: true if all operands are; without operands always true."""

    operands: tuple[Expression, ...]

    def __str__(self) -> str:
        return " AND ".join(_operand_text(each, (TermComparison, Not)) for each in self.operands)


@dataclass(frozen=True, slots=True)
class Or:
    """A disjunction: true if at least one operand is."""

    operands: tuple[Expression, ...]

    def __str__(self) -> str:
        return " OR ".join(_operand_text(each, (TermComparison, Not, And)) for each in self.operands)


Expression: TypeAlias = TermComparison | Not | And | Or

EVERYTHING: Final = And(())
"""The expression of an empty selector, which matches every sample."""

_LONG_MIN: Final = -(2**31)
_LONG_MAX: Final = 2**31 - 1


def _operand_text(operand: Expression, bare: tuple[type, ...]) -> str:
    return str(operand) if isinstance(operand, bare) else f"({operand})"


def _term_text(term: Term) -> str:
    match term:
        case Field():
            return term.value
        case StatusMask():
            return " | ".join(status.name for status in StatusMask if status in term and status.name)
        case SequenceNumber(value):
            high, low = sequence_number_pair(value)
            return f"({high}, {low})"
        case Octets(value):
            return f"&hex({value.hex().upper()})"
        case Integer(value):
            return f"{value}" if _LONG_MIN <= value <= _LONG_MAX else f"{value}L"
        case Boolean(value):
            return "TRUE" if value else "FALSE"
        case Text(value):
            return f"'{value}'"
        case _:
            assert_never(term)
