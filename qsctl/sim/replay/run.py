"""The driver of a replay: a recording through the same engine under virtual time, with changes.

Every message that reached the live service reaches the engine at the same instant and in the same order, as long as
everything that it depends on is unchanged. The package's docstring lists the copied and the modelled parts.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from qsctl.core.events import BounceReason, SampleDeadLettered
from qsctl.core.messages import AckResponse, Delivery, ProducerLeft, Write, WriteAcknowledgment
from qsctl.core.queue.settings import SIZE_BYTES_MAX
from qsctl.core.settings import ServiceSettings, queues_by_name
from qsctl.core.turn import Released
from qsctl.errors import InvalidInput
from qsctl.eventlog.location import location
from qsctl.eventlog.recording.fold import Fold
from qsctl.eventlog.recording.queue_state import shown_names
from qsctl.eventlog.recording.rows import TableRows
from qsctl.eventlog.recording.schema import Origin, PeerHappening
from qsctl.eventlog.recording.story import HeldAtBeginning, RecordedHeldSample
from qsctl.eventlog.schema import LogLevel
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.model import CHUNK_ROWS, EVENT_ROW, LOG_ROW, ModelRun, Rows, Stop
from qsctl.sim.replay._commands import request_of
from qsctl.sim.replay._consumers import UNRECORDED_STEP, ConsumerSlot, ModelledReply
from qsctl.sim.replay._consumers_by_queue import Consumers
from qsctl.sim.replay._instants import instants_of
from qsctl.sim.replay._part import EnginePart
from qsctl.sim.replay._parts import changed_queues, parts_of
from qsctl.sim.replay._producers import Offer, Writer, was_accepted, writers_of
from qsctl.sim.replay.recording import CommandRow, PeerRow, Recorded, RecordedArrival, read_recording
from qsctl.sim.replay.resampled import ResampledLoad, resampled
from qsctl.sim.replay.settings import changed_service
from qsctl.sim.scenario.parts.replay import Replay
from qsctl.sim.scenario.rules.replay import short_names
from qsctl.sim.scenario.scenario import Scenario


class _Kind(IntEnum):
    """The kind of a due event."""

    PEER = 0
    COMMAND = 1
    OFFER = 2
    WRITE = 3
    REPLY = 4
    REPEAT = 5


def prepare(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Check the scenario, read the recording and prepare this repetition.

    Raises:
        InvalidInput: the recording has no load to replay.
        Damaged: the recording cannot be read.
    """
    if scenario.replay is None:
        raise InvalidInput(f"{scenario.name}: there is nothing to replay", remedy="Add a <replay>.")
    recordings = scenario.replay.recordings
    recorded = read_recording(location(recordings[replication % len(recordings)]))
    load = None
    if replication >= len(recordings) and scenario.replay.resample_blocks:
        load = resampled(recorded, scenario.replay.resample_blocks, scenario.seed, replication)
    return ReplayRun(scenario, scenario.replay, recorded, replication, level, chunk_rows, load)


