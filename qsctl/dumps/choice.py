"""The selection of messages in a database or a listing: by id, state, thread, type, time and content.

Decides: the meaning of the vendor's options here. Names may have wildcards; times without a date mean that time of any
day where the listing has no dates either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from qsctl.core.integration.message import MessageId, parse_id
from qsctl.dumps.hl7_fields import FieldCondition, FieldMatch, match_field
from qsctl.dumps.model import ListedMessage
from qsctl.dumps.moments import DAY_NS, DateOrder, Moment, parse_moment
from qsctl.errors import UsageError
from qsctl.profiles.listings.wildcard import matches


class IdRange(NamedTuple):
    """Ids from one to another, of the same x.y."""

    first: MessageId
    last: MessageId

    def __contains__(self, mid: object) -> bool:
        return isinstance(mid, MessageId) and self.first <= mid <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}:{self.last}"


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Short ids, from one to another: the last number of an id, whatever the two before it are."""

    first: int
    last: int

    def __contains__(self, mid: object) -> bool:
        return isinstance(mid, MessageId) and self.first <= mid.number <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}:{self.last}"


_NUMBERS: Final = re.compile(r"(\d{1,18})(?::(\d{1,18}))?")


def parse_range(text: str) -> IdRange | NumberRange:
    """Read `x.y.z` or `x.y.z1:x.y.z2`, with or without brackets, or the short forms `z` and `z1:z2`.

    Raises:
        UsageError: it is neither, its ends are of different x.y, or the last comes before the first.
    """
    if short := _NUMBERS.fullmatch(text.strip()):
        numbers = NumberRange(int(short[1]), int(short[2] or short[1]))
        if numbers.last < numbers.first:
            raise UsageError(f"{text!r} ends before it begins", remedy=f"Did you mean {numbers.last}:{numbers.first}?")
        return numbers
    first, colon, last = text.partition(":")
    ends = IdRange(parse_id(first), parse_id(last if colon else first))
    if ends.first[:2] != ends.last[:2]:
        raise UsageError(
            f"{text!r} begins and ends in different x.y", remedy="Write one range for each, as in 0.1.4:0.1.9."
        )
    if ends.last < ends.first:
        raise UsageError(f"{text!r} ends before it begins", remedy=f"Did you mean {ends.last}:{ends.first}?")
    return ends


class StateRange(NamedTuple):
    """Numbers of states from one to another."""

    first: int
    last: int


def parse_states(text: str) -> tuple[StateRange, ...]:
    """Read `11`, `1-6`, or several of them with commas.

    Raises:
        UsageError: it is no such list.
    """
    return tuple(_state_range(part, text) for part in text.split(","))


def _state_range(part: str, whole: str) -> StateRange:
    first, dash, last = (each.strip() for each in part.partition("-"))
    if not _is_state(first) or (dash and not _is_state(last)) or (dash and int(last) < int(first)):
        raise UsageError(
            f"{whole!r} is not a list of states", remedy="As in 11, 1-6 or 7,10-11; qsctl engine states lists them."
        )
    return StateRange(int(first), int(last if dash else first))


def _is_state(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5


def parse_limit(text: str, option: str, order: DateOrder) -> Moment:
    """Read the value of an option that is a date, a time of day, or both.

    Raises:
        UsageError: it is none.
    """
    try:
        return parse_moment(text, order)
    except ValueError as error:
        raise UsageError(
            f"{option} {text!r} is not a time: {error}", remedy="As in 16:52:14, 2026-11-22 or 2026-11-22T16:52:14."
        ) from None


@dataclass(frozen=True)
class Choice:
    """Conditions on a message; an empty one, or None, allows everything."""

    mids: Sequence[IdRange | NumberRange] = ()
    states: Sequence[StateRange] = ()
    source: str | None = None
    destination: str | None = None
    owner: str | None = None
    type: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    texts: Sequence[bytes] = ()
    """Octet strings that the message's data must all contain."""
    fields: Sequence[FieldCondition] = ()
    not_hl7: set[MessageId] = field(default_factory=set, compare=False)
    """Messages passed to `fits` that meet all other conditions and whose data is not HL7 v2."""

    @property
    def reads_data(self) -> bool:
        """Return whether a condition requires the data of messages."""
        return bool(self.texts or self.fields)

    @property
    def is_everything(self) -> bool:
        """Return whether there is no condition, so that every message is selected."""
        return self == Choice()

    def fits(self, message: ListedMessage) -> bool:
        """Return whether a message meets all conditions."""
        return (
            (not self.mids or any(message.mid in each for each in self.mids))
            and (not self.states or any(first <= message.state <= last for first, last in self.states))
            and (self.source is None or matches(self.source, message.source))
            and (self.destination is None or matches(self.destination, message.destination))
            and (self.owner is None or matches(self.owner, message.owner))
            and (self.type is None or message.type == self.type)
            and self._is_in_time(message.created)
            and (not self.reads_data or self._has_content(message.data, message.mid))
        )

    def _has_content(self, data: bytes | None, mid: MessageId) -> bool:
        return (
            data is not None
            and all(text in data for text in self.texts)
            and all(self._holds(data, each, mid) for each in self.fields)
        )

    def _holds(self, data: bytes, condition: FieldCondition, mid: MessageId) -> bool:
        found = match_field(data, condition)
        if found is FieldMatch.NOT_HL7:
            self.not_hl7.add(mid)
        return found is FieldMatch.HOLDS

    def _is_in_time(self, created: Moment | None) -> bool:
        if self.since is None and self.until is None:
            return True
        if created is None:
            return False
        return (self.since is None or _at(created, self.since) >= self.since.at_ns) and (
            self.until is None or _at(created, self.until) <= self._end_ns()
        )

    def _end_ns(self) -> int:
        """Count a whole second, or day, to what it ends."""
        assert self.until is not None
        at_ns = self.until.at_ns
        if self.until.has_date and at_ns % DAY_NS == 0:
            return at_ns + DAY_NS - 1
        return at_ns if at_ns % 1_000_000_000 else at_ns + 999_999_999


def _at(created: Moment, limit: Moment) -> int:
    """Return the time to compare with a limit: the time of day if either of them has no date."""
    return created.at_ns if created.has_date and limit.has_date else created.at_ns % DAY_NS
