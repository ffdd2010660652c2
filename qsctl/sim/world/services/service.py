"""One simulated service instance: the live driver (`_process`) on virtual time, and the faults that can happen to it.

Decides when the driver makes a pass, and at which points a crash may occur. While the process waits for the disk it
does nothing else, and its messages leave after that wait. A process whose disk refuses the service as a whole ends, and
one whose disk never answers does nothing more until it is killed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Final

from qsctl.core.events import one_by_one as single_events
from qsctl.core.high_availability.cluster_configuration import CONFIGURATION_STREAM
from qsctl.core.high_availability.replica import Replica
from qsctl.core.high_availability.roles import Role
from qsctl.core.high_availability.versions import VERSION
from qsctl.core.messages import CommandReply, Inbound, Outbound
from qsctl.core.messages import one_by_one as single_messages
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.records import EpochBegan
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
from qsctl.sim.world.services._process import Process
from qsctl.sim.world.services.configuration import instance_name
from qsctl.sim.world.services.history import Audience
from qsctl.sim.world.services.stored import Append, Operation, StoredState

CLOCK_BEGINS_NS: Final[Nanoseconds] = 3600 * SECOND_NS
"""Reading of a correct clock at the beginning of a world: large enough for clocks that are set back."""


IDLE_NS: Final[Nanoseconds] = 100 * MILLISECOND_NS
"""Time without work after which a service does the work that is deferred to a quiet moment, as the daemon does."""

OPERATIONS_TO_FAILURE_MAX: Final = 12
"""Upper bound of the number of file operations before a crash in the middle of writing."""


class Surroundings:
    """The environment of a service: programs by their sessions, and other services. The world implements it."""

    def send(self, service: int, message: Outbound) -> None:
        """Send a message to the program that it is addressed to."""

    def carry(self, service: int, kind: str, recipient: str, pieces: Sequence[bytes], *, passes: bool) -> None:
        """Send the fragments of a message to another service; whether it passes others that wait."""

    def service_started(self, service: int) -> None:
        """Let the service discover its programs."""

    def service_ended(self, service: int) -> None:
        """Drop the messages in transit between the service and its programs."""

    def service_left(self, service: int) -> None:
        """Let the other services notice at once that the service stopped in order."""

    def hosting_changed(self, service: int) -> None:
        """Let programs discover the queues that were created, and lose those that were deleted."""


class SimulatedService:
    """One service instance, which may be down, paused, or running.

    Args:
        number: its number, from 1.
        settings: its configuration.
        names: the application names of the cluster's members.
        agenda: the clock of the world.
        trace: records everything that happens.
        disk: its files, which outlive its processes.
        random: draws its waits before elections, and the points of crashes.
        draw: draws the incarnation of each creation of a queue.
        surroundings: carries its messages.
        observers: notified of its actions.
        compact_records: number of records after which stores are compacted; 0: as the live defaults.
        file_max_size_kb: the size at which a file of its stores is followed by another.
        configuration: how the configuration is replicated; None if it is not.
        master_priority: that of the service as master.
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
        master_priority: int = 0,
    ) -> None:
        self.number = number
        self.settings = settings
        self._names = names
        self.agenda = agenda
        self._trace = trace
        self.disk = disk
        self.stored = StoredState()
        """The judges' account of the service's disk."""
        self._random = random
        self.draw = draw
        self._surroundings = surroundings
        self._observers = observers
        self._compact_records = compact_records
        self._file_max_size_kb = file_max_size_kb
        self._configuration = configuration
        self._master_priority = master_priority
        self.process: Process | None = None
        """The present process; None while the service is down."""
        self.life_count = 0
        """Number of starts and ends; an event that was scheduled under another number is ignored."""
        self.is_gone = False
        """Whether the service was destroyed and never starts again."""
        self.version = VERSION
        """The version of the letters which its next process exchanges with other services."""
        self.is_paused = False
        self.is_stuck = False
        """Whether the process waits for the disk for ever."""
        self.crash_at: CrashPoint | None = None
        """The point of the next crash; None if none is planned."""
        self.skew_ns: Nanoseconds = 0
        """Offset of the service's clock from the world's, in addition to the drift by its rate."""
        self._rate = 1.0
        self._rate_since: tuple[Nanoseconds, Nanoseconds] = (0, CLOCK_BEGINS_NS)
        """The world's instant since which the clock has run at its present rate, and its reading then."""
        self.fixed_jitter: float | None = None
        """Fixed jitter of each wait before an election; None if it is drawn."""
        self._is_to_compact = False
        self._set_back: list[str] = []
        """Queues that were reset to their stored state; judges learn of it after the events of the turns before."""
        self._planned_at: Nanoseconds | None = None
        """Instant of the next pass; None if only a message or another event causes one."""
        self._alarms: set[Nanoseconds] = set()
        """Scheduled instants at which a pass that is due begins."""
        self._active_at: Nanoseconds = 0
        self._busy_until: Nanoseconds = 0

    @property
    def is_up(self) -> bool:
        """Return whether the service has a process, running or paused."""
        return self.process is not None

    def clock(self) -> Nanoseconds:
        """Return the reading of the service's own clock."""
        since, shown = self._rate_since
        return shown + int((self.agenda.now - since) * self._rate) + self.skew_ns

    # Actions on the service.

    def start(self) -> None:
        """Start a process from the content of the disk, unless the service is up or destroyed."""
        if self.process is not None or self.is_gone:
            return
        self._trace.note("start", self.number)
        self.is_paused = self.is_stuck = False
        self.crash_at = None
        self._set_back.clear()
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
                self._note_lost()  # as an operator, continue with the intact records
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
            self.version,
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
            master_priority=self._master_priority,
        )

    def _report_storage(self, event: str, queue: str, reason: str) -> None:
        self._trace.note(event, self.number, queue, reason)
        if event == "storage_failed" and queue:
            self._set_back.append(queue)

    def _note_lost(self) -> None:
        """Notify the judges that the content of this disk is not to be relied on any more."""
        for note_lost_disk in self._observers.lost_disk:
            note_lost_disk(self.number)

    def end(self) -> None:
        """End the process by a power failure."""
        self._end("end", self.disk.crash)

    def leave(self) -> None:
        """Stop in order, as at SIGTERM; ignored while paused or stuck."""
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
        """Pause the process, as SIGSTOP does; the network and the disk continue."""
        if self.is_up and not self.is_paused:
            self._trace.note("pause", self.number)
            self.is_paused = True
            for note_paused in self._observers.paused:
                note_paused(self.number)

    def resume(self) -> None:
        """Continue after a pause."""
        if self.is_paused:
            self._trace.note("resume", self.number)
            self.is_paused = False
            for note_resumed in self._observers.resumed:
                note_resumed(self.number)
            self._plan(self.agenda.now)

    def crash_when(self, point: CrashPoint) -> None:
        """Crash when the service next reaches this point."""
        if self.process is not None:
            self.crash_at = point
            if point is CrashPoint.IN_WRITE:
                self.process.mounted.fails_after = self._random.randrange(OPERATIONS_TO_FAILURE_MAX)

    def crash_no_more(self) -> None:
        """Cancel a planned crash."""
        self.crash_at = None
        if self.process is not None:
            self.process.mounted.fails_after = None

    def skew(self, skew_ns: Nanoseconds) -> None:
        """Set the offset of the service's clock from the world's."""
        self.skew_ns = skew_ns
        self.look_again()

    def run_clock(self, rate: float) -> None:
        """Run the service's clock at another rate than the world's, from its present reading on."""
        self._rate_since = (self.agenda.now, self.clock() - self.skew_ns)
        self._rate = rate
        self.look_again()

    def compact_soon(self) -> None:
        """Compact the stores in the next pass, whatever their length."""
        self._is_to_compact = True
        self.look_again()

    def repair_disk(self) -> None:
        """Repair the disk; a process that is stuck in it is killed and restarted, as by a supervisor."""
        self.disk.repair()
        if self.is_stuck:
            self._end("end", self.disk.kill)
            self.start()

    def force_quorum(self, hosting_counts: Mapping[str, int]) -> list[str]:
        """Force a quorum, as an operator does, for each replica that asks for it and has answers from all other hosts.

        Args:
            hosting_counts: number of services that have a replica, by stream.

        Returns:
            The streams whose quorum was forced.
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
        """Return whether the service is master of the replicated configuration, and so orders commands."""
        replica = self.replicas.get(CONFIGURATION_STREAM)
        return replica is not None and replica.is_master

    def hand_over(self) -> None:
        """Hand over the service's masterships to other members."""
        replication = None if self.process is None else self.process.replication
        if replication is not None and not self.is_paused and not self.is_stuck:
            self.guarded(lambda: _hand_over(replication))
            self.look_again()

    # Messages to the service.

    def receive(self, messages: Sequence[Inbound]) -> None:
        """Pass messages to the process; they are lost while the service is down."""
        if self.process is not None:
            self.process.inbox += messages
            self.look_again()

    def arrive(self, life_count: int, kind: str, pieces: Sequence[bytes]) -> None:
        """Receive fragments of a message of another service, unless the service was restarted since they were sent."""
        if self.process is not None and life_count == self.life_count:
            link = self.process.links.opened.get(kind)
            for each in pieces:
                self._trace.note("datagram", self.number, each)
                if link is not None:
                    link.arrive(each)
            if link is not None:
                self.look_again()

    # The observable state.

    def held(self) -> set[tuple[str, SampleIdentity]]:
        """Return the samples, with their queues, that are held by the queues that the service is master of."""
        return set() if self.process is None else set(self.process.held())

    @property
    def hosted(self) -> Mapping[str, SharedReaderQueue]:
        """Return the hosted queues, by their full names."""
        return {} if self.process is None else self.process.engine.hosted.by_name

    @property
    def replicas(self) -> Mapping[str, Replica]:
        """Return the service's replicas, by stream."""
        return {} if self.process is None else self.process.replicas

    def is_master(self, queue: str) -> bool:
        """Return whether the service hosts a queue and, if it is replicated, is its master."""
        return self.process is not None and self.process.is_master(queue)

    @property
    def has_failed(self) -> bool:
        """Return whether the log of its replicas failed, which excludes them, and later ones, until it restarts."""
        log = None if self.process is None else self.process.watch.replica_log
        return any(each.role is Role.FAILED for each in self.replicas.values()) or (log is not None and log.has_failed)

    def epoch(self, queue: str) -> int:
        """Return the epoch of a queue's replica; 0 if there is none."""
        replica = self.replica(queue)
        return 0 if replica is None else replica.epoch

    def replica(self, queue: str) -> Replica | None:
        """Return a queue's replica; None if there is none."""
        return None if self.process is None else self.process.replica(queue)

    def has_voted_for(self, number: int) -> bool:
        """Return whether a durable vote of the service is for the service of this number."""
        return any(stream.hard_state.vote == instance_name(number) for stream in self.stored.streams.values())

    # The machine of its process.

    def jitter(self) -> float:
        """Draw the jitter of a wait before an election."""
        drawn = self._random.random()
        return drawn if self.fixed_jitter is None else self.fixed_jitter

    def note_stored(self, operations: Sequence[Operation]) -> None:
        """Notify the observers of operations that are durable."""
        if operations:
            self._trace.note("synced", self.number, len(operations))
            for note_stored in self._observers.stored:
                note_stored(self.number, operations)
            if self.crash_at is CrashPoint.ELECTED and any(map(self._begins_mastership, operations)):
                raise PowerFailed

    def _begins_mastership(self, operation: Operation) -> bool:
        """Return whether an operation appends the first entry of this service as a master."""
        return isinstance(operation, Append) and any(
            isinstance(each, EpochBegan) and each.master == instance_name(self.number) for each in operation.records
        )

    def before_sync(self) -> None:
        """Raise PowerFailed if a crash is planned before a sync."""
        if self.crash_at is CrashPoint.BEFORE_SYNC:
            raise PowerFailed

    def after_sync(self) -> None:
        """Raise PowerFailed if a crash is planned after a sync."""
        if self.crash_at is CrashPoint.AFTER_SYNC:
            raise PowerFailed

    def guarded(self, do: Callable[[], None]) -> None:
        """Run work of the process; end it on a power failure or damage, and mark it as stuck if the disk hangs."""
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
        """Schedule a pass as soon as possible."""
        if self.process is not None:
            self._plan(self.agenda.now)

    # The driver's loop.

    def _plan(self, instant: Nanoseconds) -> None:
        """Schedule a pass at an instant, unless an earlier one is scheduled.

        An alarm that was set for an earlier instant remains, and sets the next one when it fires. So a deadline that
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
        """Make one pass of the driver's loop, do deferred work, and schedule the next pass."""
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
        """Report role changes, and release the events and messages of finished turns."""
        for change in process.changes:
            self._trace.note("role", self.number, change)
            for note_changed in self._observers.changed:
                note_changed(self.number, change)
        process.changes.clear()
        for released in finished:
            for event in single_events(released.events):
                for note_happened in self._observers.happened:
                    note_happened(self.number, event)
            messages: Sequence[Outbound] = released.messages
            if released.service_records:
                # As in the daemon: answers of a deleted queue are sent before its removal, replies after a creation.
                self._send([each for each in messages if not isinstance(each, CommandReply)])
                self._surroundings.hosting_changed(self.number)
                messages = [each for each in messages if isinstance(each, CommandReply)]
            self._send(messages)
        while self._set_back:
            queue = self._set_back.pop()
            for note_set_back in self._observers.set_back:
                note_set_back(self.number, queue)

    def _send(self, messages: Sequence[Outbound]) -> None:
        for message in single_messages(messages):
            self._trace.note("send", self.number, message)
            for note_released in self._observers.released:
                note_released(self.number, message)
            self._later(partial(self._surroundings.send, self.number, message))
            if self.crash_at is CrashPoint.IN_ACKNOWLEDGMENT:
                raise PowerFailed

    def _carry(self, kind: str, recipient: str, pieces: Sequence[bytes], passes: bool) -> None:
        self._later(partial(self._surroundings.carry, self.number, kind, recipient, pieces, passes=passes))

    def _later(self, leave: Callable[[], None]) -> None:
        """Call `leave` after the time that the process waited for the disk in this pass; never if it ended before."""
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
