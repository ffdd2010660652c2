"""GET of a queue's samples, spread over several turns [QS 5.4.6].

Decides: the number of samples examined in a turn. A queue may hold millions of samples, and the service continues with
other work between the turns. Samples that leave the queue meanwhile are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from qsctl.core.admin.reply import MessageData, MessageStatus, Reply, ReturnCode
from qsctl.core.admin.resolve import short_name
from qsctl.core.hosted_service import HostedService
from qsctl.core.queue.sample import Sample, SampleState
from qsctl.core.selector.expression import Expression, StatusMask
from qsctl.core.selector.matches import identities_of, matches
from qsctl.errors import NotFound, Refused
from qsctl.identity import NIL_INCARNATION, Incarnation, incarnation_text
from qsctl.instant import Nanoseconds
from qsctl.resource import ResourceIdentifier, ResourceKind

REPLIES_AT_ONCE: Final = 32
"""Maximum number of samples returned in a turn: each costs some 20 µs on its way to the wire."""

LOOKED_AT_AT_ONCE: Final = 1_000
"""Maximum number of samples examined in a turn, for selectors that match few."""

_STATUSES: Final[dict[SampleState, MessageStatus]] = {
    SampleState.SENT: MessageStatus.SENT,
    SampleState.DELIVERED: MessageStatus.DELIVERED,
}
"""Every other state of a held sample is UNDELIVERED: no consumer has it."""

_MASKS: Final = {status: StatusMask(1 << status) for status in MessageStatus}


def message_status(state: SampleState) -> MessageStatus:
    """Return the status under which selectors and replies present a held sample."""
    return _STATUSES.get(state, MessageStatus.UNDELIVERED)


def is_selected(sample: Sample, expression: Expression) -> bool:
    """Return whether a selector matches a sample in its present state."""
    return matches(expression, sample.original_identity, _MASKS[message_status(sample.state)])


def candidates(
    host: HostedService, queue: ResourceIdentifier, expression: Expression, after_position: int = 0
) -> Iterator[Sample]:
    """Return a superset of the samples behind a position that a selector can match, in queue order.

    If the selector requires given identities, they are looked up in the queue's index; else, and for dead-letter
    queues, whose index has other identities, all samples behind the position are returned.
    """
    pinned = identities_of(expression)
    if pinned is None or queue.kind is ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE:
        return host.samples(queue, after_position)
    found = (host.sample(queue, identity) for identity in pinned)
    behind = (each for each in found if each is not None and each.position > after_position)
    return iter(sorted(behind, key=lambda sample: sample.position))


class SampleReading:
    """One GET of samples in progress.

    Every reply but the last is marked as intermediate, so the latest sample is always kept back until it is known
    whether another follows.

    Args:
        host: the service that commands read and change.
        queue: one of its queues.
        expression: selects the samples to return.
        count: maximum number of samples; 0: all.
        after_position: only samples behind this position are returned.
        incarnation: creation of the queue to which the position belongs; nil: the present one.

    Raises:
        Refused: the position belongs to an earlier queue of this name.
    """

    waits_for_room = True
    """Whether it pauses while outgoing replies are backed up, so that the samples read do not accumulate in memory."""

    def __init__(
        self,
        host: HostedService,
        queue: ResourceIdentifier,
        expression: Expression,
        count: int = 0,
        after_position: int = 0,
        incarnation: Incarnation = NIL_INCARNATION,
    ) -> None:
        self._host = host
        self._queue = queue
        self._name = short_name(queue)
        self._incarnation = host.queue(queue).incarnation
        if NIL_INCARNATION != incarnation != self._incarnation:
            raise Refused(
                f"position {after_position} is of a queue {self._name} that is gone: it was incarnation "
                f"{incarnation_text(incarnation)}, and {incarnation_text(self._incarnation)} has its name now",
                remedy="Read the queue from its beginning.",
            )
        self._expression = expression
        self._candidates = candidates(host, queue, expression, after_position)
        self._wanted_count = count or -1
        self._kept_back: Sample | None = None
        self._is_under_way = False
        self.is_over = False
        """Whether the last reply was returned."""

    def go_on(self, _now: Nanoseconds) -> list[Reply]:
        """Return the next replies, possibly none."""
        if self._is_under_way and self._kept_back is not None:
            self._kept_back = self._wanted(self._kept_back)
            self._wanted_count += self._kept_back is None
        replies: list[Reply] = []
        looked_at_count = 0
        for candidate in islice(self._candidates, LOOKED_AT_AT_ONCE):
            looked_at_count += 1
            sample = self._wanted(candidate)
            if sample is None:
                continue
            if self._kept_back is not None:
                replies.append(self._reply(self._kept_back))
            self._kept_back = sample
            self._wanted_count -= 1
            if not self._wanted_count or len(replies) == REPLIES_AT_ONCE:
                break
        else:
            self.is_over = looked_at_count < LOOKED_AT_AT_ONCE
        self.is_over = self.is_over or not self._wanted_count
        if self.is_over:
            replies.append(self._last_reply())
        elif not self._is_under_way:
            # The queue changes between turns, so a live iterator over it would fail.
            self._candidates = (
                self._host.samples(self._queue, candidate.position)
                if identities_of(self._expression) is None
                else iter(tuple(self._candidates))
            )
            self._is_under_way = True
        return replies

    def _wanted(self, candidate: Sample) -> Sample | None:
        """Return a candidate as it is now, if it is held and selected."""
        if not self._is_under_way:
            return candidate if is_selected(candidate, self._expression) else None
        try:
            sample = self._host.present(self._queue, candidate)
        except NotFound:
            return None
        return sample if sample is not None and is_selected(sample, self._expression) else None

    def _reply(self, sample: Sample) -> Reply:
        origin = sample.dead_letter
        return Reply(
            ReturnCode.OK,
            body=MessageData(
                self._name,
                sample.position,
                message_status(sample.state),
                sample.original_identity,
                sample.payload,
                sample.size_bytes,
                sample.enqueued_at_ns,
                sample.attempts,
                sample.redelivered,
                "" if origin is None else origin.queue,
                "" if origin is None else origin.reason.name,
                sample.flags,
                sample.source_guid,
                sample.related_source_guid,
                sample.related_identity,
                sample.related_reader_guid,
                sample.expires_at_ns,
                self._incarnation,
                0 if origin is None else origin.position,
                NIL_INCARNATION if origin is None else origin.incarnation,
            ),
        )

    def _last_reply(self) -> Reply:
        if self._kept_back is not None:
            return self._reply(self._kept_back)
        which = "other sample of queue" if self._is_under_way else "sample of queue"
        return Reply(ReturnCode.OK, f"no {which} {self._name} is selected")
