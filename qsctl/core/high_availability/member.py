"""One process of a replication cluster: a service engine and its replicas, stepped by `Turn` as an engine is [QS 7].

Decides: what of the engine's work is a replica's business: its records go into the log, and its messages wait for the
quorum. Everything else, such as a queue that is not replicated, goes on as without replication.

A driver does the following beside what `qsctl.core.turn` asks of it::

    member.receive_frames(now, frames)           # from other members, in any order
    ... turn.receive(...), turn.step(...)         # elections and time-outs are due with the engine's deadlines
    for write in member.pop_writes():            # in this order; see `LogWrite`
        store(write)
    sync()
    member.stored(now, stream, number)           # as far as it is durable
    for recipient, frame in member.pop_frames():
        network.send(recipient, frame)

A store that fails is reported by `store_failed`; it must not be tried again before the process starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import chain
from typing import Final, TypeAlias, assert_never, cast

from qsctl.core.admin.command import ChangeMembers, Drain, ForceQuorum, GetMessages, GetStatus, MemberAction, StepDown
from qsctl.core.admin.reply import Reply, ReturnCode, refusal
from qsctl.core.admin.target import matches
from qsctl.core.engine import ServiceEngine
from qsctl.core.events import Event
from qsctl.core.high_availability._changes import check_names, check_size, refuse_change, strictest
from qsctl.core.high_availability._followed import Followed
from qsctl.core.high_availability._follower import Follower
from qsctl.core.high_availability._groups import incarnation_of_entry, incarnation_of_request
from qsctl.core.high_availability._preferences import OwnPreference
from qsctl.core.high_availability._status import WITH_STATUS, configuration_status, status_of, with_replication
from qsctl.core.high_availability._steady_time import SteadyTime
from qsctl.core.high_availability.ballot import HardState
from qsctl.core.high_availability.cluster_configuration import CONFIGURATION_STREAM, created_names
from qsctl.core.high_availability.compaction import COMPACTED_OVER_COUNT
from qsctl.core.high_availability.configuration import Configuration, configuration_of
from qsctl.core.high_availability.frames import Frame
from qsctl.core.high_availability.outgoing import LogWrite
from qsctl.core.high_availability.replica import Replica
from qsctl.core.high_availability.roles import FrameRefused, Jitter, RoleChanged, StoredLog
from qsctl.core.high_availability.versions import Versions
from qsctl.core.messages import (
    Acknowledgment,
    CommandReply,
    CommandRequest,
    ConsumerLeft,
    Delivery,
    Inbound,
    Outbound,
    RunAccepted,
    RunAcknowledgment,
    RunDelivery,
    Write,
    WriteAcknowledgment,
    WriteRun,
)
from qsctl.core.queue.settings import PersistenceKind, ReplicationSettings
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.ready import Batch, Input, Ready, StreamName
from qsctl.core.records import EpochBegan, MembersChanged, QueueStreamRecord
from qsctl.core.statistics.status import ReplicationStatus
from qsctl.errors import QsctlError, Refused
from qsctl.identity import NIL_INCARNATION, Incarnation, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

WRITES_MAX: Final = 2**40
"""More writes than a replica ever asks for; those of the next one, perhaps of the same stream, are numbered behind."""

OF_NO_REPLICA: Final = -1
"""In the place of a replica's number ÷ `WRITES_MAX`, where the log is of a queue that was deleted: see `outlived`."""

CREATIONS_MAX: Final = 10_000
"""Names that commands were to create of which the incarnation is remembered."""

Intervention: TypeAlias = ForceQuorum | ChangeMembers | StepDown | Drain
"""Commands of operators about the replicas of a member."""

_RESTING: Final = frozenset({Delivery, RunAccepted, RunDelivery, WriteAcknowledgment})
"""The messages that rest on records about samples."""

REFUSALS_MAX: Final = 100
"""Refused frames of which the reasons are kept for the driver; all are counted."""


