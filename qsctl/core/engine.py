"""A whole queuing service instance as one state machine [QS 2]: the seam to every driver.

Decides: which queue a message is for, what a service remembers across a restart, and when it wants to be called again.
What becomes of samples is the queues'; commands are answered in `admin`, counters are kept in `statistics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, unique
from typing import Final, assert_never, get_args

import msgspec

from qsctl.core.admin.answers import Answers
from qsctl.core.events import BounceReason, SampleBounced
from qsctl.core.hosted_service import HostedService
from qsctl.core.messages import (
    Acknowledgment,
    CommandReply,
    CommandRequest,
    ConsumerAvailability,
    ConsumerJoined,
    ConsumerLeft,
    Inbound,
    ProducerLeft,
    QueueName,
    Write,
)
from qsctl.core.queue.outbox import OpenStream
from qsctl.core.queue.restore import Capture, QueueReplay, complete_moves, leave_moved, resume, snapshot, without
from qsctl.core.queue.settings import UNLIMITED
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.ready import Ready
from qsctl.core.records import (
    MovedFrom,
    QueueRecord,
    Record,
    ServiceRecord,
    ServiceStarted,
)
from qsctl.core.settings import ServiceSettings
from qsctl.identity import NIL_INCARNATION, DrawIncarnation, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.resource import ResourceIdentifier


@unique
class Journal(Enum):
    """The queues that write records."""

    PERSISTENT_ONLY = "persistent_only"
    """Those whose persistence is PERSISTENT: a running service [QS 2.14.2]."""
    REPLICATED = "replicated"
    """Those, and the replicated ones, whose log their records are [QS 7.1]: a member of a replication cluster."""
    EVERYTHING = "everything"
    """All: a service that lives in a state directory between commands."""


_OF_THE_SERVICE: Final = frozenset(get_args(ServiceRecord))


class ServiceEngine:
    """A queuing service instance: messages in, a `Ready` batch out.

    A driver's turn: `receive` each message, `advance`, `take_ready`; it stores the records before it sends a message.
    Time is an argument, and does not advance where it would run backwards.

    Args:
        settings: the configuration; a stored one replaces it, see `replay`.
        started_at: the instant statistics count from.
        draw: gives the service, and each creation of a queue or subscriber, its incarnation.
        journal: which queues write records.
        payload_size_bytes_max: a larger payload is refused (a transport's own bound); -1: none.
        stops_on_command: whether SHUTDOWN is obeyed; a daemon is stopped where it was started [QS 5.4.9].

    Raises:
        Refused: the configuration holds two queues of one name or topic, or impossible dead letters.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        started_at: Nanoseconds,
        draw: DrawIncarnation,
        journal: Journal,
        payload_size_bytes_max: int = UNLIMITED,
        stops_on_command: bool = True,
    ) -> None:
        self._now = started_at
        self.hosted = HostedService(
            settings,
            started_at,
            draw=draw,
            journals_everything=journal is Journal.EVERYTHING,
            replicates=journal is Journal.REPLICATED,
            payload_size_bytes_max=payload_size_bytes_max if payload_size_bytes_max >= 0 else INFINITE_NS,
            stops_on_command=stops_on_command,
        )
        """The queues and their statistics: what administration sees and changes."""
        self.ignored_record_count = 0
        """Replayed records that had no effect: their queue, or their sample's beginning, is not there."""
        self.answers = Answers(self.hosted, self._send_reply)
        """The commands in progress."""
        self._replays: dict[str, QueueReplay] = {}
        self._completed: dict[QueueName, list[MovedFrom]] = {}
        """By queue the places that samples left for others at a restart, for a crash had left them there. Should the
        disk refuse that, what its store has of them does not count either."""
        self._has_stored_configuration = False
        self._has_started = False
        self._refused_count = 0

    # A driver's turn.

    def receive(self, now: Nanoseconds, message: Inbound) -> None:
        """Take one message. What it leads to is in the next `take_ready`.

        Refuses, counted in `refused_message_count` and otherwise without effect:
            A message to a queue or topic that is not hosted; an acknowledgment of what its sender was never sent;
            availability where the queue does not listen.
        """
        self.receive_all(now, (message,))

    def receive_all(self, now: Nanoseconds, messages: Iterable[Inbound]) -> None:
        """Take messages in order, as `receive` does each.

        Hundreds come in a turn, nearly all of them samples of one topic and acknowledgments: what these have in common
        is looked up once.
        """
        now = self._no_earlier(now)
        if self.hosted.latest_move is not None:
            self.hosted.forget_latest_move()
        participant = topic_name = queue_name = None
        takers: Sequence[SharedReaderQueue] = ()
        by_topic, by_name = self.hosted.by_topic, self.hosted.by_name
        queue: SharedReaderQueue | None = None
        for message in messages:
            if type(message) is Write:
                if message.topic_name is not topic_name or message.participant is not participant:
                    participant, topic_name = message.participant, message.topic_name
                    takers = by_topic.get((participant, topic_name), ())
                if not takers:
                    self._refused_count += 1
                    continue
                # Each queue takes its own copy and answers for itself [QS 2.4 and 2.6].
                for each in takers:
                    each.receive(now, message)
            elif type(message) is Acknowledgment:
                if message.queue is not queue_name:
                    queue_name = message.queue
                    queue = by_name.get(queue_name)
                if queue is not None:
                    queue.acknowledge(now, message)
                else:
                    self._refused_count += 1
            else:
                topic_name = queue_name = None  # a command may create or delete queues
                self._receive_rare(now, message)

    def _receive_rare(
        self,
        now: Nanoseconds,
        message: ConsumerJoined | ConsumerLeft | ConsumerAvailability | ProducerLeft | CommandRequest,
    ) -> None:
        if self.hosted.reports_inputs:
            self.hosted.outbox.note_input(now, message)
        match message:
            case ConsumerJoined():
                if queue := self._hosted(message.queue):
                    queue.join(now, message)
            case ConsumerLeft():
                if queue := self._hosted(message.queue):
                    queue.leave(now, message)
            case ConsumerAvailability():
                if queue := self._hosted(message.queue):
                    queue.report_availability(now, message)
            case ProducerLeft():
                for each in self.hosted.by_topic.get((message.participant, message.topic_name), ()):
                    each.lose_producer(now, message.writer_guid)
            case CommandRequest():
                self.answers.receive(now, message)
            case _:
                assert_never(message)

    def advance(self, now: Nanoseconds) -> None:
        """Process everything that is due at `now`, and a quantum of long work; `next_deadline` is due at once if more
        is left.
        """
        now = self._no_earlier(now)
        if self.hosted.latest_move is not None:
            self.hosted.forget_latest_move()
        self.hosted.outbox.agenda.advance(now)
        if self.answers.is_answering:
            self.answers.go_on(now)

    def next_deadline(self) -> Nanoseconds | None:
        """Return when `advance` next has something to do; None: only a message can change anything."""
        if self.answers.is_answering and self.answers.is_due:
            return self._now
        return self.hosted.outbox.agenda.next_deadline()

    def take_ready(self) -> Ready:
        """Hand over what happened since the last call: records to store, messages to send, events, in order."""
        return self.hosted.take_ready()

    @property
    def refused_message_count(self) -> int:
        """Messages without effect since the start: the peers' mistakes."""
        return self._refused_count + sum(queue.refused_count for queue in self.hosted.by_name.values())

    # What survives a restart.

    def restore(self, now: Nanoseconds, records: Iterable[Record]) -> None:
        """Take up a stored service before the first message: `replay_all`, then `finish_restore`."""
        self.replay_all(records)
        self.finish_restore(now)

    def replay(self, record: Record) -> None:
        """Do one record again, see `replay_all`."""
        self.replay_all((record,))

    def replay_all(self, records: Iterable[Record]) -> None:
        """Do again what was recorded; the service's records first, then those of its queues.

        The state afterwards is exactly the one that wrote the records. A stored configuration takes the place of the
        one given [QS 2.14.1]. Records of a queue that is not hosted any more, or that is not to be restored
        (`<restore>`), are passed over.
        """
        name: QueueName | None = None
        found: tuple[QueueReplay, OpenStream] | None = None
        for record in records:
            if type(record) in _OF_THE_SERVICE:
                self._has_stored_configuration |= type(record) is ServiceStarted
                self.hosted.replay(self._now, record)  # type: ignore[arg-type]
                name = None  # the queues may be others
                continue
            of_queue: QueueRecord = record  # type: ignore[assignment]
            if of_queue.queue != name:
                name = of_queue.queue
                found = self._replay_of(name)
            if found is None:
                self.ignored_record_count += 1
                continue
            replay, stream = found
            stream.base_index += 1
            if not replay.play(of_queue):
                self.ignored_record_count += 1

    def rollback(self, name: str) -> None:
        """Forget all that a queue holds: its records are to be replayed, up to any of them, and perhaps others.

        Consumers keep their seats. `finish_restore` ends it, as it ends a start.

        Raises:
            KeyError: no queue has this full name.
        """
        queue = self.hosted.by_name[name]
        queue.forget(self._now)
        self._replays[name] = QueueReplay(queue, is_restart=False)

    def finish_restore(self, now: Nanoseconds) -> None:
        """Make of the replayed state what a restart makes of it [QS 2.14.2.1]; begin to record.

        Deliveries in progress are void: their samples are Enqueued again and flagged redelivered. Expired samples, and
        those that have spent their attempts, go to the dead letters or are removed. Only the queues that were replayed
        to are touched: one created later may find its samples on disk [QS 2.14.2].
        """
        now = self._no_earlier(now)
        replays, self._replays = self._replays, {}
        if not self._has_stored_configuration:
            self._has_stored_configuration = True
            self.hosted.outbox.service_stream.record(self.hosted.started())
        elif not self._has_started:
            self.hosted.begin_anew()
        self._has_started = True
        self._complete_moves(now, replays)
        for name, queue in sorted(self.hosted.by_name.items(), key=lambda each: not each[1].settings.is_dead_letter):
            if name in replays:
                resume(now, queue, is_restart=replays[name].is_restart)

    def _complete_moves(self, now: Nanoseconds, replays: Mapping[str, QueueReplay]) -> None:
        """Complete the moves that a crash cut in two: they may be in two stores, of which only one has its record."""
        moved: dict[QueueName, list[MovedFrom]] = {}
        for replay in replays.values():
            for left in replay.moved_from:
                moved.setdefault(left.queue, []).append(left)
        for name in replays.keys() & self._completed.keys():
            moved.setdefault(name, []).extend(self._completed[name])
        for name in sorted(moved.keys() & self.hosted.by_name.keys()):
            if completed := leave_moved(now, self.hosted.by_name[name], moved[name], replays.get(name)):
                self._completed[name] = completed
        for queue in self.hosted.by_name.values():
            place = self.hosted.dead_letters_of(queue)
            if place is None or not (queue.name in replays or (place.name in replays and self.hosted.restores(queue))):
                continue
            of_place = replays.get(place.name)
            found = (each.dead_letter for each in place.held if each.dead_letter is not None)
            complete_moves(now, queue, found if of_place is None else of_place.dead_letters)

    def lose_producers(self, now: Nanoseconds) -> int:
        """Every producer leaves: what waits outside full queues leaves with them [QS 2.15.4]; gives how many."""
        waiting_count = sum(len(queue.reader_cache) for queue in self.hosted.by_name.values())
        for queue in self.hosted.by_name.values():
            for writer_guid in {identity.writer_guid for identity in queue.reader_cache.arrivals}:
                queue.lose_producer(self._no_earlier(now), writer_guid)
        return waiting_count

    # What memory and disk take.

    @property
    def holds_back(self) -> bool:
        """Return whether producers are held back: their samples are answered 0, and commands insert none. By default
        not.

        A driver sets it where its memory is at its bound; what is held is delivered and removed all the same.
        """
        return self.hosted.holds_back

    @holds_back.setter
    def holds_back(self, holds_back: bool) -> None:
        self.hosted.holds_back = holds_back

    def refuse_samples(self, now: Nanoseconds, names: Iterable[str], *, refuses: bool) -> None:
        """Let queues enqueue nothing new, answering 0 [QS 2.4], or enqueue again; they go on delivering."""
        now = self._no_earlier(now)
        for queue in self._named(names):
            if refuses:
                queue.refuse_samples()
            elif queue.context.refuses and not queue.context.is_suspended:
                queue.go_on(now)

    def suspend_queue(
        self,
        now: Nanoseconds,
        name: str,
        records: Iterable[Record],
        refused: Mapping[int, SampleIdentity],
        *,
        is_read: bool = True,
    ) -> None:
        """Restore a queue from its store, and suspend it: it enqueues and delivers nothing.

        Args:
            now: the instant.
            name: the queue's full name; one that is not hosted is ignored.
            records: the records of its store.
            refused: samples that count as never written, whatever the store holds of them, by position.
            is_read: whether the store could be read; else its content is unknown.
        """
        for queue in self._named((name,)):
            queue.suspend()
            next_position = queue.held.next_position
            self.rollback(name)
            self.replay_all(without(records, refused))
            # A store knows a payload by its position, which is never used again in it.
            queue.held.next_position = max(queue.held.next_position, next_position)
            self.finish_restore(now)
            if is_read:
                self.hosted.complete_latest_move(now, queue)
            for identity in refused.values():
                self.hosted.outbox.events.append(SampleBounced(self._now, name, identity, BounceReason.NOT_STORED))

    def continue_queue(self, now: Nanoseconds, name: str) -> None:
        """Let a suspended queue enqueue and deliver again: its state is stored."""
        for queue in self._named((name,)):
            queue.go_on(self._no_earlier(now))

    def _named(self, names: Iterable[str]) -> Iterator[SharedReaderQueue]:
        return (self.hosted.by_name[name] for name in names if name in self.hosted.by_name)

    def snapshot(self) -> Iterator[Record]:
        """Return the records that replay to the present state: the service's, then each recorded queue's."""
        yield from self.snapshot_service()
        for queue in self.hosted.by_name.values():
            if queue.journaled:
                yield from snapshot(queue)

    def snapshot_service(self) -> Iterator[ServiceRecord]:
        """Return the configuration as it is now, for the service's own store."""
        yield self.hosted.started()
        if self.hosted.followed is not None:
            yield self.hosted.followed

    def snapshot_queue(self, name: str) -> Iterator[QueueRecord]:
        """Return what one queue holds, for its store; payloads on disk only are named, see `qsctl.core.payloads`.

        Raises:
            KeyError: no queue has this full name.
        """
        return snapshot(self.hosted.by_name[name])

    def capture_queue(self, name: str) -> Capture:
        """Return the same records, a share at a time while the service goes on.

        Raises:
            KeyError: no queue has this full name.
        """
        return Capture(self.hosted.by_name[name])

    def _no_earlier(self, now: Nanoseconds) -> Nanoseconds:
        if now < self._now:
            return self._now
        self._now = now
        return now

    def _hosted(self, queue: str) -> SharedReaderQueue | None:
        found = self.hosted.by_name.get(queue)
        if found is None:
            self._refused_count += 1
        return found

    def _send_reply(self, resource: ResourceIdentifier | None, reply: CommandReply) -> None:
        queue = None if resource is None else self.hosted.by_name.get("/".join(name for _, name in resource.names))
        if queue is not None and not queue.journaled and (move := self.hosted.latest_move) is not None:
            queue = move.target  # what was moved rests on the record of the other queue
        stream = self.hosted.outbox.service_stream if queue is None else queue.stream
        answer = msgspec.structs.replace(reply, queue=stream.name, rests_on=stream.last_index)
        self.hosted.outbox.messages.append(answer)

    def _replay_of(self, name: QueueName) -> tuple[QueueReplay, OpenStream] | None:
        """Return what plays a queue's records, and its stream; None: they are passed over."""
        queue = self.hosted.by_name.get(name)
        replay = self._replays.get(name)
        if queue is None or not (replay is not None or self.hosted.restores(queue)):
            return None
        if replay is None:
            replay = self._replays[name] = QueueReplay(queue, is_restart=True)
            if not queue.is_replicated:
                queue.be(NIL_INCARNATION)  # unless its records have another
        return replay, queue.stream
