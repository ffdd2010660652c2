"""The evaluation of a selector for a sample, and the identities that a selector requires [QS 5.2.2]."""

from __future__ import annotations

from typing import Final, TypeAlias, assert_never

from qsctl.core.selector.expression import (
    And,
    Expression,
    Field,
    Not,
    Octets,
    Or,
    Relation,
    SequenceNumber,
    StatusMask,
    Term,
    TermComparison,
)
from qsctl.identity import Guid, SampleIdentity

MAX_ALTERNATIVES: Final = 4096
"""Maximum number of (GUID, sequence number) pairs in `identities_of`; with more the queue is scanned."""

_Pin: TypeAlias = tuple[bytes | None, int | None]
"""The writer's GUID and sequence number that a sample must have; None: any."""


def matches(expression: Expression, identity: SampleIdentity, status: StatusMask) -> bool:
    """Return whether a selector matches a sample with this identity and this single status.

    The recursion is at most as deep as the nesting that the parser accepts.
    """
    match expression:
        case TermComparison(left, relation, right):
            return _equal(left, right, identity, status) is (relation is Relation.EQUAL)
        case Not(operand):
            return not matches(operand, identity, status)
        case And(operands):
            return all(matches(operand, identity, status) for operand in operands)
        case Or(operands):
            return any(matches(operand, identity, status) for operand in operands)
        case _:
            assert_never(expression)


def identities_of(expression: Expression) -> frozenset[SampleIdentity] | None:
    """Return all identities that a matching sample can have; None: any, so the queue must be scanned.

    A queue looks these identities up and calls `matches` for each, so that selecting one sample costs no scan.
    """
    pins = _pins(expression, True)
    if pins is None:
        return None
    identities = set()
    for guid, number in pins:
        if guid is None or number is None:
            return None
        identities.add(SampleIdentity(Guid(guid), number))
    return frozenset(identities)


def _equal(left: Term, right: Term, identity: SampleIdentity, status: StatusMask) -> bool:
    if isinstance(right, Field):
        left, right = right, left
    if left is right:
        return True
    # Plain integers: `&` of two flags makes a new flag, which costs more than all the rest.
    if left is Field.STATUS:
        return isinstance(right, StatusMask) and int.__and__(status, right) != 0
    if left is Field.SEQUENCE_NUMBER:
        return isinstance(right, SequenceNumber) and right.value == identity.sequence_number
    if left is Field.WRITER_GUID:
        return isinstance(right, Octets) and right.value == identity.writer_guid
    return left == right


def _pins(expression: Expression, wanted: bool) -> frozenset[_Pin] | None:
    """Return the identities for which `expression` can evaluate to `wanted`, as alternatives; None: any."""
    match expression:
        case TermComparison(left, relation, right):
            if (relation is Relation.EQUAL) is not wanted:
                return None
            if isinstance(right, Field):
                left, right = right, left
            if left is Field.WRITER_GUID and isinstance(right, Octets):
                return frozenset({(right.value, None)})
            if left is Field.SEQUENCE_NUMBER and isinstance(right, SequenceNumber):
                return frozenset({(None, right.value)})
            return None
        case Not(operand):
            return _pins(operand, not wanted)
        case And(operands):
            return _all_pins(operands, wanted) if wanted else _any_pins(operands, wanted)
        case Or(operands):
            return _any_pins(operands, wanted) if wanted else _all_pins(operands, wanted)
        case _:
            assert_never(expression)


def _any_pins(operands: tuple[Expression, ...], wanted: bool) -> frozenset[_Pin] | None:
    alternatives: set[_Pin] = set()
    for operand in operands:
        pins = _pins(operand, wanted)
        if pins is None:
            return None
        alternatives |= pins
    return frozenset(alternatives)


def _all_pins(operands: tuple[Expression, ...], wanted: bool) -> frozenset[_Pin] | None:
    pins: frozenset[_Pin] | None = None
    for operand in operands:
        more = _pins(operand, wanted)
        if more is None:
            continue
        if pins is None:
            pins = more
        elif len(pins) * len(more) <= MAX_ALTERNATIVES:
            # Dropping a conjunct would only widen the answer: that is what happens beyond the bound.
            pins = frozenset(both for one in pins for other in more if (both := _both(one, other)) is not None)
    return pins


def _both(one: _Pin, other: _Pin) -> _Pin | None:
    guid = one[0] if other[0] is None else other[0]
    number = one[1] if other[1] is None else other[1]
    contradiction = (one[0] not in (None, guid)) or (one[1] not in (None, number))
    return None if contradiction else (guid, number)