class Member:
    """A service process with its replicas.

    Args:
        engine: the service; it journals replicated queues (`Journal.REPLICATED`) and has received nothing. Its
            application name is the member's. The service's own stream is replayed into it before: it makes the queues.
        names: the application names of all members that the cluster was formed with.
        started_at: the start of the process, on its own clock.
        jitter: gives the next number in [0, 1), to spread elections.
        compacted_over_count: entries that a log keeps before it is compacted.
        configuration: how the configuration is replicated; None: it is not [QS 7.2].
        keeps_configuration: whether the log of the commands is stored: where the service's own state is.
        is_joining: whether this member is not among them: it has no vote until it is promoted.
        master_priority: that of this member as master; the voter with the highest becomes the master.

    Raises:
        Refused: the names are not as many as a queue's `queue_instances`, or the member's own is not among them, or one
            is there twice.
    """

    def __init__(
        self,
        engine: ServiceEngine,
        names: Sequence[str],
        *,
        started_at: Nanoseconds,
        jitter: Jitter,
        compacted_over_count: int = COMPACTED_OVER_COUNT,
        configuration: ReplicationSettings | None = None,
        keeps_configuration: bool = True,
        is_joining: bool = False,
        master_priority: int = 0,
    ) -> None:
        self.engine = engine
        self.name = engine.hosted.application_name
        check_names(self.name, names, is_joining=is_joining)
        self.names = tuple(sorted(names))
        """Those of the members that the cluster was formed with."""
        self._is_joining = is_joining
        self.replicas: dict[StreamName, Replica] = {}
        """One a replication group, by the name of its stream."""
        self.outlived: set[StreamName] = set()
        """Streams whose log in the store is of a queue that was deleted: the driver drops it before it writes one."""
        self.stored_before: Callable[[StreamName], StoredLog] = lambda _: StoredLog()
        """Gives what an earlier run stored of a stream whose queues are created while the service runs [QS 2.14.2]."""
        self.refused_frame_count = 0
        """Frames that no replica of their group can have sent."""
        self._refusals: list[FrameRefused] = []
        self.versions = Versions()
        """Those of the other members, as the driver reads them in letters."""
        self.note = ""
        """The driver's note about the cluster, for the status of queues; empty: none."""
        self.preference = OwnPreference(master_priority)
        """That for this member as master."""
        self._drains: list[SampleIdentity] = []
        """Commands to drain it that have no answer yet."""
        self._started_at = started_at
        self._is_started = False
        self.time = SteadyTime(started_at, self._lose_time)
        """That of the replicas."""
        self.ended: dict[StreamName, HardState] = {}
        """The durable state of deleted queues' replicas, by stream: the groups that they were in."""
        self._creations: dict[str, Incarnation] = {}
        self.engine.hosted.of_group = self._given
        self._jitter = jitter
        self._compacted_over_count = compacted_over_count
        self._by_queue: dict[str, Replica] = {}
        self._replica_count = 0
        self.configuration: Configuration | None = None
        """None: it is not replicated."""
        if configuration is not None:
            self.configuration = configuration_of(
                engine,
                configuration,
                len(names),
                lambda follower: self._replica_of(CONFIGURATION_STREAM, follower, configuration, keeps_configuration),
            )
        self._host()
        self._batches: list[Batch] = []
        self._messages: list[Outbound] = []
        self._events: list[Event] = []
        self._inputs: list[Input] = []
        self._may_lack_payloads = self._moves_samples = False

    @property
    def streams(self) -> tuple[StreamName, ...]:
        """The streams of the replication groups; that of the configuration first."""
        return tuple(self.replicas)

    @property
    def master_timeout_ns(self) -> Nanoseconds:
        """The longest `master_timeout` of the groups; 0: there is none."""
        return max((each.master_timeout_ns for each in self.replicas.values()), default=0)

    # Start.

    def restore(self, stream: StreamName, stored: StoredLog, *, is_lost: bool = False, is_new: bool = False) -> None:
        """Take up what a store has of a stream, before `start`.

        Args:
            stream: one of `streams` whose queues are persistent.
            stored: what was found.
            is_lost: the store of an earlier start is gone or damaged: the replica has no vote until it has caught up.
            is_new: there was no earlier start, as far as the driver can know: it has none until the group forms.
        """
        given, state = self.engine.hosted.deleted.get(stream, NIL_INCARNATION), stored.hard_state
        is_earlier = given and state.incarnation != given and given not in state.left
        if is_earlier and not is_lost and _has_log(stored):
            # The deletion and the creation reached the service's own state, and not the log of the replicas.
            self.outlived.add(stream)
            self.replicas[stream].create(given, state.leaving(state.incarnation), is_fresh=True)
            return
        if state.incarnation and _group_of_log(stored) not in (NIL_INCARNATION, state.incarnation):
            # Damage took the deletion between the logs of two groups: the entries are of the former one.
            self.outlived.add(stream)
            stored, is_lost, is_new = StoredLog(state), True, False
        self.replicas[stream].restore(self._started_at, stored, is_lost=is_lost, is_new=is_new)

    def rest(self, stream: StreamName, stored: StoredLog) -> bool:
        """Look at what a store has of a stream whose queues are not hosted; whether it is kept for another time.

        A configuration that dropped the queues deleted nothing. A command did: the log outlived it, and goes.
        """
        if stream not in self.engine.hosted.deleted or not _has_log(stored):
            return True
        self.outlived.add(stream)
        self.ended[stream] = stored.hard_state
        return False

    def start(self, now: Nanoseconds) -> None:
        """End the restore: the engine's, and that of every replica. Timers run from now on."""
        now = self.time.at(now)
        self.engine.finish_restore(now)
        for replica in self.replicas.values():
            replica.start(now)
        self._collect(now)
        for stream in self.engine.hosted.deleted.keys() - self.outlived:
            self.log_dropped(stream)
        self._is_started = True

    def log_dropped(self, stream: StreamName) -> None:
        """Report that the store has the log of a deleted queue no longer."""
        self.engine.hosted.log_dropped(stream)

    def know_members(self, names: Sequence[str]) -> None:
        """Set the names of the members, where some of those given at first were only placeholders: no member has them.

        Until then no replica here was elected or followed a master: placeholders neither vote nor send anything.

        Raises:
            Refused: they are not as many, or the member's own is not among them, or one occurs twice.
        """
        is_joining = self._is_joining and self.name not in names
        check_names(self.name, names, is_joining=is_joining)
        if len(names) != len(self.names):
            raise Refused(
                f"{len(names)} members are named, and the queues expect {len(self.names)}",
                remedy="Name as many members as queue_instances has.",
            )
        self.names, self._is_joining = tuple(sorted(names)), is_joining
        for replica in self.replicas.values():
            replica.name_members(self.time.now, self.names, is_joining=is_joining)

    # As an engine.

    def receive_all(self, now: Nanoseconds, messages: Iterable[Inbound]) -> None:
        """Process messages in order, as `ServiceEngine.receive_all` does."""
        now = self.time.at(now)
        configuration = self.configuration
        others: list[Inbound] = []
        participant = topic = ""
        takers: Sequence[SharedReaderQueue] = ()
        for message in messages:
            if type(message) is WriteRun and (run_takers := self._takers(message.participant, message.topic_name)):
                if others:
                    self.engine.receive_all(now, others)
                    others.clear()
                self._write_run(now, message, run_takers)
            elif type(message) is Write:
                if message.topic_name != topic or message.participant != participant:
                    participant, topic = message.participant, message.topic_name
                    takers = self._takers(participant, topic)
                if not takers:
                    others.append(message)
                    continue
                if others:
                    self.engine.receive_all(now, others)
                    others.clear()
                self._write(now, message, takers)
            elif (
                isinstance(message, Acknowledgment | RunAcknowledgment)
                and (replica := self._by_queue.get(message.queue)) is not None
            ):
                if replica.is_master:
                    others.append(message)
            elif type(message) is ConsumerLeft and (replica := self._by_queue.get(message.queue)) is not None:
                others.append(replica.clients.withdraw(message))
            elif type(message) is CommandRequest and configuration is not None and configuration.takes(message):
                configuration.receive(now, message)
            elif type(message) is CommandRequest and (refused := self._refuse_reading(now, message)) is not None:
                self._messages.append(refused)
            elif type(message) is CommandRequest and configuration is not None and message.command == GetStatus(None):
                if matches(message.target, self.name):
                    status = configuration_status(configuration.replica, now, self.note)
                    reply = Reply(ReturnCode.OK, body=status)
                    self._messages.append(CommandReply(message.request, self.name, reply))
            elif type(message) is CommandRequest and isinstance(message.command, Intervention):
                if matches(message.target, self.name):
                    self._intervene(now, message, message.command)
            else:
                if type(message) is CommandRequest:
                    self._note_creation(message)
                others.append(message)
        if others:
            self.engine.receive_all(now, others)
        self._collect(now)

    def advance(self, now: Nanoseconds) -> None:
        """Do everything that is due at `now`."""
        now = self.time.at(now)
        if self.configuration is not None:
            self.configuration.go_on(now)
        self.engine.advance(now)
        self._collect(now)
        for replica in self.replicas.values():
            replica.watch_disk(now)
            if replica.next_deadline() <= now:
                replica.advance(now)
                self._collect(now)
        self._answer_drains()

    def next_deadline(self) -> Nanoseconds | None:
        """Return when `advance` and `take_ready` next have something to do; None: only a message, frame or store
        changes that.

        An instant that has passed: now.
        """
        if self._messages or self._batches:
            return 0
        own = INFINITE_NS
        for replica in self.replicas.values():
            if replica.clients.has_released:
                return 0
            own = min(own, replica.next_deadline())
        if self.configuration is not None:
            own = min(own, self.configuration.next_deadline())
        engine = self.engine.next_deadline()
        deadline = own if engine is None else min(own, engine)
        return self.time.on_clock(deadline) if deadline < INFINITE_NS else None

    def take_ready(self) -> Ready:
        """Hand over what happened: of replicated queues the messages that may leave, of others everything."""
        for replica in self.replicas.values():
            if self.configuration is not None and replica is self.configuration.replica:
                for message in replica.clients.pop_released():
                    if type(message) is CommandReply:  # about the members, not about the configuration
                        self._messages.append(message)
                    else:
                        self.configuration.note_answer(self.time.now, message)
                self._messages += self.configuration.pop_replies()
            else:
                self._messages += replica.clients.pop_released()
        messages = [
            with_replication(each, self.status) if type(each) in WITH_STATUS else each for each in self._messages
        ]
        ready = Ready(self._batches, messages, self._events, self._may_lack_payloads, self._inputs, self._moves_samples)
        self._batches, self._messages, self._events, self._inputs = [], [], [], []
        self._moves_samples = False
        return ready

    def admit(self, request: CommandRequest) -> CommandReply | None:
        """Return the refusal of a command that the cluster could not follow; `Turn` asks before the engine does it."""
        if self.configuration is not None:
            return None  # it is decided once the command is ordered
        return refuse_change(self.engine.hosted, len(self.names), request)

    # As a member.

    def _lose_time(self, now: Nanoseconds) -> None:
        for replica in self.replicas.values():
            replica.lose_time(now)

    def receive_frames(self, now: Nanoseconds, frames: Iterable[Frame]) -> None:
        """Process what other members sent. What is of no stream here has no effect; see `pop_refusals` for the rest."""
        now = self.time.at(now)
        for each in self.replicas.values():
            each.notice_pause(now)
        for frame in frames:
            if (replica := self.replicas.get(frame.stream)) is not None:
                if reason := replica.receive(now, frame):
                    self._refuse(frame, reason)
                self._collect(now)

    def pop_refusals(self) -> list[FrameRefused]:
        """Return the frames that were refused since the last call, the first `REFUSALS_MAX` of them."""
        refusals, self._refusals = self._refusals, []
        return refusals

    def pop_writes(self) -> list[LogWrite]:
        """Return what is to be stored, in the order of doing."""
        return [write for replica in self.replicas.values() for write in replica.outgoing.pop_writes()]

    def stored(self, now: Nanoseconds, stream: StreamName, number: int) -> None:
        """Report that the writes of a stream up to this number are durable."""
        now = self.time.at(now)
        if (replica := self.replicas.get(stream)) is not None:
            replica.stored(now, number)
            self._collect(now)

    def disk_progressed(self) -> None:
        """Report that a part of what the stores write is durable: their disk does not hang."""
        for replica in self.replicas.values():
            replica.disk.synced()

    def store_failed(self, now: Nanoseconds, stream: StreamName) -> None:
        """Report that a write or sync failed: the replica is silent until the process starts again."""
        now = self.time.at(now)
        if (replica := self.replicas.get(stream)) is not None:
            replica.fail(now)
            self._collect(now)

    def pop_frames(self) -> list[tuple[str, Frame]]:
        """Return the frames that may leave, each with its recipient."""
        return [each for replica in self.replicas.values() for each in replica.outgoing.pop_frames()]

    def pop_changes(self) -> list[RoleChanged]:
        """Return the changes of roles since the last call, by stream."""
        changes: list[RoleChanged] = []
        for replica in self.replicas.values():
            changes += replica.changes
            replica.changes.clear()
        return changes

    def replica_of(self, queue: str) -> Replica | None:
        """Return the replica that a queue belongs to, by its full name; None: it is not replicated, or not hosted."""
        return self._by_queue.get(queue)

    def status(self, queue: str) -> ReplicationStatus | None:
        """Return the state of a queue's replica, by the queue's full name; None: it has none here."""
        replica = self._by_queue.get(queue)
        return None if replica is None else status_of(replica, self.time.now, self.note)

    def statuses(self) -> dict[str, ReplicationStatus]:
        """Return the state of each replicated queue's replica, by the queue's full name."""
        return {name: status_of(replica, self.time.now, self.note) for name, replica in self._by_queue.items()}

    def _refuse_reading(self, now: Nanoseconds, request: CommandRequest) -> CommandReply | None:
        """Return the refusal of a command that reads samples where no replica decides about them; None: it does not
        read samples.
        """
        if type(request.command) is not GetMessages or not matches(request.target, self.name):
            return None
        name = "/".join(each for _, each in request.command.queue.bare.names)
        replica = self._by_queue.get(name)
        if replica is None:
            return None
        if replica.members.is_witness(self.name):
            error = Refused(f"{name}: {self.name} is a witness, and holds no samples", remedy="Read at another member.")
            return CommandReply(request.request, self.name, refusal(error))
        if replica.master or request.command.allows_stale:
            return None
        error = Refused(
            f"{name} has no master now, and what this member holds may not be all: "
            f"{replica.lack(now) or replica.reason}",
            remedy="`qsctl get replication` shows the replicas; --allow-stale reads what this member holds.",
        )
        return CommandReply(request.request, self.name, refusal(error))

    def _intervene(self, now: Nanoseconds, request: CommandRequest, command: Intervention) -> None:
        """Carry out an operator's command about a replica of this member, or refuse it."""
        try:
            reply = self._intervention(now, request, command)
        except QsctlError as error:
            reply = refusal(error)
        if reply is not None:
            self._messages.append(CommandReply(request.request, self.name, reply))

    def _intervention(self, now: Nanoseconds, request: CommandRequest, command: Intervention) -> Reply | None:
        """Carry out an operator's command; return the reply, or None: it follows later.

        Raises:
            NotFound: there is no such queue.
            Refused: the message states why.
        """
        if isinstance(command, Drain):
            return self._drain(now, request, is_trial=command.is_trial)
        replica = self._intervened(command)
        match command:
            case ForceQuorum():
                reply = Reply(ReturnCode.OK, replica.check_force(now))
                if not command.is_trial:
                    replica.force(now)
                return reply
            case StepDown(_, wanted):
                successor = replica.check_step_down(now, wanted)
                if not command.is_trial:
                    replica.step_down(now, successor)
                    self._collect(now)
                return Reply(ReturnCode.OK, f"{replica.stream}: {self.name} hands over to {successor}")
            case ChangeMembers():
                if command.queue is None and command.action is MemberAction.ADD_WITNESS:
                    raise Refused(
                        f"{replica.stream}: a witness could not carry out the commands of the configuration",
                        remedy="Add it as a member; it can be a witness of queues.",
                    )
                changed = replica.check_member_change(now, command.action, command.member)
                reply = Reply(ReturnCode.OK, _list_of(changed))
                if command.is_trial:
                    return reply
                index = replica.change_members(now, changed)
                self._collect(now)  # before another change is checked
                replica.hold(CommandReply(request.request, self.name, reply, rests_on=index))
                replica.commit(now)
                return None
            case _:
                assert_never(command)

    def _drain(self, now: Nanoseconds, request: CommandRequest, *, is_trial: bool) -> Reply | None:
        led = [replica for replica in self.replicas.values() if replica.is_master]
        successors = {replica.stream: replica.check_drain(now) for replica in led}
        if is_trial:
            moved = "; ".join(f"{stream} to {successor}" for stream, successor in successors.items())
            return Reply(ReturnCode.OK, f"{self.name} hands over {moved or 'nothing: it is no master'}")
        self.preference.is_drained = True
        self._drains.append(request.request)
        for replica in self.replicas.values():
            replica.drain(now)
        self._collect(now)
        self._answer_drains()
        return None

    def _answer_drains(self) -> None:
        """Answer commands to drain this member, once it is the master of nothing."""
        if self._drains and not any(replica.is_master for replica in self.replicas.values()):
            reply = Reply(ReturnCode.OK, f"{self.name} is drained: it is the master of nothing, and remains so")
            self._messages += [CommandReply(each, self.name, reply) for each in self._drains]
            self._drains.clear()

    def _intervened(self, command: ForceQuorum | ChangeMembers | StepDown) -> Replica:
        """Return the replica that a command is about.

        Raises:
            NotFound: there is no such queue.
            Refused: it is not replicated.
        """
        if command.queue is None:
            name, replica = "the configuration", None if self.configuration is None else self.configuration.replica
        else:
            name = self.engine.hosted.queue(command.queue.bare).name
            replica = self._by_queue.get(name)
        if replica is None:
            raise Refused(f"{name} is not replicated", remedy="Only what is replicated has a quorum.")
        return replica

    def _refuse(self, frame: Frame, reason: str) -> None:
        self.refused_frame_count += 1
        if len(self._refusals) < REFUSALS_MAX:
            self._refusals.append(FrameRefused(frame.stream, frame.sender, type(frame).__name__, reason))

    def _host(self) -> list[Replica]:
        """Have a replica for each replication group that is hosted, and for no other; return the new ones."""
        groups: dict[StreamName, list[SharedReaderQueue]] = {}
        for queue in self.engine.hosted.by_name.values():
            if queue.is_replicated:
                groups.setdefault(queue.stream.name, []).append(queue)
        former, self.replicas, self._by_queue = self.replicas, {}, {}
        if self.configuration is not None:
            self.replicas[CONFIGURATION_STREAM] = self.configuration.replica
        added: list[Replica] = []
        for stream, queues in groups.items():
            queues.sort(key=lambda queue: not queue.settings.is_dead_letter)
            replica = former.get(stream)
            if replica is None or replica.follower.queues != queues:
                check_size((queue.settings for queue in queues), len(self.names))
                replica = self._replica(stream, queues)
                added.append(replica)
            self.replicas[stream] = replica
            self._by_queue |= dict.fromkeys((queue.name for queue in queues), replica)
        return added

    def _replica(self, stream: StreamName, queues: Sequence[SharedReaderQueue]) -> Replica:
        is_persistent = queues[0].settings.persistence.kind is PersistenceKind.PERSISTENT
        settings = strictest([queue.settings.replication for queue in queues])
        return self._replica_of(stream, Follower(stream, queues), settings, is_persistent)

    def _replica_of(
        self, stream: StreamName, follower: Followed, settings: ReplicationSettings, is_persistent: bool
    ) -> Replica:
        number = self._replica_count * WRITES_MAX
        self._replica_count += 1
        return Replica(
            stream, follower, settings, is_persistent, self.name, self.names, self.time.now, self._jitter,
            self._compacted_over_count, number, self.engine.hosted.draw_incarnation, versions=self.versions,
            is_joining=self._is_joining, preference=self.preference,
        )  # fmt: skip

    def _change(self, now: Nanoseconds) -> Container[StreamName]:
        """Follow a change of the configuration; return the streams that went."""
        former = self.replicas
        for replica in self._host():
            earlier = former.get(replica.stream)
            self._create(now, replica, None if earlier is None else earlier.ballot.state)
            replica.start(now)
        gone = former.keys() - self.replicas.keys()
        self.ended |= {stream: former[stream].ballot.state for stream in gone}
        return gone

    def _create(self, now: Nanoseconds, replica: Replica, earlier: HardState | None) -> None:
        """Let a replica begin whose queues a command created."""
        stored = self.stored_before(replica.stream) if replica.is_persistent else StoredLog()
        if _has_log(stored):
            replica.restore(now, stored, is_lost=False)  # the configuration dropped it once: nothing deleted it
            return
        if earlier is None:
            earlier = self.ended.pop(replica.stream, stored.hard_state)
        incarnation, is_fresh = self._creation(replica)
        members = None if self.configuration is None else self.configuration.members_of(_names_of(replica))
        replica.create(incarnation, earlier.leaving(earlier.incarnation), is_fresh=is_fresh, members=members)

    def _creation(self, replica: Replica) -> tuple[Incarnation, bool]:
        """Return the incarnation that a command gave to a group, and whether it can have been here before."""
        names = _names_of(replica)
        if self.configuration is None:
            return self._given(*names), True
        _, index = self.configuration.created_by(names)
        return self._given(*names), bool(index) and index > self.configuration.replica.ballot.floor.index

    def _given(self, *names: str) -> Incarnation:
        """Return what a command that created one of these made all members call it; nil: none did."""
        if self.configuration is None:
            given = [incarnation for name, incarnation in self._creations.items() if name in names]
            return given[-1] if given else NIL_INCARNATION
        origin, index = self.configuration.created_by(names)
        return incarnation_of_entry(origin, index) if index else NIL_INCARNATION

    def _note_creation(self, request: CommandRequest) -> None:
        """Note what a command may create."""
        for name in created_names(request.command):
            self._creations.pop(name, None)  # the latest is the last
            self._creations[name] = incarnation_of_request(request.request)
            if len(self._creations) > CREATIONS_MAX:
                del self._creations[next(iter(self._creations))]

    def _takers(self, participant: str, topic: str) -> Sequence[SharedReaderQueue]:
        """Return the queues of a topic, where one of them is replicated."""
        takers = self.engine.hosted.by_topic.get((participant, topic), ())
        return takers if any(queue.is_replicated for queue in takers) else ()

    def _write(self, now: Nanoseconds, write: Write, takers: Sequence[SharedReaderQueue]) -> None:
        for queue in takers:
            replica = self._by_queue.get(queue.name)
            if replica is None or (replica.is_master and queue.bar(write) is not None):
                queue.receive(now, write)
            elif queue.bar(write) is not None:
                replica.producers.reject(queue.name, write.identity)
            else:
                replica.receive_write(now, queue, write)

    def _write_run(self, now: Nanoseconds, writes: WriteRun, takers: Sequence[SharedReaderQueue]) -> None:
        for queue in takers:
            replica = self._by_queue.get(queue.name)
            if replica is None:
                queue.receive_run(now, writes)
            elif queue.may_bar(writes):
                for write in writes.singles():
                    self._write(now, write, (queue,))
            else:
                replica.receive_run(now, queue, writes)

    def _collect(self, now: Nanoseconds) -> None:
        """Give the replicas what the engine did of theirs, and keep the rest for the turn."""
        if self.engine.hosted.outbox.is_empty:
            return
        ready = self.engine.take_ready()
        former = self._by_queue
        gone = self._change(now) if self._is_started and ready.service_records else ()
        for batch in ready.batches:
            replica = self.replicas.get(batch.stream)
            if replica is not None:
                replica.append(now, batch.first_index, cast("list[QueueStreamRecord]", batch.records))
            elif batch.stream in gone:
                pass  # it goes with its queues
            else:
                self._keep(batch)
        held: dict[StreamName, Replica] = {}
        for message in ready.messages:
            if type(message) is CommandReply and self.configuration and self.configuration.note_reply(message):
                continue
            replica = self._by_queue.get(message.queue)
            if former.get(message.queue) is not replica and type(message) in _RESTING:
                continue  # what it rests on went with its queue, and was never committed
            if replica is not None:
                replica.hold(message)
                held[replica.stream] = replica
            else:
                self._messages.append(message)
        for replica in held.values():
            replica.commit(now)
        self._inputs += [each._replace(events_before=each.events_before + len(self._events)) for each in ready.inputs]
        self._events += ready.events
        self._may_lack_payloads |= ready.may_lack_payloads
        self._moves_samples |= ready.moves_samples and bool(self._batches)

    def _keep(self, batch: Batch) -> None:
        """Keep the records of a stream that is not replicated for the turn."""
        for at, earlier in enumerate(self._batches):
            if earlier.stream == batch.stream:
                earlier.records.extend(batch.records)
                self._batches[at] = earlier._replace(in_runs_count=earlier.in_runs_count + batch.in_runs_count)
                return
        self._batches.append(batch)


def _names_of(replica: Replica) -> list[str]:
    """Return the full names of a group's queues, and of the subscriber that each is in."""
    return [name for queue in replica.follower.queues for name in (queue.name, queue.name.rpartition("/")[0])]


def _has_log(stored: StoredLog) -> bool:
    """Return whether a replica was in a group, and not only names those that it left."""
    return bool(stored.records or stored.snapshot_index or stored.hard_state.epoch)


def _group_of_log(stored: StoredLog) -> Incarnation:
    """Return the incarnation of the group that wrote the last entries of a log; nil: they do not contain it."""
    for record in chain(reversed(stored.records), stored.snapshot_records[:1]):
        if isinstance(record, EpochBegan) and record.incarnation:
            return Incarnation(record.incarnation)
    return NIL_INCARNATION


def _list_of(members: MembersChanged) -> str:
    """Return the members of a group in a sentence."""
    learners = f"; learners: {', '.join(members.learners)}" if members.learners else ""
    present = [each for each in members.witnesses if each in (*members.voters, *members.learners)]
    witnesses = f"; witnesses: {', '.join(present)}" if present else ""
    return f"{members.queue}: voters: {', '.join(members.voters)}{learners}{witnesses}"