class ReplayRun:
    """A run of a replay, whose rows are all returned by `take_tables`, in the form of a recording's."""

    def __init__(
        self,
        scenario: Scenario,
        replay: Replay,
        recorded: Recorded,
        replication: int,
        level: LogLevel,
        chunk_rows: int = CHUNK_ROWS,
        load: ResampledLoad | None = None,
    ) -> None:
        self._horizon_ns = scenario.horizon_ns
        # What consumers need for samples is read off the recording as it was, whatever comes.
        as_it_was = recorded
        self._original = {} if load is None else load.original
        recorded = recorded if load is None else load.recorded
        self._recorded = recorded
        self._chunk_rows = chunk_rows
        service = changed_service(replay)
        self._service_name = service.application_name
        self.now_ns: Nanoseconds = 0
        self.messages = 0
        self.lost_arrivals: Counter[str] = Counter()
        """Arrivals at queues that the changed service does not have, by queue."""
        self._agenda: list[tuple[Nanoseconds, int, int, int, Any]] = []
        self._serial = 0
        self._finished = False
        self._parts = _parts(service, as_it_was, replay, is_as_recorded=load is None)
        self._part_of = {name: part for part in self._parts for name in part.queue_names}
        self._fold = Fold(
            service.application_name, [(name, part.max_count(name)) for name, part in self._part_of.items()], 0, level
        )
        self._payloads: dict[int, bytes] = {}
        self._numbers = {guid: number for number, guid in recorded.guids.items()}
        self._letters: dict[tuple[str, int], deque[int]] = {}
        """Of the recorded dead letters of each queue and sequence number, the writers, in order."""
        for arrival in recorded.arrivals:
            if arrival.origin == Origin.DEAD_LETTER:
                place = (arrival.queue, arrival.sequence_number)
                self._letters.setdefault(place, deque()).append(arrival.producer)
        names = short_names(replay.service)
        changes = {names[each.name]: each for each in replay.queues}
        self.consumers = Consumers(
            as_it_was, changes, self._part_of.__contains__, scenario.seed, replication, is_as_recorded=load is None
        )
        inputs = [row for row in recorded.arrivals if row.origin == Origin.PRODUCER]
        self._writers = writers_of(inputs, self._acknowledges, replay.window_samples, scenario.seed, replication)
        self._was_accepted: dict[tuple[str, int, int], bool] = {}
        """Of the latest recorded write of a sample that was offered to a queue."""
        self._is_accepted: dict[tuple[str, int, int], bool | None] = {}
        """The queue's latest answer to it here; None: none yet."""
        self._begin()

    @property
    def queue_names(self) -> list[str]:
        """The queues by their names in the log."""
        return list(shown_names(list(self._part_of)).values())

    # A model's run.

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Replay to `until_ns` (exclusive) or until the log chunk is full."""
        until_ns = min(until_ns, self._horizon_ns)
        while self._fold.row_count < self._chunk_rows:
            instant = self._next_instant()
            if instant >= until_ns:
                self.now_ns = until_ns
                return Stop.UNTIL
            self.now_ns = instant
            self._pass(instant)
        return Stop.LOG_FULL

    def take_log(self) -> Rows:
        """Return no rows: they are among those of `take_tables`."""
        return np.empty(0, LOG_ROW)

    def take_events(self) -> Rows:
        """Return no events: they are among the rows of `take_tables`."""
        return np.empty(0, EVENT_ROW)

    def take_tables(self) -> Mapping[str, TableRows]:
        """Return the rows since the last call, by table, as `eventlog.recording.tables` takes them."""
        return self._fold.take_rows()

    def finish(self) -> Stop:
        """Log the samples still in a queue; to be called again while it returns LOG_FULL."""
        if not self._finished:
            self._finished = True
            self._fold.end()
        return Stop.UNTIL

    def counters(self) -> dict[str, Any]:
        """Return one row for each queue, whose client is the service."""
        return self._fold.counters(self.now_ns)

    @property
    def happenings(self) -> tuple[Any, ...]:
        """The events of the run, by kind."""
        return self._fold.happenings()

    # The beginning.

    def _begin(self) -> None:
        recorded = self._recorded
        in_progress = {(row.queue, row.producer, row.sequence_number) for row in recorded.deliveries if row.sent_ns < 0}
        held: dict[str, list[tuple[RecordedArrival, Guid, int]]] = {}
        for row in recorded.arrivals:
            if row.queue not in self._part_of:
                continue
            if row.origin == Origin.HELD:
                # A delivery that was in progress is made again: it is not a failed attempt.
                made = (row.queue, row.producer, row.sequence_number) in in_progress
                held.setdefault(row.queue, []).append((row, recorded.guids[row.producer], row.attempts - made))
            elif row.origin == Origin.OUTSIDE:
                self._at(0, -1, _Kind.OFFER, Offer(0, -1, row))
        for queue, rows in held.items():
            self._part_of[queue].hold(queue, rows)
            self._fold.note(HeldAtBeginning([_held(queue, *each) for each in rows]))
        for part in self._parts:
            part.begin(-1)
        for peer in recorded.peers:
            if peer.happening != PeerHappening.PRODUCER_SEEN:
                self._at(max(0, peer.at_ns), peer.step, _Kind.PEER, peer)
        for command in recorded.commands:
            self._at(command.at_ns, command.step, _Kind.COMMAND, command)
        for slot in self.consumers.slots.values():
            for reply in slot.foretold(recorded.guids):
                self._at_reply(slot, reply)
        for writer in self._writers.values():
            self._schedule(0, writer)
            for row in writer.repeats:
                self._at(row.at_ns, row.step, _Kind.REPEAT, row)

    def _at(self, instant: Nanoseconds, step: int, kind: int, what: Any) -> None:
        heapq.heappush(self._agenda, (instant, step, self._serial, kind, what))
        self._serial += 1

    def _schedule(self, now: Nanoseconds, writer: Writer) -> None:
        due = writer.schedule(now)
        if due is not None:
            self._at(*due, _Kind.WRITE, (writer, writer.presence))

    # The way of things.

    def _next_instant(self) -> Nanoseconds:
        instant = min(part.fires_at_ns for part in self._parts)
        if self._agenda and self._agenda[0][0] < instant:
            instant = self._agenda[0][0]
        return max(instant, self.now_ns)

    def _pass(self, now: Nanoseconds) -> None:
        """Process the agenda up to `now` in the order of recorded steps, then step the parts and send messages."""
        while self._agenda and self._agenda[0][0] <= now:
            _, _, _, kind, what = heapq.heappop(self._agenda)
            self._do(now, kind, what)
        for part in self._parts:
            if part.has_messages or part.fires_at_ns <= now:
                for released in part.step(now):
                    self._release(now, released)

    def _do(self, now: Nanoseconds, kind: int, what: Any) -> None:
        match kind:
            case _Kind.PEER:
                self._peer(now, what)
            case _Kind.COMMAND:
                self._command(what)
            case _Kind.OFFER:
                self._offer(now, what)
            case _Kind.WRITE:
                self._write_next(now, *what)
            case _Kind.REPLY:
                self._reply(now, *what)
            case _:
                self._repeat(now, what)

    def _write_next(self, now: Nanoseconds, writer: Writer, presence: int) -> None:
        if presence != writer.presence:
            return  # it left before it could
        for offer in writer.write(now):
            if offer.at_ns <= now:
                self._offer(now, offer)
            else:
                self._at(offer.at_ns, offer.step, _Kind.OFFER, offer)
        self._schedule(now, writer)

    def _peer(self, now: Nanoseconds, row: PeerRow) -> None:
        if row.happening != PeerHappening.PRODUCER_LEFT:
            for slot, message in self.consumers.messages_of(row):
                self._part_of[slot.queue].receive(message)
            return
        writer = self._writers.get(row.peer)
        if writer is not None:
            writer.leave(now)
            self._schedule(now, writer)
        left = ProducerLeft(row.participant or "", row.topic or "", self._recorded.guids[row.peer])
        for part in self._parts:
            if part.has_topic(left.participant, left.topic_name):
                part.receive(left)

    def _command(self, row: CommandRow) -> None:
        found = request_of(row, self._service_name)
        if found is not None:
            request, queue = found
            self._part_of.get(queue, self._parts[0]).receive(request)

    def _offer(self, now: Nanoseconds, offer: Offer) -> None:
        row = offer.row
        part = self._part_of.get(row.queue)
        if part is None and len(self._parts) == 1 and self._parts[0].hosts(row.queue):
            part = self._part_of[row.queue] = self._parts[0]  # created since
        if part is None or not part.hosts(row.queue):
            self.lost_arrivals[row.queue] += 1
            return
        self.messages += 1
        place = (row.queue, row.producer, row.sequence_number)
        self._was_accepted[place] = was_accepted(row)
        self._is_accepted[place] = None
        write = self._write(part, row)
        if row.reason == BounceReason.NOT_STORED:
            part.refuse(now, row.queue, write, BounceReason.NOT_STORED)
        else:
            part.receive(write)

    def _write(self, part: EnginePart, row: RecordedArrival) -> Write:
        payload = self._payloads.get(row.size_bytes)
        if payload is None:
            payload = self._payloads[row.size_bytes] = bytes(row.size_bytes)
        participant, topic = part.address_of(row.queue)
        guid = self._recorded.guids[row.producer]
        address = Guid(bytes.fromhex(row.address)) if row.address else NIL_GUID
        lifespan_ns = INFINITE_NS if row.lifespan_ns is None else row.lifespan_ns
        if row.origin == Origin.OUTSIDE and lifespan_ns < INFINITE_NS:
            lifespan_ns = max(0, lifespan_ns + row.at_ns)  # a part of it was over
        return Write(
            participant,
            topic,
            SampleIdentity(guid, row.sequence_number),
            payload,
            guid,
            related_source_guid=address,
            lifespan_ns=lifespan_ns,
        )

    def _repeat(self, now: Nanoseconds, row: RecordedArrival) -> None:
        """Write a sample again as recorded, unless that followed a refusal that did not happen in the replay."""
        place = (row.queue, row.producer, row.sequence_number)
        if place not in self._is_accepted:
            return  # not written yet: its producer waits
        if self._is_accepted[place] and not self._was_accepted[place]:
            return
        self._offer(now, Offer(now, row.step, row))

    def _release(self, now: Nanoseconds, released: Released) -> None:
        self._fold.happened(released.events, released.inputs)
        for event in released.events:
            if isinstance(event, SampleDeadLettered):
                self._recognize(event)
        for message in released.messages:
            if isinstance(message, Delivery):
                self._deliver(now, message)
            elif isinstance(message, WriteAcknowledgment):
                self._answer(now, message)

    def _recognize(self, event: SampleDeadLettered) -> None:
        """Give a dead letter its writer number in the recording, as its own GUID depends on its queue's creation."""
        recorded = self._letters.get((event.to_queue, event.dead_letter.sequence_number))
        if recorded:
            self._numbers[event.dead_letter.writer_guid] = recorded.popleft()

    def _deliver(self, now: Nanoseconds, delivery: Delivery) -> None:
        slot = self.consumers.slots[delivery.queue, delivery.consumer_guid]
        key = (self._number(delivery.identity.writer_guid), delivery.identity.sequence_number, delivery.attempt)
        size_bytes = 0 if delivery.payload is None else len(delivery.payload)
        origin = self._original.get(key[:2])
        self._at_reply(
            slot, slot.receive(now, delivery, key, size_bytes, None if origin is None else (*origin, key[2]))
        )

    def _reply(self, now: Nanoseconds, slot: ConsumerSlot, reply: ModelledReply) -> None:
        if reply.is_foretold and not slot.is_in_recording:
            return
        if reply.was_recorded:
            self._part_of[slot.queue].receive(reply.message)
        elif reply.presence == slot.presence:
            self._part_of[slot.queue].receive(reply.message)
            self._at_reply(slot, slot.ended(now))

    def _at_reply(self, slot: ConsumerSlot, reply: ModelledReply | None) -> None:
        if reply is not None:
            self._at(reply.at_ns, reply.step, _Kind.REPLY, (slot, reply))

    def _answer(self, now: Nanoseconds, answer: WriteAcknowledgment) -> None:
        number, sequence_number = self._number(answer.identity.writer_guid), answer.identity.sequence_number
        writer = self._writers.get(number)
        place = (answer.queue, number, sequence_number)
        is_accepted = answer.response == AckResponse.ACCEPTED
        self._is_accepted[place] = is_accepted
        if writer is None:
            return
        if not is_accepted and self._was_accepted.get(place):
            row = writer.first_write(answer.queue, sequence_number)
            delay_ns = writer.writes_again_after()
            if row is not None and delay_ns is not None:
                self._at(now + delay_ns, UNRECORDED_STEP, _Kind.OFFER, Offer(now + delay_ns, UNRECORDED_STEP, row))
        if writer.answered(now, answer.queue, sequence_number):
            self._schedule(now, writer)

    def _number(self, guid: Guid) -> int:
        """Return the number of a writer; dead letters that the recording does not have get new numbers."""
        number = self._numbers.get(guid)
        if number is None:
            number = self._numbers[guid] = -1 - len(self._numbers)
        return number

    def _acknowledges(self, queue: str) -> bool:
        part = self._part_of.get(queue)
        return part is not None and part.acknowledges(queue)


