"""One simulated service instance: a driver of `core.turn` on virtual time, with a disk that it can lose its power over.

Decides: what a driver does, in the order that `core.turn` demands, and where in it a crash may fall. One sync is in
progress at a time; what gathers meanwhile is the next group. A service whose disk refuses ends itself: a sync that
failed is never tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import Inbound, Outbound
from qsctl.core.ready import SERVICE_STREAM
from qsctl.core.records import QueueDeleted, Record, SubscriberDeleted
from qsctl.core.settings import ServiceSettings
from qsctl.core.turn import Group, Turn
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.agenda import Agenda, Trace
from qsctl.sim.world.disk import Append, Compact, Disk, DiskRefuses, Drop, Operation
from qsctl.sim.world.history import Observer
from qsctl.sim.world.vocabulary import CrashPoint

NEVER_COMPACTED: Final = 0


class Surroundings:
    """What a service reaches: programs, by their sessions. The world gives them."""

    def send(self, service: int, message: Outbound) -> None:
        """Carry a message to the program that it is for."""

    def service_started(self, service: int) -> None:
        """Let programs be discovered."""

    def service_ended(self, service: int) -> None:
        """Lose what is on its way."""


class SimulatedService:
    """One service instance, which may be down, paused, or running.

    Args:
        number: its number, from 1.
        settings: its configuration.
        agenda: the clock of the world.
        trace: where everything is noted.
        disk: what outlives it.
        surroundings: where its messages go.
        observers: who see what it does.
        compact_records: after so many records a stream is compacted; 0: never.
    """

    def __init__(
        self,
        number: int,
        settings: ServiceSettings,
        *,
        agenda: Agenda,
        trace: Trace,
        disk: Disk,
        surroundings: Surroundings,
        observers: Sequence[Observer],
        compact_records: int = NEVER_COMPACTED,
    ) -> None:
        self.number = number
        self.settings = settings
        self._agenda = agenda
        self._trace = trace
        self.disk = disk
        self._surroundings = surroundings
        self._observers = observers
        self._compact_records = compact_records
        self.is_up = False
        self.is_paused = False
        self.crash_at: CrashPoint | None = None
        """Where the next crash falls; None: no crash waits."""
        self.skew_ns: Nanoseconds = 0
        """How far its clock is ahead of the world's."""
        self.jitter: float | None = None
        """What it draws for each wait before an election; None: random."""
        self._is_to_compact = False
        self._life = 0
        self._inbox: list[Inbound] = []
        self._is_planned_at: Nanoseconds | None = None
        self._syncing: Group | None = None
        self._is_synced = False

    @property
    def now(self) -> Nanoseconds:
        """The instant by its own clock."""
        return max(0, self._agenda.now + self.skew_ns)

    def start(self) -> None:
        """Begin with what the disk holds."""
        if self.is_up:
            return
        self.is_up, self.is_paused = True, False
        self.crash_at = None
        self._trace.note("start", self.number)
        self.engine = ServiceEngine(self.settings, started_at=self.now, journal=Journal.PERSISTENT_ONLY)
        for record in self._found():
            self.engine.replay(record)
        for observer in self._observers:
            observer.started(self.number)
        self.engine.finish_restore(self.now)
        self._turn = Turn(self.engine)
        self._syncing, self._is_synced = None, False
        self.disk.was_lost = False
        self._surroundings.service_started(self.number)
        self.receive(())

    def end(self) -> None:
        """Lose the power."""
        if not self.is_up:
            return
        self._trace.note("end", self.number)
        self.is_up = self.is_paused = False
        self._life += 1
        self._inbox = []
        self._is_planned_at = None
        self.crash_at = None
        kept = self.disk.crash()
        for observer in self._observers:
            observer.stored(self.number, kept)
        self._surroundings.service_ended(self.number)
        for observer in self._observers:
            observer.ended(self.number)

    def pause(self) -> None:
        """Do nothing, as a process that is stopped (SIGSTOP); the network and the disk go on."""
        if self.is_up:
            self._trace.note("pause", self.number)
            self.is_paused = True

    def resume(self) -> None:
        """Go on after a pause."""
        if self.is_paused:
            self._trace.note("resume", self.number)
            self.is_paused = False
            self._plan(self._agenda.now)

    def receive(self, messages: Sequence[Inbound]) -> None:
        """Take messages that have come."""
        if self.is_up:
            self._inbox += messages
            self._plan(self._agenda.now)

    def crash_when(self, point: CrashPoint) -> None:
        """Lose the power where the service next comes to this point."""
        if self.is_up:
            self.crash_at = point

    def skew(self, skew_ns: Nanoseconds) -> None:
        """Set its clock ahead of the world's, or behind it."""
        self.skew_ns = skew_ns
        self.receive(())

    def compact_soon(self) -> None:
        """Compact its streams at the next occasion, whatever their length."""
        self._is_to_compact = True
        self.receive(())

    def held(self) -> set[tuple[str, SampleIdentity]]:
        """What its queues hold, where it decides about them."""
        if not self.is_up:
            return set()
        return {
            (name, sample.identity)
            for name, queue in self.engine.hosted.by_name.items()
            if self.is_master(name)
            for sample in queue.held
        }

    def is_master(self, queue: str) -> bool:
        """Whether it decides about a queue."""
        return self.is_up and queue in self.engine.hosted.by_name

    def epoch(self, queue: str) -> int:
        """The epoch in which it is master."""
        return 0

    def has_voted_for(self, number: int) -> bool:
        """Whether its vote for another is durable."""
        return False

    def _found(self) -> Iterable[Record]:
        streams = self.disk.streams
        yield from self.disk.stream(SERVICE_STREAM).load()
        for name in sorted(streams):
            if name != SERVICE_STREAM:
                yield from streams[name].load()

    def _plan(self, instant: Nanoseconds) -> None:
        """Do a pass at an instant, unless one is planned before."""
        if self._is_planned_at is not None and self._is_planned_at <= instant:
            return
        self._is_planned_at = instant
        life = self._life
        self._agenda.at(instant, lambda: self._pass_if(life, instant))

    def _pass_if(self, life: int, instant: Nanoseconds) -> None:
        if life == self._life and instant == self._is_planned_at:
            self._is_planned_at = None
            if self.is_up and not self.is_paused:
                self._pass()

    def _pass(self) -> None:
        """Do one pass of the driver's loop."""
        turn = self._turn
        if self._is_synced:
            self._report_durable()
        if self._inbox or not turn.waits_for_disk:
            turn.receive(self._inbox)
            self._inbox = []
        while turn.step(self.now):
            pass
        if not (self._store() and self._send()):
            return
        for observer in self._observers:
            observer.stepped(self.number)
        deadline = turn.next_deadline()
        if deadline is not None:
            self._plan(max(self._agenda.now, deadline - self.skew_ns))

    def _store(self) -> bool:
        """Write what gathered, unless a sync is in progress; False: the service has ended."""
        while self._syncing is None and (group := self._turn.to_write()) is not None:
            operations = list(_operations(group, self.disk))
            self._syncing = group
            if not operations:
                self._report_durable()
            elif not self._write(operations):
                return False
        if self._syncing is None and self._turn.is_idle:
            return self._compact()
        return True

    def _compact(self) -> bool:
        """Replace a stream that has grown by what its queue holds; False: the service has ended."""
        least = 1 if self._is_to_compact else self._compact_records
        self._is_to_compact = False
        if least == NEVER_COMPACTED:
            return True
        for name in sorted(self.disk.streams):
            stream = self.disk.streams[name]
            if name in self.engine.hosted.by_name and len(stream.records) >= least:
                self._syncing = Group([])
                return self._write([Compact(name, stream.last_index, tuple(self.engine.snapshot_queue(name)))])
        return True

    def _write(self, operations: list[Operation]) -> bool:
        try:
            self.disk.write(operations)
        except DiskRefuses as refusal:
            self._fail(refusal)
            return False
        life = self._life
        self._agenda.after(self.disk.sync_ns, lambda: self._synced(life, operations))
        return True

    def _synced(self, life: int, operations: Sequence[Operation]) -> None:
        if life != self._life:
            return
        if self.crash_at is CrashPoint.BEFORE_SYNC:
            self.end()
            return
        try:
            self.disk.sync()
        except DiskRefuses as refusal:
            self._fail(refusal)
            return
        self._trace.note("synced", self.number, len(operations))
        for observer in self._observers:
            observer.stored(self.number, operations)
        if self.crash_at is CrashPoint.AFTER_SYNC:
            self.end()
            return
        self._is_synced = True
        if not self.is_paused:
            self._plan(self._agenda.now)

    def _report_durable(self) -> None:
        group, self._syncing, self._is_synced = self._syncing, None, False
        for ready in group.turns if group is not None else ():
            for batch in ready.batches:
                self._turn.durable(batch.stream, batch.last_index)

    def _send(self) -> bool:
        """Let everything leave that may; False: the service has ended."""
        for released in self._turn.to_send():
            for event in released.events:
                for observer in self._observers:
                    observer.happened(self.number, event)
            for message in released.messages:
                self._trace.note("send", self.number, message)
                for observer in self._observers:
                    observer.released(self.number, message)
                self._surroundings.send(self.number, message)
                if self.crash_at is CrashPoint.IN_ACKNOWLEDGMENT:
                    self.end()
                    return False
        return True

    def _fail(self, refusal: DiskRefuses) -> None:
        """End: the disk refuses."""
        self._trace.note("disk", self.number, refusal.reason)
        self.end()


def _operations(group: Group, disk: Disk) -> Iterable[Operation]:
    """What a group writes; a deleted queue's stream goes with it.

    An engine that was restored numbers its records behind those that it was given, a store behind those that it ever
    had: a compaction made them fewer.
    """
    next_indexes: dict[str, int] = {}
    for ready in group.turns:
        for batch in ready.batches:
            first_index = next_indexes.get(batch.stream) or disk.stream(batch.stream).last_index + 1
            next_indexes[batch.stream] = first_index + len(batch.records)
            yield Append(batch.stream, first_index, tuple(batch.records))
        for record in ready.service_records:
            if isinstance(record, QueueDeleted):
                yield Drop(f"{record.participant}/{record.subscriber}/{record.name}")
            elif isinstance(record, SubscriberDeleted):
                yield Drop(f"{record.participant}/{record.subscriber}")
