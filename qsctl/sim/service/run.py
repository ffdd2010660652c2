"""Our own queuing service under virtual time: the engine that runs live, with simulated producers and consumers.

There is no second version of the queue: this is a driver of `core.turn.Turn`, as the live one is, with virtual time.
The network delays every message alike; consumers serve one sample at a time and then acknowledge, reject or stay
silent, or are gone for a while. What is stored together is durable after the sync of the storage.

A processor simulates some 6,000 samples a second of the ready scenario, with 370 Python calls each: 40 % of the time is
the core's, which runs live as it is, 20 % the producers' and consumers', 14 % the log's, and the rest this driver's. No
function has more than 6 %, so that no driver, however fast, gives twice as many; fewer calls a sample in the core do.

One instance is simulated: a scenario with replicated queues is refused (`scenario.rules`), for replicas are those of
the model `world`.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.events import one_by_one
from qsctl.core.messages import (
    Delivery,
    Inbound,
    WriteAcknowledgment,
)
from qsctl.core.turn import Group, Released, Turn
from qsctl.errors import InvalidInput
from qsctl.eventlog.recording.fold import Fold
from qsctl.eventlog.recording.rows import TableRows
from qsctl.eventlog.recording.schema import REPLAY_TABLES
from qsctl.eventlog.schema import LogLevel
from qsctl.identity import counted_incarnations
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.arrivals.cursor import ArrivalCursor
from qsctl.sim.model import CHUNK_ROWS, EVENT_ROW, Event, ModelRun, Rows, Stop
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.service._sample_log import SampleLog
from qsctl.sim.service.peers import (
    SimulatedConsumer,
    absences_of,
    arrivals_scenario,
    consumers_of,
    hosted_queues,
    number_of,
    producers_of,
)

QUEUES_MAX: Final = 255
"""More queues than a row of the log can number."""

_JOIN, _LEAVE, _TO_SERVICE, _TO_CONSUMER, _TO_PRODUCER, _SERVED, _SYNCED = range(7)
"""Kinds of due events, in the order in which they are processed at one instant."""


def prepare(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Check the scenario, create the service and its peers, and seed the random streams of this repetition.

    Raises:
        InvalidInput: no workload, a topic or queue that the service does not have, too many queues.
    """
    if scenario.workload is None:
        raise InvalidInput(f"{scenario.name}: there is no workload to simulate", remedy="Add a <workload>.")
    return SharedReaderQueueRun(scenario, replication, level, chunk_rows)