def _parts(service: ServiceSettings, recorded: Recorded, replay: Replay, *, is_as_recorded: bool) -> list[EnginePart]:
    """Return the parts of a service; a single one where queues are created or deleted, which may depend on any other.

    `is_as_recorded` is False for another load: then a timer fires when it is due.
    """
    is_changed = any(not row.command.startswith("flush") for row in recorded.commands)
    too_large = list(_too_large_for_the_service(recorded))
    started_at_ns = min([-1, *(row.at_ns for row in recorded.arrivals[:1])])
    changed = changed_queues(service, recorded, replay)
    parts = []
    for settings in [service] if is_changed else parts_of(service):
        part = EnginePart(settings, started_at_ns, min(too_large, default=-1))
        if is_as_recorded:
            part.instants = instants_of(recorded, None if is_changed else frozenset(part.queue_names))
        if changed.isdisjoint(queues_by_name(settings)):
            part.lateness_max_ns = INFINITE_NS
        parts.append(part)
    return parts


def _too_large_for_the_service(recorded: Recorded) -> Iterator[int]:
    """Yield payload sizes that the recorded service refused to exceed, whatever the settings of its queues."""
    own = {name: each.limits.sample_size_bytes_max for name, each in queues_by_name(recorded.service).items()}
    for row in recorded.arrivals:
        if row.reason == BounceReason.TOO_LARGE and row.size_bytes <= own.get(row.queue, SIZE_BYTES_MAX):
            yield row.size_bytes - 1


def _held(queue: str, row: RecordedArrival, writer: Guid, attempts: int) -> RecordedHeldSample:
    return RecordedHeldSample(
        queue,
        SampleIdentity(writer, row.sequence_number),
        row.size_bytes,
        row.at_ns,
        INFINITE_NS if row.lifespan_ns is None else row.at_ns + row.lifespan_ns,
        Guid(bytes.fromhex(row.address)) if row.address else NIL_GUID,
        attempts,
        row.redelivered,
    )
