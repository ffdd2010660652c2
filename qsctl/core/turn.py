"""The turn of a service: the order in which a driver works with an engine, its streams and its peers.

`Turn` is a state machine without I/O around `ServiceEngine`. It decides everything between an incoming message and an
outgoing one: which messages the engine receives together, how far the engine may run ahead of the disk, and which
message may leave now. A driver owns threads, files, peers and the clock, and nothing else. The daemon, the processes of
sessions, the embedded service and the simulator all step this class: the simulator runs the code of the live service.

The contract, in order. Each pass of a driver's loop looks like this::

    turn.receive(messages)                       # received messages, or () when a deadline is due
    while turn.step(clock()):                    # the engine receives a part and does the due work
        pass
    if not sync_is_in_progress and (group := turn.to_write()) is not None:
        if group.changes_queues:
            found = open_streams_of_created_queues()         # they may hold samples of an earlier run
        for batch in batches_by_stream(group):
            storage.append(batch.stream, batch.first_index, batch.records)
        storage.sync()                           # now, later, or in another thread
        if group.changes_queues:
            adopt(engine, found)
        for ready in group.turns:
            for batch in ready.batches:
                turn.durable(batch.stream, batch.last_index)
    for released in turn.to_send():
        transport.send(released.messages)
        report(released.events)
    wait_until(turn.next_deadline(), or_something_comes, or_the_sync_is_over)

- **Receive.** Messages wait in order of arrival until `step` hands them to the engine, in parts that end
  with a command that creates or deletes queues: the samples which an earlier run left in the files of a queue must be
  in it before others are [QS 2.14.2], and a queue that is deleted and created again has new files, which it gets only
  once the former ones are gone. A command that moves samples between queues is a part, and a turn, of its own: where
  the records end in the middle of it, each sample is in one of the queues, which needs the order of its batches. A
  command for a queue that cannot be stored or offered is refused before the engine receives it, see `Admit`. A consumer
  that left begins a part of its own: samples that have not left for it yet never will, and their delivery is not a
  failed one, see `ConsumerLeft.unsent`.
- **Step** does nothing while the turn has to wait for the disk: when `TURNS_AHEAD_MAX` turns or `RECORDS_AHEAD_MAX`
  records wait for it (back-pressure), or behind a change of queues. `waits_for_disk` is true then; the driver waits for
  its sync and continues.
- **Write.** A stream's records have consecutive indexes, from 1, and are appended in this order; those of different
  streams in any order, but that a dead letter must be durable no later than the removal from its queue, and a change of
  the configuration no earlier than the records before it. Of a turn that `moves_samples` they are appended in the
  order of its batches, and no file is synced before those in front of it. Everything that gathered during one sync is
  one group, for a sync takes as long for one record as for hundreds. A group that `changes_queues` is one turn alone,
  and so is one that moves samples; all before it is durable.
- **Durable.** Streams are reported one by one, in any order, each as far as it is committed: synced here for a stream
  of this service alone. (A replicated stream is committed by a quorum; it is reported when that is known, and only
  what rests on it waits.) Report a group that changes queues once the samples that were found are in the engine.
- **Send.** A message leaves once the record that it rests on is committed, independently of other streams. Messages of
  one stream leave in the order in which the engine gave them; when nothing waits, all do. Events leave with the last
  message of their turn, and turns in their order.
- **A store that fails** is the driver's business: it removes from the messages of the group those that rest on the
  failed stream, rolls the engine's queue back to its store, and reports the group as durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, Protocol, TypeAlias

from qsctl.core.admin.command import (
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    MoveSamples,
    UpdateQueue,
)
from qsctl.core.events import Event
from qsctl.core.messages import CommandReply, CommandRequest, ConsumerLeft, Inbound, Outbound, is_for
from qsctl.core.ready import Input, Ready, StreamName
from qsctl.core.records import (
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    Record,
    SubscriberCreated,
    SubscriberDeleted,
)
from qsctl.instant import Nanoseconds

TURNS_AHEAD_MAX: Final = 64
"""Number of turns that may wait for the disk before the engine waits too (back-pressure)."""

RECORDS_AHEAD_MAX: Final = 8_000
"""Number of records that may gather for the next group; they are written in one operation, which delays other work."""

Admit: TypeAlias = Callable[[CommandRequest], CommandReply | None]
"""Return the refusal of a command whose queues could not be stored or offered; None: the engine answers it."""

_DIVIDING: Final = frozenset({CommandRequest, ConsumerLeft})
_QUEUE_OF = attrgetter("queue")
_CHANGING = CreateQueue | CreateSubscriber | DeleteQueue | DeleteSubscriber | UpdateQueue
_CHANGES = frozenset({QueueChanged, QueueCreated, QueueDeleted, SubscriberCreated, SubscriberDeleted})


class Stepped(Protocol):
    """The state machine that a turn steps: a `ServiceEngine`, or a `Member` of a replication cluster around one."""

    def receive_all(self, now: Nanoseconds, messages: Iterable[Inbound], /) -> None:
        """Process messages in order."""

    def advance(self, now: Nanoseconds, /) -> None:
        """Do the work that is due."""

    def take_ready(self) -> Ready:
        """Return all output since the last call."""

    def next_deadline(self) -> Nanoseconds | None:
        """Return the instant at which `advance` has work to do; None: only a message can change anything."""


class Group(NamedTuple):
    """Turns that are written and synced together. The driver may change their records and messages in place."""

    turns: Sequence[Ready]
    changes_queues: bool = False


class Released(NamedTuple):
    """Messages and events of one turn that may be sent and reported.

    `service_records` are the configuration changes of that turn, see `Ready`.
    """

    messages: list[Outbound]
    events: list[Event]
    service_records: list[Record]
    inputs: Sequence[Input] = ()


def admit_all(_request: CommandRequest) -> None:
    """Admit every command."""
    return


class Turn:
    """The turns of one engine; the module's docstring describes the driver's part.

    Args:
        engine: the engine to step. The driver restores it before the first turn.
        admit: called with each command that changes queues, before the engine receives it.
        turns_ahead_max: maximum number of turns that wait for the disk.
        records_ahead_max: maximum number of records that gather for the next group.
    """

    def __init__(
        self,
        engine: Stepped,
        admit: Admit = admit_all,
        *,
        turns_ahead_max: int = TURNS_AHEAD_MAX,
        records_ahead_max: int = RECORDS_AHEAD_MAX,
    ) -> None:
        self.engine = engine
        self.admit = admit
        self._turns_ahead_max = turns_ahead_max
        self._records_ahead_max = records_ahead_max
        self._parts: deque[Sequence[Inbound]] = deque()
        self._gathering: list[Ready] = []
        self._gathers_foreign = False
        """Whether a gathered message rests on a record of another turn, so that it need not wait for its own turn's."""
        self._gathered_record_count = 0
        self._change: Ready | None = None
        """A turn that created or deleted queues, or moved samples, until it is released."""
        self._is_change_written = False
        self._written: deque[Ready] = deque()
        """Turns that were given to the driver and are not entirely released, in order."""
        self._committed: dict[StreamName, int] = {}
        """Commit index of each stream with uncommitted records; all other streams are entirely committed."""
        self._last: dict[StreamName, int] = {}
        """Last index of each of these streams."""
        self._has_progress = False
        self._released: list[Released] = []

    def receive(self, messages: Sequence[Inbound] = ()) -> None:
        """Append messages to those that wait to be stepped; an empty sequence makes `step` do the due work."""
        if not _DIVIDING.isdisjoint(map(type, messages)):
            self._parts.extend(_parts_of(messages))
        else:
            self._parts.append(messages)

    def step(self, now: Nanoseconds) -> bool:
        """Let the engine process the next part and the due work; return False if none waits or the disk is behind."""
        if not self._parts or self.waits_for_disk:
            return False
        part = self._parts.popleft()
        if part and type(part[0]) is ConsumerLeft:
            part = [self._withdraw(part[0]), *part[1:]]
        last = part[-1] if part else None
        refusal = self.admit(last) if isinstance(last, CommandRequest) and _is_changing(last) else None
        engine = self.engine
        engine.receive_all(now, part if refusal is None else part[:-1])
        if _moves_samples(last):
            self._parts.appendleft(())  # the due work is done once this is durable
        else:
            engine.advance(now)
        ready = engine.take_ready()
        if refusal is not None:
            ready.messages.append(refusal)
        self._enter(ready)
        return True

    @property
    def waits_for_disk(self) -> bool:
        """Return whether `step` does nothing until more records are durable."""
        return (
            self._change is not None
            or len(self._gathering) + len(self._written) > self._turns_ahead_max
            or self._gathered_record_count > self._records_ahead_max
        )

    @property
    def is_idle(self) -> bool:
        """Return whether all received messages were stepped, all output is durable and was returned by `to_send`."""
        return not (self._parts or self._gathering or self._change or self._written or self._released)

    def to_write(self) -> Group | None:
        """Return the group to write and sync next; None: there is none, or not before more is durable."""
        if self._gathering:
            group = Group(self._gathering)
            self._gathering = []
            self._gathers_foreign = False
            self._gathered_record_count = 0
        elif self._change is not None and not self._written and not self._is_change_written:
            group = Group([self._change], changes_queues=not self._change.moves_samples)
            self._is_change_written = True
        else:
            return None
        self._written.extend(group.turns)
        self._has_progress = True  # the driver inserts payloads: then messages that rest on nothing may leave
        return group

    def durable(self, stream: StreamName, index: int) -> None:
        """Record that a stream's records are committed up to this index."""
        last = self._last.get(stream)
        if last is None:
            return
        if index >= last:
            del self._last[stream], self._committed[stream]
        else:
            self._committed[stream] = max(index, self._committed[stream])
        self._has_progress = True

    def to_send(self) -> list[Released]:
        """Return all output that may be sent and was not returned before: whole turns, and messages of others."""
        written = self._written
        while written and self._is_committed(written[0]):
            ready = written.popleft()
            self._release(ready)
            if ready is self._change:
                self._change, self._is_change_written = None, False
        if self._has_progress:
            for ready in written:
                self._release_free(ready)
            if self._gathers_foreign:
                for ready in self._gathering:
                    self._release_free(ready)
        self._has_progress = False
        released, self._released = self._released, []
        return released

    def next_deadline(self) -> Nanoseconds | None:
        """Return the instant at which `receive(())` and `step` have work to do; a past instant means now.

        None: only a message or the disk changes anything.
        """
        return None if self.waits_for_disk else self.engine.next_deadline()

    def _withdraw(self, left: ConsumerLeft) -> ConsumerLeft:
        """Remove unsent deliveries to a consumer that is gone; return the message with their positions."""
        unsent: list[int] = []
        waiting = [each.messages for each in (*self._written, *self._gathering)]
        for messages in (*(each.messages for each in self._released), *waiting):
            gone = [each for each in messages if is_for(each, left)]
            if gone:
                messages[:] = [each for each in messages if not is_for(each, left)]
                unsent += (position for each in gone for position in each.positions())
        return left.with_unsent(unsent) if unsent else left

    def _enter(self, ready: Ready) -> None:
        """Append a turn to those that gather, and release what rests on nothing."""
        batches = ready.batches
        if not (batches or ready.messages or ready.events or ready.inputs):
            return
        for batch in batches:
            self._committed.setdefault(batch.stream, batch.first_index - 1)
            self._last[batch.stream] = batch.last_index
        if not ready.may_lack_payloads:
            if not self._last and not self._gathering and not self._written:
                self._release(ready)  # it rests on nothing, and nothing is before it
                return
            if not {batch.stream for batch in batches}.issuperset(map(_QUEUE_OF, ready.messages)):
                self._release_free(ready)
                self._gathers_foreign = True
        if ready.moves_samples or not _CHANGES.isdisjoint(map(type, ready.service_records)):
            self._change = ready
        else:
            self._gathering.append(ready)
            self._gathered_record_count += ready.record_count

    def _release_free(self, ready: Ready) -> None:
        """Release the messages of a turn that rest on committed records only."""
        committed = self._committed
        waiting = [each for each in ready.messages if each.rests_on > committed.get(each.queue, each.rests_on)]
        if len(waiting) < len(ready.messages):
            free = [each for each in ready.messages if each.rests_on <= committed.get(each.queue, each.rests_on)]
            self._released.append(Released(free, [], []))
            ready.messages[:] = waiting

    def _release(self, ready: Ready) -> None:
        if ready.messages or ready.events or ready.batches or ready.inputs:
            self._released.append(Released(ready.messages, ready.events, ready.service_records, ready.inputs))

    def _is_committed(self, ready: Ready) -> bool:
        committed = self._committed
        return all(
            batch.stream not in committed or batch.last_index <= committed[batch.stream] for batch in ready.batches
        )


def _is_changing(request: CommandRequest) -> bool:
    return isinstance(request.command, _CHANGING)


def _moves_samples(message: Inbound | None) -> bool:
    return isinstance(message, CommandRequest) and isinstance(message.command, MoveSamples)


def _parts_of(messages: Sequence[Inbound]) -> Iterator[Sequence[Inbound]]:
    """Split messages into parts.

    A command that creates or deletes queues ends a part, a consumer that left begins one, and a command that moves
    samples is a part by itself.
    """
    start = 0
    for at, message in enumerate(messages):
        is_alone = _moves_samples(message)
        if start < at and (is_alone or type(message) is ConsumerLeft):
            yield messages[start:at]
            start = at
        if is_alone or (isinstance(message, CommandRequest) and _is_changing(message)):
            yield messages[start : at + 1]
            start = at + 1
    if start < len(messages):
        yield messages[start:]
