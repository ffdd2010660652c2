"""One simulated service instance: the driver that runs live (`process`) on virtual time, and what can befall it.

Decides: when a pass of the driver is done, and where in its work a crash may fall. What the process waits for the disk
it does nothing else, and what leaves after that leaves later. A process whose disk refuses the service as a whole ends,
and one whose disk never answers does nothing more until it is killed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Final

from qsctl.core.high_availability.replica import Replica
from qsctl.core.high_availability.roles import Role
from qsctl.core.messages import CommandReply, Inbound, Outbound
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.settings import ServiceSettings
from qsctl.core.turn import Released
from qsctl.errors import Damaged, Refused
from qsctl.identity import DrawIncarnation, SampleIdentity
from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds
from qsctl.service.replicas.replication import Replication
from qsctl.sim.world.environment.agenda import Trace, WorldAgenda
from qsctl.sim.world.environment.disk import PowerFailed, ProcessHangs, SimulatedDisk
from qsctl.sim.world.environment.links import Links
from qsctl.sim.world.faults.vocabulary import CrashPoint
from qsctl.sim.world.services.configuration import instance_name
from qsctl.sim.world.services.history import Audience
from qsctl.sim.world.services.process import Process
from qsctl.sim.world.services.stored import Operation, StoredState

CLOCK_BEGINS_NS: Final[Nanoseconds] = 3600 * SECOND_NS
"""Reading of a correct clock when a world begins: one that is set back continues from there."""


IDLE_NS: Final[Nanoseconds] = 100 * MILLISECOND_NS
"""After so long without anything to do a service does what waits for a quiet moment, as a daemon does."""

OPERATIONS_TO_FAILURE_MAX: Final = 12
"""Bound on the number of file operations after which a crash in the middle of writing occurs."""


class Surroundings:
    """The environment of a service: programs by their sessions, and other services. The world implements it."""

    def send(self, service: int, message: Outbound) -> None:
        """Carry a message to the program that it is for."""

    def carry(self, service: int, kind: str, recipient: str, pieces: Sequence[bytes]) -> None:
        """Carry the pieces of a letter to another service."""

    def service_started(self, service: int) -> None:
        """Let programs be discovered."""

    def service_ended(self, service: int) -> None:
        """Lose what is on its way."""

    def service_left(self, service: int) -> None:
        """Let the others notice at once: it ended in order."""

    def hosting_changed(self, service: int) -> None:
        """Let programs discover, and lose, what was created and deleted."""


class SimulatedService:
    """One service instance, which may be down, paused, or running.

    Args:
        number: its number, from 1.
        settings: its configuration.
        names: the application names of the cluster's members.
        agenda: the clock of the world.
        trace: records everything.
        disk: its files, which outlive it.
        random: draws its waits before elections, and the points of crashes.
        draw: gives each creation its incarnation.
        surroundings: carries its messages.
        observers: see its actions.
        compact_records: number of records after which stores are compacted; 0: where it pays.
        file_max_size_kb: the size past which a file of its stores is followed by another.
        configuration: how the configuration is replicated; None: it is not.
    """

    def __init__(
        self,
        number: int,
        settings: ServiceSettings,
        names: Sequence[str],
        *,
        agenda: WorldAgenda,
        trace: Trace,
        disk: SimulatedDisk,
        random: Random,
        draw: DrawIncarnation,
        surroundings: Surroundings,
        observers: Audience,
        compact_records: int,
        file_max_size_kb: int,
        configuration: ReplicationSettings | None = None,
    ) -> None:
        self.number = number
        self.settings = settings
        self._names = names
        self.agenda = agenda
        self._trace = trace
        self.disk = disk
        self.stored = StoredState()
        """The judges' account of its disk."""
        self._random = random
        self.draw = draw
        self._surroundings = surroundings
        self._observers = observers
        self._compact_records = compact_records
        self._file_max_size_kb = file_max_size_kb
        self._configuration = configuration
        self.process: Process | None = None
        """None: it is down."""
        self.life_count = 0
        """Number of starts and ends: events planned in an earlier incarnation never happen."""
        self.is_gone = False
        """Whether it never starts again."""
        self.is_paused = False
        self.is_stuck = False
        """Whether its process waits for the disk for ever."""
        self.crash_at: CrashPoint | None = None
        """The point of the next crash; None: none is planned."""
        self.skew_ns: Nanoseconds = 0
        """Offset of its clock from the world's, beside that of its rate."""
        self._rate = 1.0
        self._rate_since: tuple[Nanoseconds, Nanoseconds] = (0, CLOCK_BEGINS_NS)
        """The instant of the world from which its clock runs at this rate, and what it showed then."""
        self.fixed_jitter: float | None = None
        """Fixed jitter of each wait before an election; None: random."""
        self._is_to_compact = False
        self._planned_at: Nanoseconds | None = None
        """When the next pass is to be done; None: when something happens."""
        self._alarms: set[Nanoseconds] = set()
        """When it will be looked whether a pass is to be done."""
        self._active_at: Nanoseconds = 0
        self._busy_until: Nanoseconds = 0

    @property
    def is_up(self) -> bool:
        """Return whether it runs, or is paused."""
        return self.process is not None

    def clock(self) -> Nanoseconds:
        """Return the instant by its own clock."""
        since, shown = self._rate_since
        return shown + int((self.agenda.now - since) * self._rate) + self.skew_ns

    # What can be done to it.

    def start(self) -> None:
        """Begin with what the disk holds."""
        if self.process is not None or self.is_gone:
            return
        self._trace.note("start", self.number)
        self.is_paused = self.is_stuck = False
        self.crash_at = None
        self.life_count += 1
        self._planned_at = None
        self._alarms.clear()
        self._busy_until = self._active_at = self.agenda.now
        self.guarded(self._start)

    def _start(self) -> None:
        try:
            process = self._opened(discards_damaged=False)
        except Damaged as error:
            if self.disk.is_sound:
                self._trace.note("refused", self.number, error.message)
                self.disk.kill()
                self._note_lost()  # an operator has it go on with what is whole
                process = self._opened(discards_damaged=True)
            else:
                self._trace.note("disk", self.number, error.message)
                self.disk.kill()
                return
        self.process = process
        process.loop.recovery.report = self._report_storage
        if process.watch.is_log_damaged:
            self._note_lost()
        for note_started in self._observers.started:
            note_started(self.number)
        process.begin()
        self._surroundings.service_started(self.number)
        self._leave(process, process.loop.pop_finished())
        self._plan(self.agenda.now)

    def _opened(self, *, discards_damaged: bool) -> Process:
        links = Links(
            self.settings.application_name,
            f"{self.settings.application_name}-{self.life_count}",
            lambda: self.agenda.now,
            self._carry,
            self._voted,
        )
        return Process(
            self,
            self.settings,
            self._names,
            links,
            compact_records=self._compact_records,
            configuration=self._configuration,
            file_max_size_kb=self._file_max_size_kb,
            discards_damaged=discards_damaged,
        )

    def _report_storage(self, event: str, queue: str, reason: str) -> None:
        self._trace.note(event, self.number, queue, reason)
        if event == "storage_failed" and queue:
            for note_set_back in self._observers.set_back:
                note_set_back(self.number, queue)

    def _note_lost(self) -> None:
        """Let the judges expect nothing any more of what is on this disk."""
        for note_lost_disk in self._observers.lost_disk:
            note_lost_disk(self.number)

    def end(self) -> None:
        """Lose the power."""
        self._end("end", self.disk.crash)

    def leave(self) -> None:
        """Stop in order, as at SIGTERM."""
        process = self.process
        if process is None or self.is_paused or self.is_stuck:
            return
        self.guarded(process.close)
        if self.process is process:
            self._leave(process, [])
            self._end("leave", self.disk.kill)
            self._surroundings.service_left(self.number)

    def _end(self, how: str, let_go: Callable[[], None]) -> None:
        if self.process is None and self.disk.mounted is None:
            return
        self._trace.note(how, self.number)
        self.process = None
        self.life_count += 1
        self.is_paused = self.is_stuck = False
        self.crash_at = None
        self._planned_at = None
        self._alarms.clear()
        let_go()
        self._surroundings.service_ended(self.number)
        for note_ended in self._observers.ended:
            note_ended(self.number)

    def pause(self) -> None:
        """Do nothing, as a process that is stopped (SIGSTOP); the network and the disk go on."""
        if self.is_up and not self.is_paused:
            self._trace.note("pause", self.number)
            self.is_paused = True
            for note_paused in self._observers.paused:
                note_paused(self.number)

    def resume(self) -> None:
        """Go on after a pause."""
        if self.is_paused:
            self._trace.note("resume", self.number)
            self.is_paused = False
            for note_resumed in self._observers.resumed:
                note_resumed(self.number)
            self._plan(self.agenda.now)

    def crash_when(self, point: CrashPoint) -> None:
        """Lose the power where the service next comes to this point."""
        if self.process is not None:
            self.crash_at = point
            if point is CrashPoint.IN_WRITE:
                self.process.mounted.fails_after = self._random.randrange(OPERATIONS_TO_FAILURE_MAX)

    def crash_no_more(self) -> None:
        """Let no crash wait any more."""
        self.crash_at = None
        if self.process is not None:
            self.process.mounted.fails_after = None

    def skew(self, skew_ns: Nanoseconds) -> None:
        """Set its clock ahead of the world's, or behind it."""
        self.skew_ns = skew_ns
        self.look_again()

    def run_clock(self, rate: float) -> None:
        """Let its clock run at another rate than the world's; it is not set by that."""
        self._rate_since = (self.agenda.now, self.clock() - self.skew_ns)
        self._rate = rate
        self.look_again()

    def compact_soon(self) -> None:
        """Compact its stores at the next occasion, whatever their length."""
        self._is_to_compact = True
        self.look_again()

    def repair_disk(self) -> None:
        """Let its disk work again; a process that waited for it for ever is killed and started, as by a supervisor."""
        self.disk.repair()
        if self.is_stuck:
            self._end("end", self.disk.kill)
            self.start()

    def force_quorum(self, hosting_counts: Mapping[str, int]) -> list[str]:
        """Do as an operator does: let a group form where its state asks for that word, once all with a replica answer.

        Args:
            hosting_counts: how many services have a replica, by stream.

        Returns:
            The streams for which the word was given.
        """
        forced: list[str] = []
        replication = None if self.process is None else self.process.replication
        if replication is None or self.is_paused or self.is_stuck:
            return forced
        now = replication.member.time.now
        for stream, replica in replication.member.replicas.items():
            if "force-quorum" in replica.lack(now) and replica.answer_count(now) >= hosting_counts[stream] - 1:
                with contextlib.suppress(Refused):
                    replica.check_force(now)
                    replica.force(now)
                    forced.append(stream)
        if forced:
            self.guarded(replication.go_on)
        self.look_again()
        return forced

    @property
    def is_master_of_configuration(self) -> bool:
        """Return whether it puts commands in their order."""
        replication = None if self.process is None else self.process.replication
        configuration = None if replication is None else replication.member.configuration
        return configuration is not None and configuration.replica.is_master

    def hand_over(self) -> None:
        """Let others be masters of what it is master of."""
        replication = None if self.process is None else self.process.replication
        if replication is not None and not self.is_paused and not self.is_stuck:
            self.guarded(lambda: _hand_over(replication))
            self.look_again()

    # What reaches it.

    def receive(self, messages: Sequence[Inbound]) -> None:
        """Take messages that have come."""
        if self.process is not None:
            self.process.inbox += messages
            self.look_again()

    def arrive(self, life_count: int, kind: str, pieces: Sequence[bytes]) -> None:
        """Take pieces of a letter of another service that was sent to this life."""
        if self.process is not None and life_count == self.life_count:
            link = self.process.links.opened.get(kind)
            for each in pieces:
                self._trace.note("datagram", self.number, each)
                if link is not None:
                    link.arrive(each)
            if link is not None:
                self.look_again()

    # What can be seen of it.

    def held(self) -> set[tuple[str, SampleIdentity]]:
        """Return what its queues hold, where it decides about them."""
        return set() if self.process is None else set(self.process.held())

    @property
    def hosted(self) -> Mapping[str, SharedReaderQueue]:
        """The queues that it hosts, by their full names."""
        return {} if self.process is None else self.process.engine.hosted.by_name

    @property
    def replicas(self) -> Mapping[str, Replica]:
        """Its replicas, by stream."""
        return {} if self.process is None else self.process.replicas

    def is_master(self, queue: str) -> bool:
        """Return whether it decides about a queue."""
        return self.process is not None and self.process.is_master(queue)

    @property
    def has_failed(self) -> bool:
        """Return whether a replica is silent, because its store failed, until the service starts again."""
        return any(each.role is Role.FAILED for each in self.replicas.values())

    def epoch(self, queue: str) -> int:
        """Return the epoch of a queue's replica; 0 where there is none."""
        replica = None if self.process is None else self.process.replica(queue)
        return 0 if replica is None else replica.epoch

    def has_voted_for(self, number: int) -> bool:
        """Return whether its vote for another is durable."""
        return any(stream.hard_state.vote == instance_name(number) for stream in self.stored.streams.values())

    # What its process runs on.

    def jitter(self) -> float:
        """Draw how long it waits before an election."""
        drawn = self._random.random()
        return drawn if self.fixed_jitter is None else self.fixed_jitter

    def note_stored(self, operations: Sequence[Operation]) -> None:
        """Let the judges know what is durable."""
        if operations:
            self._trace.note("synced", self.number, len(operations))
            for note_stored in self._observers.stored:
                note_stored(self.number, operations)

    def before_sync(self) -> None:
        """Lose the power, if it is to be lost before a sync."""
        if self.crash_at is CrashPoint.BEFORE_SYNC:
            raise PowerFailed

    def after_sync(self) -> None:
        """Lose the power, if it is to be lost after one."""
        if self.crash_at is CrashPoint.AFTER_SYNC:
            raise PowerFailed

    def guarded(self, do: Callable[[], None]) -> None:
        """Do what belongs to the process, in another thread of it; it may end by that."""
        try:
            do()
        except PowerFailed:
            self.end()
        except ProcessHangs:
            self._trace.note("hangs", self.number)
            self.is_stuck = True
        except Damaged as error:
            self._trace.note("disk", self.number, error.message)
            self._end("end", self.disk.kill)

    def look_again(self) -> None:
        """Do a pass soon."""
        if self.process is not None:
            self._plan(self.agenda.now)

    # Its loop.

    def _plan(self, instant: Nanoseconds) -> None:
        """Do a pass at an instant, unless one is planned before.

        An alarm that was set for an earlier instant is left: it sets the next one as it goes off. So a deadline that
        each pass defers costs one alarm, and not one a pass.
        """
        instant = max(instant, self._busy_until)
        if self._planned_at is not None and self._planned_at <= instant:
            return
        self._planned_at = instant
        self._set_alarm(instant)

    def _set_alarm(self, instant: Nanoseconds) -> None:
        if not self._alarms or min(self._alarms) > instant:
            self._alarms.add(instant)
            self.agenda.at(instant, partial(self._go_off, self.life_count, instant))

    def _go_off(self, life_count: int, instant: Nanoseconds) -> None:
        if life_count != self.life_count:
            return
        self._alarms.discard(instant)
        planned_at, process = self._planned_at, self.process
        if planned_at is None:
            return
        if planned_at > instant:
            self._set_alarm(planned_at)
            return
        self._planned_at = None
        if process is not None and not self.is_paused and not self.is_stuck:
            self.guarded(lambda: self._pass(process))

    def _pass(self, process: Process) -> None:
        """Do one pass of the driver's loop."""
        loop, mounted = process.loop, process.mounted
        mounted.busy_ns = 0
        finished, is_busy = loop.serve(process.poll)
        self._leave(process, finished)
        for note_stepped in self._observers.stepped:
            note_stepped(self.number)
        if self._is_to_compact:
            self._is_to_compact = False
            loop.compact_every_store()
        now = self.agenda.now
        if is_busy:
            self._active_at = now
        elif loop.is_compacting:
            loop.compact_on()
        elif now - self._active_at >= IDLE_NS and process.waits_for_rest:
            self._active_at = now
            loop.rest()
        self._busy_until = now + mounted.busy_ns
        if loop.is_compacting:
            self._plan(now)
        elif process.waits_for_rest:
            self._plan(self._active_at + IDLE_NS)
        deadline = loop.next_deadline()
        if deadline is not None:
            left_ns = deadline - self.clock()
            if left_ns > 0 and self._rate != 1.0:
                left_ns = int(left_ns / self._rate) + 1
            self._plan(now + max(0, left_ns))

    def _leave(self, process: Process, finished: Sequence[Released]) -> None:
        """Let everything leave that may."""
        for change in process.changes:
            self._trace.note("role", self.number, change)
            for note_changed in self._observers.changed:
                note_changed(self.number, change)
        process.changes.clear()
        for released in finished:
            for event in released.events:
                for note_happened in self._observers.happened:
                    note_happened(self.number, event)
            messages: Sequence[Outbound] = released.messages
            if released.service_records:
                # What a deleted queue answers leaves before it goes, a reply once a created one is there: as a daemon.
                self._send([each for each in messages if not isinstance(each, CommandReply)])
                self._surroundings.hosting_changed(self.number)
                messages = [each for each in messages if isinstance(each, CommandReply)]
            self._send(messages)

    def _send(self, messages: Sequence[Outbound]) -> None:
        for message in messages:
            self._trace.note("send", self.number, message)
            for note_released in self._observers.released:
                note_released(self.number, message)
            self._later(partial(self._surroundings.send, self.number, message))
            if self.crash_at is CrashPoint.IN_ACKNOWLEDGMENT:
                raise PowerFailed

    def _carry(self, kind: str, recipient: str, pieces: Sequence[bytes]) -> None:
        self._later(partial(self._surroundings.carry, self.number, kind, recipient, pieces))

    def _later(self, leave: Callable[[], None]) -> None:
        """Let something leave: once the process has waited for the disk as long as it did in this pass."""
        busy_ns = 0 if self.disk.mounted is None else self.disk.mounted.busy_ns
        if not busy_ns:
            leave()
            return
        life_count = self.life_count
        self.agenda.after(busy_ns, lambda: leave() if life_count == self.life_count else None)

    def _voted(self) -> None:
        if self.crash_at is CrashPoint.AFTER_VOTE:
            raise PowerFailed


def _hand_over(replication: Replication) -> None:
    replication.hand_over(waits=False)
