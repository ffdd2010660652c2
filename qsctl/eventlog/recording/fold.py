"""The fold of a service's event history into the rows and counters of a run folder.

The rows of `messages` and the counters are equal to those of a simulated run of the service: a row for each sample and
queue once its outcome is known, with the times from enqueueing to the last sending and to the acknowledgment. The fold
reads no clock and writes no file: live recorder, embedded service and simulator use the same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    FlushQueue,
    Shutdown,
    UpdateQueue,
)
from qsctl.core.events import Event
from qsctl.core.messages import CommandRequest, ConsumerAvailability, ConsumerJoined, ConsumerLeft, ProducerLeft
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.ready import Input
from qsctl.eventlog.queue_counts import counter_columns
from qsctl.eventlog.recording._recording_rows import RecordingRows
from qsctl.eventlog.recording._sample_steps import SampleSteps
from qsctl.eventlog.recording.queue_state import QueueState, address_text, shown_names
from qsctl.eventlog.recording.rows import TableRows
from qsctl.eventlog.recording.sampling import Sampling
from qsctl.eventlog.recording.schema import CommandKind, PeerHappening
from qsctl.eventlog.recording.story import (
    Begun,
    Happened,
    HeldAtBeginning,
    Part,
    RecordedConsumer,
    RecordingEnded,
    Resumed,
)
from qsctl.eventlog.run_folder import Happening
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.resource import ResourceIdentifier

_PRESENT_NS: Final = -1
"""When consumers joined that were there when the recording began."""


class Fold:
    """The fold of one recording: takes parts of the event history, returns rows and counters.

    Args:
        client: the service's name in `messages` and `counters`.
        queues: full names of the queues of the whole service, and their `max_count`, -1 for unlimited.
        started_at_ns: the instant 0 of the recording, on the clock of the event history.
        level: the level of detail; COUNTERS makes no rows, MESSAGES all but `events`.
        sampling: selects the samples that have rows.
    """

    def __init__(
        self,
        client: str,
        queues: Sequence[tuple[str, int]],
        started_at_ns: Nanoseconds,
        level: LogLevel = LogLevel.MESSAGES,
        sampling: Sampling | None = None,
    ) -> None:
        self._t0 = started_at_ns
        self._recorded = RecordingRows(
            client, keeps_rows=level is not LogLevel.COUNTERS, keeps_events=level is LogLevel.EVENTS
        )
        shown = shown_names([name for name, _ in queues])
        self._queues = {name: QueueState(name, shown[name], max_count) for name, max_count in queues}
        self._steps = SampleSteps(self._recorded, self._queue, started_at_ns, sampling or Sampling(1.0))
        self.held_at_start_count = 0
        """Samples that were there when the recording began."""

    @property
    def now_ns(self) -> Nanoseconds:
        """The latest reported instant, in nanoseconds since the beginning."""
        return self._recorded.now_ns

    @property
    def step(self) -> int:
        """The latest step number, which increases with every event and input."""
        return self._recorded.step

    @property
    def full_names(self) -> Mapping[str, str]:
        """The full names of the queues by their names in `messages` and `counters`."""
        return {each.shown: each.name for each in self._queues.values()}

    def note(self, part: Part) -> None:
        """Fold one part of the event history."""
        match part:
            case Happened(events, inputs):
                self.happened(events, inputs)
            case Begun():
                self._begin(part)
            case HeldAtBeginning(samples):
                self.held_at_start_count += len(samples)
                for sample in samples:
                    self._steps.hold(self._queue(sample.queue), sample)
            case Resumed(at_ns):
                self._reach(at_ns)
                for queue in self._queues.values():
                    queue.present.clear()
                    self._steps.resume(self._recorded.now_ns, queue)
            case RecordingEnded(at_ns):
                self._reach(at_ns)

    def happened(self, events: Sequence[Event], inputs: Sequence[Input] = ()) -> None:
        """Fold events in order, with the inputs between them."""
        if not inputs:
            self._steps.note(events)
            return
        bounds = [0, *(each.events_before for each in inputs), len(events)]
        for at, (first, last) in enumerate(pairwise(bounds)):
            self._steps.note(events[first:last])
            if at < len(inputs):
                self._input(inputs[at])

    def end(self) -> None:
        """End the recording: samples in queues become held, those in reader caches waiting, open deliveries end."""
        for queue in self._queues.values():
            if queue.counts.returned:
                self._recorded.add_event(queue, "returned", self.now_ns, queue.counts.returned, queue.counts.returned)
            self._steps.end(queue)

    def take_rows(self) -> dict[str, TableRows]:
        """Return the rows since the last call, with values in the order of each table's columns without `run_id`."""
        return {name: each.take() for name, each in self._recorded.rows.items()}

    @property
    def row_count(self) -> int:
        """Return the number of rows that `take_rows` would return."""
        return sum(map(len, self._recorded.rows.values()))

    def counters(self, observed_ns: Nanoseconds) -> dict[str, Any]:
        """Return the columns of `eventlog.schema.COUNTERS` without the run's id, one row a queue, as if the recording
        ended now.

        The maximum depth of these queues is a number of samples (`max_count`); 0 means unlimited.
        """
        queues = list(self._queues.values())
        return counter_columns(
            [each.counts_now() for each in queues],
            [0] * len(queues),
            [self._recorded.client] * len(queues),
            [each.shown for each in queues],
            [max(0, each.max_count) for each in queues],
            observed_ns,
        )

    def happenings(self) -> tuple[Happening, ...]:
        """Return each kind of event, in the order of their first occurrence."""
        return self._recorded.happenings()

    def _queue(self, name: str) -> QueueState:
        queue = self._queues.get(name)
        return self._add_queue(name, -1) if queue is None else queue

    def _add_queue(self, name: str, max_count: int) -> QueueState:
        """Register a queue that was created during the recording; it is shown by its short name if that is unique."""
        own = name.rpartition("/")[2]
        taken = {each.shown for each in self._queues.values()}
        is_full = any("/" in shown for shown in taken)
        queue = self._queues[name] = QueueState(name, name if is_full or own in taken else own, max_count)
        return queue

    def _reach(self, at_ns: Nanoseconds) -> None:
        self._recorded.step += 1
        self._recorded.now_ns = max(self._recorded.now_ns, at_ns - self._t0)

    def _begin(self, begun: Begun) -> None:
        for each in begun.queues:
            self._queue(each.name).max_count = each.max_count
        for slot in begun.seats:
            self._add_consumer(slot)

    def _add_consumer(self, slot: RecordedConsumer) -> None:
        self._recorded.step += 1
        self._queue(slot.queue).present.add(slot.consumer_guid)
        self._recorded.add_peer(
            _PRESENT_NS,
            PeerHappening.CONSUMER_JOINED,
            slot.consumer_guid,
            queue=slot.queue,
            address=address_text(slot.source_guid),
            unacked_threshold=slot.unacked_threshold,
            reception_enabled=slot.reception_enabled,
        )

    def _input(self, given: Input) -> None:
        recorded = self._recorded
        recorded.step += 1
        at_ns = recorded.now_ns = given.at_ns - self._t0
        match given.message:
            case ConsumerJoined(queue, guid, source_guid, threshold, enabled):
                recorded.add_peer(
                    at_ns,
                    PeerHappening.CONSUMER_JOINED,
                    guid,
                    queue=queue,
                    address=address_text(source_guid),
                    unacked_threshold=threshold,
                    reception_enabled=enabled,
                )
                state = self._queue(queue)
                state.left.pop(guid, None)
                if guid not in state.present:
                    state.present.add(guid)
                    recorded.add_event(state, "connected", at_ns, recorded.peer(guid))
            case ConsumerAvailability(queue, guid, enabled, threshold):
                recorded.add_peer(
                    at_ns,
                    PeerHappening.CONSUMER_AVAILABILITY,
                    guid,
                    queue=queue,
                    unacked_threshold=threshold,
                    reception_enabled=enabled,
                )
            case ConsumerLeft(queue, guid, hands_back):
                recorded.add_peer(at_ns, PeerHappening.CONSUMER_LEFT, guid, queue=queue, hands_back=hands_back)
                state = self._queue(queue)
                state.left[guid] = hands_back
                if guid in state.present:
                    state.present.remove(guid)
                    recorded.add_event(state, "disconnected", at_ns, recorded.peer(guid))
            case ProducerLeft(participant, topic, guid):
                recorded.add_peer(at_ns, PeerHappening.PRODUCER_LEFT, guid, participant=participant, topic=topic)
                recorded.forget_producer(guid)
            case CommandRequest(_, _, command):
                self._command(at_ns, command)
            case _:
                pass  # samples and acknowledgments are events

    def _command(self, at_ns: Nanoseconds, command: Command) -> None:
        body = ""
        match command:
            case CreateQueue(resource, settings):
                kind, body = CommandKind.CREATE_QUEUE, _text(settings)
                self._created(resource, settings)
            case CreateSubscriber(resource, subscriber):
                kind, body = CommandKind.CREATE_SUBSCRIBER, _text(subscriber)
                for queue in subscriber.queues:
                    self._created(ResourceIdentifier((*resource.names, (resource.names[0][0], subscriber.name))), queue)
            case UpdateQueue(resource, settings):
                kind, body = CommandKind.UPDATE_QUEUE, _text(settings)
                self._changed(resource, settings)
            case DeleteQueue(resource):
                kind = CommandKind.DELETE_QUEUE
            case DeleteSubscriber(resource):
                kind = CommandKind.DELETE_SUBSCRIBER
            case FlushQueue(resource, selector):
                kind, body = CommandKind.FLUSH_QUEUE, selector
            case Shutdown():
                kind, resource = CommandKind.SHUTDOWN, ResourceIdentifier()
            case _:
                return  # it reads, or events have the outcome of each sample
        if self._recorded.keeps_rows:
            self._recorded.rows["commands"].parts.append(
                (self._recorded.step, at_ns, kind.value, str(resource.bare), body)
            )

    def _created(self, subscriber: ResourceIdentifier, settings: SharedReaderQueueSettings) -> None:
        """Register a queue that a command created or tried to create."""
        name = "/".join((*(each for _, each in subscriber.names), settings.name))
        if name not in self._queues:
            self._add_queue(name, settings.limits.max_count)

    def _changed(self, queue: ResourceIdentifier, settings: SharedReaderQueueSettings) -> None:
        """Register the limit of a queue that a command changed or tried to change."""
        if (state := self._queues.get("/".join(each for _, each in queue.names))) is not None:
            state.max_count = settings.limits.max_count


def _text(settings: object) -> str:
    return msgspec.json.encode(settings, order="deterministic").decode()
