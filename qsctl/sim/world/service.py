"""One simulated service instance: a driver of `core.turn` on virtual time, with a disk that it can lose its power over.

Decides: what a driver does, in the order that `core.turn` and `core.high_availability.member` demand, and where in it a
crash may fall. One sync is in progress at a time; what gathers meanwhile is the next group. A sync that failed is never
tried again: replicas fall silent until the service starts again, and a service that stores for itself alone ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Final

from qsctl.core.high_availability.frames import Frame, Vote
from qsctl.core.high_availability.roles import Role
from qsctl.core.messages import Inbound, Outbound
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.settings import ServiceSettings
from qsctl.errors import Refused
from qsctl.identity import DrawIncarnation, SampleIdentity
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.sim.world.agenda import Trace, WorldAgenda
from qsctl.sim.world.configuration import instance_name
from qsctl.sim.world.disk import Disk, DiskRefuses
from qsctl.sim.world.history import Audience
from qsctl.sim.world.life import Life, WriteGroup
from qsctl.sim.world.vocabulary import CrashPoint

CLOCK_BEGINS_NS: Final[Nanoseconds] = 3600 * SECOND_NS
"""What a right clock shows when a world begins: one that is set back goes on from there."""


class Surroundings:
    """What a service reaches: programs by their sessions, and other services. The world gives them."""

    def send(self, service: int, message: Outbound) -> None:
        """Carry a message to the program that it is for."""

    def send_frame(self, service: int, recipient: str, frame: Frame) -> None:
        """Carry a frame to another service."""

    def service_started(self, service: int) -> None:
        """Let programs be discovered."""

    def service_ended(self, service: int) -> None:
        """Lose what is on its way."""

    def hosting_changed(self, service: int) -> None:
        """Let programs discover, and lose, what was created and deleted."""


class SimulatedService:
    """One service instance, which may be down, paused, or running.

    Args:
        number: its number, from 1.
        settings: its configuration.
        names: the application names of the cluster's members.
        agenda: the clock of the world.
        trace: where everything is noted.
        disk: what outlives it.
        random: draws how long it waits before elections.
        draw: gives each creation its incarnation.
        surroundings: where its messages go.
        observers: who see what it does.
        compact_records: after so many records a stream is compacted; 0: never.
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
        disk: Disk,
        random: Random,
        draw: DrawIncarnation,
        surroundings: Surroundings,
        observers: Audience,
        compact_records: int,
        configuration: ReplicationSettings | None = None,
    ) -> None:
        self.number = number
        self.settings = settings
        self._names = names
        self._agenda = agenda
        self._trace = trace
        self.disk = disk
        self._random = random
        self._draw_incarnation = draw
        self._surroundings = surroundings
        self._observers = observers
        self._compact_records = compact_records
        self._configuration = configuration
        self.life: Life | None = None
        """None: it is down."""
        self.life_count = 0
        """How often it was started or ended: what was planned in an earlier life never happens."""
        self.is_gone = False
        """Whether it never starts again."""
        self.is_paused = False
        self.crash_at: CrashPoint | None = None
        """Where the next crash falls; None: no crash waits."""
        self.skew_ns: Nanoseconds = 0
        """How far its clock is ahead of the world's."""
        self.jitter: float | None = None
        """What it draws for each wait before an election; None: random."""
        self._is_to_compact = False
        self._inbox: list[Inbound] = []
        self._frames: list[Frame] = []
        self._planned_at: Nanoseconds | None = None
        self._syncing: WriteGroup | None = None
        self._is_synced = False

    @property
    def is_up(self) -> bool:
        """Whether it runs, or is paused."""
        return self.life is not None

    @property
    def now(self) -> Nanoseconds:
        """The instant by its own clock."""
        return CLOCK_BEGINS_NS + self._agenda.now + self.skew_ns

    # What can be done to it.

    def start(self) -> None:
        """Begin with what the disk holds."""
        if self.life is not None or self.is_gone:
            return
        self._trace.note("start", self.number)
        self.is_paused = False
        self.crash_at = None
        self.life_count += 1
        self.life = life = Life(
            self.settings,
            self._names,
            self.disk,
            self.now,
            self._draw_jitter,
            self._draw_incarnation,
            self._compact_records,
            self._configuration,
        )
        life.restore()
        for note_started in self._observers.started:
            note_started(self.number)
        life.begin(self.now)
        self._surroundings.service_started(self.number)
        self._plan(self._agenda.now)

    def end(self) -> None:
        """Lose the power."""
        if self.life is None:
            return
        self._trace.note("end", self.number)
        self.life = None
        self.life_count += 1
        self.is_paused = False
        self.crash_at = None
        self._inbox, self._frames = [], []
        self._planned_at = None
        self._syncing, self._is_synced = None, False
        kept = self.disk.crash()
        for note_stored in self._observers.stored:
            note_stored(self.number, kept)
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

    def force_quorum(self, hosting_counts: Mapping[str, int]) -> list[str]:
        """Do as an operator does: let a group form where its state asks for that word, once all with a replica answer.

        Args:
            hosting_counts: how many services have a replica, by stream.

        Returns:
            The streams for which the word was given.
        """
        forced: list[str] = []
        if self.life is None or self.is_paused:
            return forced
        now = self.life.member.time.now
        for stream, replica in self.life.member.replicas.items():
            if "force-quorum" in replica.lack(now) and replica.answer_count(now) >= hosting_counts[stream] - 1:
                with contextlib.suppress(Refused):
                    replica.check_force(now)
                    replica.force(now)
                    forced.append(stream)
        self.receive(())
        return forced

    @property
    def is_master_of_configuration(self) -> bool:
        """Whether it puts commands in their order."""
        configuration = None if self.life is None else self.life.member.configuration
        return configuration is not None and configuration.replica.is_master

    def hand_over(self) -> None:
        """Let others be masters of what it is master of."""
        if self.life is not None and not self.is_paused:
            for replica in self.life.member.replicas.values():
                replica.hand_over(self.life.member.time.now, waits=False)
            self.receive(())

    # What reaches it.

    def receive(self, messages: Sequence[Inbound]) -> None:
        """Take messages that have come."""
        if self.is_up:
            self._inbox += messages
            self._plan(self._agenda.now)

    def receive_frame(self, life_count: int, frame: Frame) -> None:
        """Take a frame of another service that was sent to this life."""
        if self.is_up and life_count == self.life_count:
            self._trace.note("frame", self.number, frame)
            self._frames.append(frame)
            self._plan(self._agenda.now)

    # What can be seen of it.

    def held(self) -> set[tuple[str, SampleIdentity]]:
        """What its queues hold, where it decides about them."""
        return set() if self.life is None else set(self.life.held())

    @property
    def hosted(self) -> Mapping[str, SharedReaderQueue]:
        """The queues that it hosts, by their full names."""
        return {} if self.life is None else self.life.engine.hosted.by_name

    def is_master(self, queue: str) -> bool:
        """Whether it decides about a queue."""
        return self.life is not None and self.life.is_master(queue)

    @property
    def has_failed(self) -> bool:
        """Whether a replica is silent, because its store failed, until the service starts again."""
        return self.life is not None and any(each.role is Role.FAILED for each in self.life.member.replicas.values())

    def epoch(self, queue: str) -> int:
        """The epoch of a queue's replica; 0 where there is none."""
        replica = None if self.life is None else self.life.replica(queue)
        return 0 if replica is None else replica.epoch

    def has_voted_for(self, number: int) -> bool:
        """Whether its vote for another is durable."""
        return any(stream.hard_state.vote == instance_name(number) for stream in self.disk.streams.values())

    # Its loop.

    def _draw_jitter(self) -> float:
        drawn = self._random.random()
        return drawn if self.jitter is None else self.jitter

    def _plan(self, instant: Nanoseconds) -> None:
        """Do a pass at an instant, unless one is planned before."""
        if self._planned_at is not None and self._planned_at <= instant:
            return
        self._planned_at = instant
        life_count = self.life_count
        self._agenda.at(instant, lambda: self._pass_if(life_count, instant))

    def _pass_if(self, life_count: int, instant: Nanoseconds) -> None:
        if life_count == self.life_count and instant == self._planned_at:
            self._planned_at = None
            if self.life is not None and not self.is_paused:
                self._pass(self.life)

    def _pass(self, life: Life) -> None:
        """Do one pass of the driver's loop."""
        if self._is_synced:
            self._report(life)
        messages, self._inbox = self._inbox, []
        frames, self._frames = self._frames, []
        life.receive(self.now, messages, frames)
        self._store(life)
        if self.life is not life or not self._send(life):
            return
        for change in life.member.pop_changes():
            self._trace.note("role", self.number, change)
            for note_changed in self._observers.changed:
                note_changed(self.number, change)
        for note_stepped in self._observers.stepped:
            note_stepped(self.number)
        deadline = life.turn.next_deadline()
        if deadline is not None:
            self._plan(max(self._agenda.now, deadline - CLOCK_BEGINS_NS - self.skew_ns))

    def _store(self, life: Life) -> None:
        """Write what gathered, unless a sync is in progress."""
        while self._syncing is None and self.life is life:
            group = life.to_write()
            if group is None:
                group = life.to_compact(is_wanted=self._is_to_compact)
                self._is_to_compact = False
                if group is None:
                    return
            self._syncing = group
            if not group.operations and not group.logs:
                self._report(life)
                continue
            try:
                self.disk.write(group.operations, group.logs)
            except DiskRefuses as refusal:
                self._refused(life, group, refusal)
                continue
            self._agenda.after(self.disk.sync_ns, partial(self._synced, self.life_count, life, group))

    def _synced(self, life_count: int, life: Life, group: WriteGroup) -> None:
        if life_count != self.life_count:
            return
        if self.crash_at is CrashPoint.BEFORE_SYNC:
            self.end()
            return
        try:
            self.disk.sync()
        except DiskRefuses as refusal:
            kept = self.disk.crash()
            for note_stored in self._observers.stored:
                note_stored(self.number, kept)
            self._refused(life, group, refusal)
            self._plan(self._agenda.now)
            return
        operations = group.all_operations
        self._trace.note("synced", self.number, len(operations))
        for note_stored in self._observers.stored:
            note_stored(self.number, operations)
        if self.crash_at is CrashPoint.AFTER_SYNC:
            self.end()
            return
        self._is_synced = True
        if not self.is_paused:
            self._plan(self._agenda.now)

    def _report(self, life: Life) -> None:
        group, self._syncing, self._is_synced = self._syncing, None, False
        if group is not None:
            life.report(self.now, group)
            if group.turns.changes_queues:
                self._surroundings.hosting_changed(self.number)

    def _send(self, life: Life) -> bool:
        """Let everything leave that may; False: the service has ended."""
        for recipient, frame in life.member.pop_frames():
            self._surroundings.send_frame(self.number, recipient, frame)
            is_vote = isinstance(frame, Vote) and frame.granted and not frame.is_trial
            if self.crash_at is CrashPoint.AFTER_VOTE and is_vote:
                self.end()
                return False
        for released in life.turn.to_send():
            for event in released.events:
                for note_happened in self._observers.happened:
                    note_happened(self.number, event)
            for message in released.messages:
                self._trace.note("send", self.number, message)
                for note_released in self._observers.released:
                    note_released(self.number, message)
                self._surroundings.send(self.number, message)
                if self.crash_at is CrashPoint.IN_ACKNOWLEDGMENT:
                    self.end()
                    return False
        return True

    def _refused(self, life: Life, group: WriteGroup, refusal: DiskRefuses) -> None:
        """The disk refuses: what is replicated falls silent, what is not ends the service."""
        self._trace.note("disk", self.number, refusal.reason)
        self._syncing, self._is_synced = None, False
        if group.is_replicated_alone:
            life.fail(self.now)
        else:
            self.end()
