"""The messages of a group's queues to clients, kept until they may leave.

Decides: on which entry a message rests. Without synchronized assignment a delivery may rest on the sample's own entry
[QS 7.1.1.3]: while many samples wait for nothing but their assignment. While few do, it rests on the assignment as with
synchronization, so that a new master knows exactly what was sent. None leaves before the master has committed an entry
of its own epoch.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

import msgspec

from qsctl.core.high_availability._log import count_of
from qsctl.core.messages import (
    EPOCH_SHIFT,
    FLAGS_MASK,
    AckResponse,
    ConsumerLeft,
    Delivery,
    Outbound,
    RunAccepted,
    RunDelivery,
    WriteAcknowledgment,
    is_for,
)
from qsctl.core.records import Enqueued, EnqueuedRun, QueueStreamRecord, SendsAhead

_RESTS_ON = itemgetter(0)

AHEAD_COUNT: Final = 4
"""Of samples that were stored before they were assigned: this number between two heartbeats starts sending ahead."""


class Clients:
    """The messages of one replica.

    Args:
        synchronizes: whether a delivery waits until its assignment is committed.
    """

    def __init__(self, *, synchronizes: bool) -> None:
        self._synchronizes = synchronizes
        self._waiting: list[tuple[int, int, Outbound]] = []
        """By the entry that each rests on, and among those of one in the order in which they came."""
        self._serial = 0
        self._released: list[Outbound] = []
        self._enqueued_at: dict[tuple[str, int], int] = {}
        """The entries that are not committed, by queue and position: what a delivery rests on at least."""
        self._runs_enqueued_at: dict[str, deque[tuple[int, int, int]]] = {}
        """Entries of runs, by queue: the first position, the last one, and its entry, in the order of the log."""
        self.own_epoch_index = 0
        """The first entry of the master's own epoch."""
        self._epoch_of_deliveries = 0
        self._sends_ahead = False
        self._ahead_from_index: int | None = None
        """The entry that allows to send ahead, until it is committed."""
        self._stored_before_count = 0

    def lead(self, epoch: int, index: int) -> None:
        """Send deliveries, as the master of an epoch whose first entry this is."""
        self.own_epoch_index = index
        self._epoch_of_deliveries = (epoch & FLAGS_MASK) << EPOCH_SHIFT
        self._sends_ahead = not self._synchronizes
        self._ahead_from_index = None
        self._stored_before_count = 0

    def change_of_pace(self) -> bool | None:
        """Return whether to begin, or to cease, to send ahead, by what was sent since the last call; None: neither."""
        count, self._stored_before_count = self._stored_before_count, 0
        is_worth_it = not self._synchronizes and count >= AHEAD_COUNT
        return None if is_worth_it is (self._sends_ahead or self._ahead_from_index is not None) else is_worth_it

    def send_no_more_ahead(self) -> None:
        """Let each delivery from now on rest on its assignment."""
        self._sends_ahead, self._ahead_from_index = False, None

    def note_entries(self, first_index: int, records: Sequence[QueueStreamRecord]) -> None:
        """Know where the master's samples are in the log."""
        if self._synchronizes:
            return
        index = first_index
        for record in records:
            if type(record) is Enqueued:
                self._enqueued_at[record.queue, record.position] = index
            elif type(record) is EnqueuedRun:
                ahead_count = record.count - 1
                runs = self._runs_enqueued_at.setdefault(record.queue, deque())
                runs.append((record.position, record.position + ahead_count, index + ahead_count))
            elif type(record) is SendsAhead and record.is_allowed:
                self._ahead_from_index = index
            index += count_of(record)

    def note_commit(self, records: Sequence[QueueStreamRecord]) -> None:
        """Forget them again."""
        for record in records:
            if type(record) is Enqueued:
                self._enqueued_at.pop((record.queue, record.position), None)
            elif type(record) is EnqueuedRun and (runs := self._runs_enqueued_at.get(record.queue)):
                last_position = record.position + record.count - 1
                while runs and runs[0][1] <= last_position:
                    runs.popleft()

    def _own_entry(self, queue: str, position: int) -> int:
        """Return the entry, of those that are not committed, with which a sample was enqueued, or a later one that was
        appended with it; 0: it is committed.
        """
        if index := self._enqueued_at.get((queue, position), 0):
            return index
        for first, last, index in reversed(self._runs_enqueued_at.get(queue, ())):
            if first <= position:
                return index if position <= last else 0
        return 0

    def hold(self, message: Outbound) -> None:
        """Keep a message until what it rests on is committed."""
        rests_on = message.rests_on
        if isinstance(message, Delivery | RunDelivery):
            if not self._synchronizes and message.position:  # an end of the queue has none
                positions = message.positions()
                own_entry = self._own_entry(message.queue, positions[-1])
                self._stored_before_count += 0 if own_entry else len(positions)
                if self._sends_ahead:
                    rests_on = own_entry
            rests_on = max(rests_on, self.own_epoch_index)
        self._serial += 1
        waiting = self._waiting
        if waiting and rests_on < waiting[-1][0]:
            insort(waiting, (rests_on, self._serial, message))
        else:
            waiting.append((rests_on, self._serial, message))

    def release(self, message: Outbound) -> None:
        """Let a message leave; a delivery contains its epoch."""
        if type(message) is Delivery:
            flags = message.flags | self._epoch_of_deliveries
            self._released.append(msgspec.structs.replace(message, rests_on=0, flags=flags))
        elif type(message) is RunDelivery:
            epoch = self._epoch_of_deliveries
            flags, last_flags = message.flags | epoch, message.last_flags | epoch
            self._released.append(msgspec.structs.replace(message, rests_on=0, flags=flags, last_flags=last_flags))
        else:
            self._released.append(msgspec.structs.replace(message, rests_on=0))

    def commit(self, index: int) -> None:
        """Let leave what rests on entries up to here."""
        if self._ahead_from_index is not None and index >= self._ahead_from_index:
            self._sends_ahead, self._ahead_from_index = True, None
        waiting = self._waiting
        if not waiting or waiting[0][0] > index:
            return
        free_count = bisect_right(waiting, index, key=_RESTS_ON)
        for _, _, message in waiting[:free_count]:
            self.release(message)
        del waiting[:free_count]

    def withdraw(self, left: ConsumerLeft) -> ConsumerLeft:
        """Withdraw deliveries that have not left for a consumer that is gone; return the message with their
        positions.
        """
        unreleased = (each for _, _, each in self._waiting)
        unsent = [
            position for each in (*unreleased, *self._released) if is_for(each, left) for position in each.positions()
        ]
        if not unsent:
            return left
        self._waiting = [each for each in self._waiting if not is_for(each[2], left)]
        self._released = [each for each in self._released if not is_for(each, left)]
        return left.with_unsent(unsent)

    def forget_from(self, index: int) -> None:
        """Forget what rests on entries that were taken back."""
        self._waiting = [each for each in self._waiting if each[0] < index]

    def step_down(self) -> None:
        """Forget all but acceptances: another replica decides what is delivered, and may not know what was answered.

        An accepted sample is in this log. Whatever becomes of the entry, the answer follows it.
        """
        self._released = [each for each in self._released if not isinstance(each, Delivery | RunDelivery)]
        self._enqueued_at.clear()
        self._runs_enqueued_at.clear()
        self.send_no_more_ahead()
        self._waiting = [each for each in self._waiting if _is_acceptance(each[2])]

    def pop_released(self) -> list[Outbound]:
        """Return what may leave, in order."""
        released, self._released = self._released, []
        return released

    @property
    def has_released(self) -> bool:
        """Return whether something may leave."""
        return bool(self._released)


def _is_acceptance(message: Outbound) -> bool:
    if type(message) is WriteAcknowledgment:
        return message.response == AckResponse.ACCEPTED
    return type(message) is RunAccepted