class SharedReaderQueueRun:
    """A run of a service. `queue_names` are the names of the log's queue numbers."""

    def __init__(self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> None:
        workload = scenario.workload
        assert workload is not None
        self._scenario = scenario
        self._level = level
        self._service = workload.service
        self._queues = hosted_queues(workload.service)
        if len(self._queues) > QUEUES_MAX:
            raise InvalidInput(f"the service has {len(self._queues)} queues; at most {QUEUES_MAX} can be simulated")
        engine = ServiceEngine(
            workload.service, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY
        )
        self._turn = Turn(engine)
        self._fold: Fold | None = None
        """Of a run that is to be replayed: it makes the tables that a recording of a live service has."""
        if level is LogLevel.EVENTS:
            engine.hosted.reports_inputs = True
            limits = [(name, queue.settings.limits.max_count) for name, queue in engine.hosted.by_name.items()]
            self._fold = Fold(workload.service.application_name, limits, 0)
        self._deadline_ns: Nanoseconds = 0
        """When the service next has something to do by itself."""
        self._inbox: list[Inbound] = []
        self._sync_ns = workload.sync_ns
        self._is_syncing = False
        self._producers = producers_of(workload, self._queues)
        self._consumers = consumers_of(scenario, replication, self._queues)
        self._delay_ns = workload.delay_ns
        self._log = SampleLog(
            self._queues, scenario.warm_up_ns, workload.delay_ns, level is not LogLevel.COUNTERS, chunk_rows
        )
        self._arrivals = ArrivalCursor(arrivals_scenario(scenario), replication, scenario.horizon_ns)
        self._payloads: dict[int, bytes] = {}
        self._agenda: list[tuple[Nanoseconds, int, int, Any, Any]] = []
        self._sequence = 0
        self._events: list[tuple[int, ...]] = []
        self._finished = False
        self.now_ns: Nanoseconds = 0
        self.messages = 0
        for consumer in self._consumers:
            self._at(0, _JOIN, consumer)
        for number, start_ns, end_ns in absences_of(workload, scenario.horizon_ns):
            self._at(start_ns, _LEAVE, self._consumers[number])
            if end_ns < scenario.horizon_ns:
                self._at(end_ns, _JOIN, self._consumers[number])

    @property
    def queue_names(self) -> list[str]:
        """The queues by number: their short names, or the full ones where two are equal."""
        names = [queue.name for queue in self._queues]
        return names if len(set(names)) == len(names) else [queue.full_name for queue in self._queues]

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate to `until_ns` (exclusive) or until the log chunk is full."""
        until_ns = min(until_ns, self._scenario.horizon_ns)
        while not self._log.is_full:
            instant = self._next_instant()
            if instant >= until_ns:
                self.now_ns = until_ns
                return Stop.UNTIL
            self.now_ns = instant
            self._pass(instant)
        return Stop.LOG_FULL

    def take_log(self) -> Rows:
        """Return the rows since the last call."""
        return self._log.collect()

    def take_tables(self) -> Mapping[str, TableRows]:
        """Return the rows of the tables of `eventlog.recording.schema` since the last call; none below level events."""
        if self._fold is None:
            return {}
        rows = self._fold.take_rows()
        return {name: rows[name] for name in REPLAY_TABLES}

    def take_events(self) -> Rows:
        """Return the events since the last call: consumers that joined and left, and failed deliveries at the end."""
        rows = np.array(self._events, EVENT_ROW)
        self._events = []
        return rows

    def finish(self) -> Stop:
        """Log the samples still in a queue as `held`; to be called again while it returns LOG_FULL."""
        if not self._finished:
            self._finished = True
            self._note_unsynced()
            self._log.hold()
            if self._fold is not None:
                self._fold.end()
            for index, count in enumerate(self._log.returned_counts()):
                if count:
                    self._note(Event.RETURNED, index, count)
        return Stop.UNTIL

    def counters(self) -> dict[str, Any]:
        """Return one row for each queue, whose client is the service."""
        observed_ns = max(0, self.now_ns - self._scenario.warm_up_ns)
        return self._log.counters(self._service.application_name, self.queue_names, observed_ns)

    def _at(self, instant: Nanoseconds, kind: int, peer: Any, what: Any = None) -> None:
        heapq.heappush(self._agenda, (instant, self._sequence, kind, peer, what))
        self._sequence += 1

    def _next_instant(self) -> Nanoseconds:
        """Return the instant of the next event: a write, an arriving message, the end of a service, or a deadline."""
        instant = self._arrivals.next_ns
        if self._agenda and self._agenda[0][0] < instant:
            instant = self._agenda[0][0]
        return min(instant, max(self._deadline_ns, self.now_ns))

    def _pass(self, now: Nanoseconds) -> None:
        """Process all writes and events due at `now`, then step the service."""
        while self._arrivals.next_ns == now:
            self._offer(now, *self._arrivals.pop())
        while self._agenda and self._agenda[0][0] <= now:
            _, _, kind, peer, what = heapq.heappop(self._agenda)
            self._do(now, kind, peer, what)
        if self._inbox or self._deadline_ns <= now:
            self._step(now)

    def _step(self, now: Nanoseconds) -> None:
        """Step the service with the messages received and the timers due, and schedule the messages it sends."""
        turn = self._turn
        if self._inbox or not turn.waits_for_disk:
            turn.receive(self._inbox)
            self._inbox = []
        while turn.step(now):
            pass
        self._store(now)
        deadline = turn.next_deadline()
        self._deadline_ns = INFINITE_NS if deadline is None else deadline
        arrives = now + self._delay_ns
        for released in turn.to_send():
            self._report(released)
            for message in released.messages:
                if isinstance(message, Delivery):
                    self._at(arrives, _TO_CONSUMER, self._consumers[number_of(message.consumer_guid)], message)
                elif isinstance(message, WriteAcknowledgment):
                    self._at(arrives, _TO_PRODUCER, self._producers[number_of(message.identity.writer_guid)], message)

    def _store(self, now: Nanoseconds) -> None:
        """Write the collected records to storage, unless a sync is in progress."""
        while not self._is_syncing and (group := self._turn.to_write()) is not None:
            if self._sync_ns and any(ready.batches for ready in group.turns):
                self._is_syncing = True
                self._at(now + self._sync_ns, _SYNCED, None, group)
            else:
                self._report_durable(group)

    def _report_durable(self, group: Group) -> None:
        for ready in group.turns:
            for batch in ready.batches:
                self._turn.durable(batch.stream, batch.last_index)

    def _note_unsynced(self) -> None:
        """Complete pending syncs at the end, so that events of turns whose messages have not left are logged."""
        if self._is_syncing:
            self._is_syncing = False
            for _, _, kind, _, what in self._agenda:
                if kind == _SYNCED:
                    self._report_durable(what)
        self._sync_ns = 0
        self._store(self.now_ns)
        for released in self._turn.to_send():
            self._report(released)

    def _report(self, released: Released) -> None:
        for event in one_by_one(released.events):
            self._log.note(event)
        if self._fold is not None:
            self._fold.happened(released.events, released.inputs)

    def _do(self, now: Nanoseconds, kind: int, peer: Any, what: Any) -> None:
        if kind == _TO_SERVICE:
            self._inbox.append(what)
        elif kind == _TO_CONSUMER:
            self._deliver(now, peer, what)
        elif kind == _SERVED:
            self._served(now, peer, what)
        elif kind == _SYNCED:
            self._is_syncing = False
            self._report_durable(what)
            self._deadline_ns = now  # what waited for the disk goes on
        elif kind == _TO_PRODUCER:
            self._send(now, peer.receive(what))
        elif kind == _JOIN:
            self._note(Event.CONNECTED, self._queues.index(peer.queue), peer.number)
            self._send(now, (peer.join(),))
        else:
            self._note(Event.DISCONNECTED, self._queues.index(peer.queue), peer.number)
            self._send(now, (peer.leave(),))

    def _offer(self, now: Nanoseconds, number: int, size_bytes: int) -> None:
        self.messages += 1
        payload = self._payloads.get(size_bytes)
        if payload is None:
            payload = self._payloads[size_bytes] = bytes(size_bytes)
        self._send(now, self._producers[number].offer(payload))

    def _send(self, now: Nanoseconds, messages: Sequence[Inbound]) -> None:
        for message in messages:
            self._at(now + self._delay_ns, _TO_SERVICE, None, message)

    def _deliver(self, now: Nanoseconds, consumer: SimulatedConsumer, delivery: Delivery) -> None:
        if not consumer.is_present:
            return  # lost on the way: the service is notified that the consumer has left, and redelivers the sample
        consumer.receive(delivery)
        self._serve(now, consumer)

    def _serve(self, now: Nanoseconds, consumer: SimulatedConsumer) -> None:
        service_ns = consumer.begin()
        if service_ns is not None:
            self._at(now + service_ns, _SERVED, consumer, consumer.presence)

    def _served(self, now: Nanoseconds, consumer: SimulatedConsumer, presence: int) -> None:
        if presence != consumer.presence:
            return  # it left meanwhile
        self._send(now, consumer.end())
        self._serve(now, consumer)

    def _note(self, event: Event, queue: int, value: int) -> None:
        if self._level is LogLevel.EVENTS:
            self._events.append((self.now_ns, value, 0, queue, int(event)))
