"""A queuing service instance as one state machine [QS 2]: the interface to every driver.

Decides: which queue receives a message, what a restart restores, and when the engine has work without a message. The
queues decide about samples; `admin` answers commands, `statistics` counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, unique
from typing import Final, assert_never, get_args

import msgspec

from qsctl.core.admin.answers import Answers
from qsctl.core.events import BounceReason, SampleBounced, SamplesRestored
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
    RunAcknowledgment,
    Write,
    WriteRun,
)
from qsctl.core.queue.joining import joined
from qsctl.core.queue.outbox import OpenStream
from qsctl.core.queue.restore import Capture, QueueReplay, complete_moves, leave_moved, resume, snapshot, without
from qsctl.core.queue.settings import UNLIMITED
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.ready import Ready
from qsctl.core.records import (
    MovedFrom,
    QueueRecord,
    Record,
    RunRecord,
    ServiceRecord,
    ServiceStarted,
)
from qsctl.core.settings import ServiceSettings
from qsctl.identity import NIL_INCARNATION, DrawIncarnation, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.resource import ResourceIdentifier


@unique
class Journal(Enum):
    """The set of queues that write records."""

    PERSISTENT_ONLY = "persistent_only"
    """Queues whose persistence is PERSISTENT: for a running service [QS 2.14.2]."""
    REPLICATED = "replicated"
    """Persistent and replicated queues, whose records are the replicated log [QS 7.1]: for a member of a cluster."""
    EVERYTHING = "everything"
    """All queues: for a service that exists in a state directory between commands."""


_OF_THE_SERVICE: Final = frozenset(get_args(ServiceRecord))


class ServiceEngine:
    """A queuing service instance: messages in, a `Ready` batch out.

    In each turn a driver calls `receive` for each message, `advance` and `take_ready`; it stores the records before it
    sends a message. Every call receives the time; an earlier time than that of a former call counts as the former.

    Args:
        settings: the configuration; a stored one replaces it, see `replay_all`.
        started_at: the instant from which statistics are counted.
        draw: returns the incarnation of the service, and of each new queue or subscriber.
        journal: which queues write records.
        payload_size_bytes_max: a larger payload is refused (a transport's own bound); -1: no bound.
        stops_on_command: whether SHUTDOWN is obeyed; a daemon is stopped where it was started [QS 5.4.9].

    Raises:
        Refused: the configuration contains two queues of one name or topic, or an invalid dead-letter queue.
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
        """The queues and their statistics, which administration commands read and change."""
        self.ignored_record_count = 0
        """Number of replayed records without effect, because their queue or the start of their sample is missing."""
        self.answers = Answers(self.hosted, self._send_reply)
        """The commands in progress."""
        self._replays: dict[str, QueueReplay] = {}
        self._completed: dict[QueueName, list[MovedFrom]] = {}
        """Places of samples that moved to another queue before a restart, and that a crash had left in the first one.

        By queue. If the disk then refuses the record of their removal, they must be removed again after a rollback.
        """
        self._has_stored_configuration = False
        self._has_started = False
        self._refused_count = 0

    # A driver's turn.

    def receive(self, now: Nanoseconds, message: Inbound) -> None:
        """Process one message; the result is in the next `take_ready`.

        Refuses, counted in `refused_message_count` and otherwise without effect:
            A message to a queue or topic that is not hosted; an acknowledgment of a sample that its sender was never
                sent; an availability report to a queue that does not allow them.
        """
        self.receive_all(now, (message,))

    def receive_all(self, now: Nanoseconds, messages: Iterable[Inbound]) -> None:
        """Process messages in order, as `receive` does each.

        A turn has hundreds of messages, nearly all of them samples of one topic and acknowledgments: their common topic
        and queue are looked up once.
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
                # Each queue receives its own copy and answers by itself [QS 2.4 and 2.6].
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
            elif type(message) is WriteRun:
                takers = by_topic.get((message.participant, message.topic_name), ())
                participant = topic_name = None
                self._refused_count += 0 if takers else len(message.payloads)
                for each in takers:
                    each.receive_run(now, message)
            elif type(message) is RunAcknowledgment:
                of_run = by_name.get(message.queue)
                if of_run is not None:
                    of_run.acknowledge_run(now, message)
                else:
                    self._refused_count += message.count
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
        """Do all work that is due at `now`, up to a quantum; if more is left, `next_deadline` is due at once."""
        now = self._no_earlier(now)
        if self.hosted.latest_move is not None:
            self.hosted.forget_latest_move()
        self.hosted.outbox.agenda.advance(now)
        if self.answers.is_answering:
            self.answers.go_on(now)

    def next_deadline(self) -> Nanoseconds | None:
        """Return the instant at which `advance` has work to do; None: only a message can change anything."""
        if self.answers.is_answering and self.answers.is_due:
            return self._now
        return self.hosted.outbox.agenda.next_deadline()

    def take_ready(self) -> Ready:
        """Return all output since the last call: records to store, messages to send, and events, each in order."""
        return self.hosted.take_ready()

    @property
    def refused_message_count(self) -> int:
        """Return the number of messages since the start that were ignored as invalid."""
        return self._refused_count + sum(queue.refused_count for queue in self.hosted.by_name.values())

    # Records, replay and restart.

    def restore(self, now: Nanoseconds, records: Iterable[Record]) -> None:
        """Restore a stored service before the first message: `replay_all`, then `finish_restore`."""
        self.replay_all(records)
        self.finish_restore(now)

    def replay(self, record: Record) -> None:
        """Apply one record, see `replay_all`."""
        self.replay_all((record,))

    def replay_all(self, records: Iterable[Record]) -> None:
        """Apply stored records: those of the service first, then those of its queues.

        The resulting state is exactly the one that wrote the records. A stored configuration replaces the given one [QS
        2.14.1]. Records of a queue that no longer exists, or that is not to be restored (`<restore>`), are skipped.
        """
        name: QueueName | None = None
        found: tuple[QueueReplay, OpenStream] | None = None
        for record in joined(records):
            if type(record) in _OF_THE_SERVICE:
                self._has_stored_configuration |= type(record) is ServiceStarted
                self.hosted.replay(self._now, record)  # type: ignore[arg-type]
                name = None  # the record may have changed the queues
                continue
            of_queue: QueueRecord | RunRecord = record  # type: ignore[assignment]
            if of_queue.queue != name:
                name = of_queue.queue
                found = self._replay_of(name)
            count = of_queue.count if isinstance(of_queue, RunRecord) else 1
            if found is None:
                self.ignored_record_count += count
                continue
            replay, stream = found
            stream.base_index += count
            self.ignored_record_count += count - replay.play(of_queue)

    def rollback(self, name: str) -> None:
        """Drop all samples of a queue, so that its records, or a part of them, can be replayed.

        Consumers remain joined. `finish_restore` ends the rollback, as it ends a restart.

        Raises:
            KeyError: no queue has this full name.
        """
        queue = self.hosted.by_name[name]
        queue.forget(self._now)
        self._replays[name] = QueueReplay(queue, is_restart=False)

    def finish_restore(self, now: Nanoseconds) -> None:
        """Convert the replayed state into a working one [QS 2.14.2.1], and start to record.

        Deliveries in progress are void: their samples are Enqueued again and flagged as redelivered. Expired samples,
        and those that have spent their attempts, are dead-lettered or removed. Only queues with replayed records are
        changed: a queue created later may still find its samples on disk [QS 2.14.2].
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
        """Complete the moves that a crash interrupted: of their two records only one may be durable."""
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
        """Treat all producers as gone: drop the samples outside full queues [QS 2.15.4], and return their number."""
        waiting_count = sum(len(queue.reader_cache) for queue in self.hosted.by_name.values())
        for queue in self.hosted.by_name.values():
            for writer_guid in {identity.writer_guid for identity in queue.reader_cache.arrivals}:
                queue.lose_producer(self._no_earlier(now), writer_guid)
        return waiting_count

    # Limits of memory and disk.

    @property
    def holds_back(self) -> bool:
        """Return whether new samples are refused: producers are answered 0, and commands insert none.

        Initially False. A driver sets it while its memory is at its bound; held samples are still delivered and
        removed.
        """
        return self.hosted.holds_back

    @holds_back.setter
    def holds_back(self, holds_back: bool) -> None:
        self.hosted.holds_back = holds_back

    def refuse_samples(self, now: Nanoseconds, names: Iterable[str], *, refuses: bool) -> None:
        """Stop queues from enqueueing new samples, which are answered 0 [QS 2.4], or resume; they still deliver."""
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
        """Restore a queue from its store, and suspend it: it neither enqueues nor delivers.

        Args:
            now: the instant.
            name: the queue's full name; a name that is not hosted is ignored.
            records: the records of its store.
            refused: samples to treat as never written, even if the store contains them, by position.
            is_read: whether the store could be read; False: its content is unknown.
        """
        now = self._no_earlier(now)
        for queue in self._named((name,)):
            queue.suspend()
            next_position = queue.held.next_position
            held_count = len(queue.held) if queue.unread_count is None else queue.unread_count
            self.rollback(name)
            self.replay_all(without(records, refused))
            # A store knows a payload by its position, which is never used again in it.
            queue.held.next_position = max(queue.held.next_position, next_position)
            queue.unread_count = None if is_read else held_count
            events = self.hosted.outbox.events
            if is_read:
                # What left the queue and is in its store again was counted when it left, and will be counted again.
                came_back_count = len(queue.held) - (held_count - len(refused))
                if came_back_count > 0:
                    events.append(SamplesRestored(now, name, came_back_count))
                events += [SampleBounced(now, name, each, BounceReason.NOT_STORED) for each in refused.values()]
            self.finish_restore(now)
            if is_read:
                self.hosted.complete_latest_move(now, queue)

    def continue_queue(self, now: Nanoseconds, name: str) -> None:
        """Let a suspended queue enqueue and deliver again, once its state is stored."""
        for queue in self._named((name,)):
            queue.go_on(self._no_earlier(now))

    def _named(self, names: Iterable[str]) -> Iterator[SharedReaderQueue]:
        return (self.hosted.by_name[name] for name in names if name in self.hosted.by_name)

    def snapshot(self) -> Iterator[Record]:
        """Yield the records that replay to the present state: the service's, then those of each recorded queue."""
        yield from self.snapshot_service()
        for queue in self.hosted.by_name.values():
            if queue.journaled:
                yield from snapshot(queue)

    def snapshot_service(self) -> Iterator[ServiceRecord]:
        """Yield the records of the current configuration, for the service's own store."""
        yield self.hosted.started()
        if self.hosted.followed is not None:
            yield self.hosted.followed

    def snapshot_queue(self, name: str) -> Iterator[QueueRecord]:
        """Yield the records of one queue's content, for its store.

        Payloads that are on disk only are referenced, see `qsctl.core.payloads`.

        Raises:
            KeyError: no queue has this full name.
        """
        return snapshot(self.hosted.by_name[name])

    def capture_queue(self, name: str) -> Capture:
        """Return a capture that yields the records of one queue in parts, while the service continues.

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
            queue = move.target  # the move rests on the record of the other queue
        stream = self.hosted.outbox.service_stream if queue is None else queue.stream
        answer = msgspec.structs.replace(reply, queue=stream.name, rests_on=stream.last_index)
        self.hosted.outbox.messages.append(answer)

    def _replay_of(self, name: QueueName) -> tuple[QueueReplay, OpenStream] | None:
        """Return the replay of a queue's records, and its stream; None: its records are skipped."""
        queue = self.hosted.by_name.get(name)
        replay = self._replays.get(name)
        if queue is None or not (replay is not None or self.hosted.restores(queue)):
            return None
        if replay is None:
            replay = self._replays[name] = QueueReplay(queue, is_restart=True)
            if not queue.is_replicated:
                queue.be(NIL_INCARNATION)  # unless its records have another
        return replay, queue.stream
