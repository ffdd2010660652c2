"""A running service as a member of a replication cluster: its replicas, their log, and their messages [QS 7].

Decides: the order. The records of the replicas are written to their log; their messages are sent once those are
durable, in one datagram a turn to each other member. `qsctl.core.high_availability` has the protocol; the loop of the
service steps the member instead of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from qsctl.config.rules.replication import configuration_replication_of, instances_of, replicated_queues
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.engine import ServiceEngine
from qsctl.core.high_availability.cluster_configuration import CONFIGURATION_STREAM
from qsctl.core.high_availability.compaction import COMPACTED_OVER_COUNT
from qsctl.core.high_availability.configuration import Configuration
from qsctl.core.high_availability.frames import Frame
from qsctl.core.high_availability.member import Member
from qsctl.core.high_availability.replica import DISK_HANGS
from qsctl.core.high_availability.roles import RoleChanged
from qsctl.core.high_availability.versions import VERSION
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings
from qsctl.errors import Damaged
from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds
from qsctl.service.replicas import _replica_stores as replica_stores
from qsctl.service.replicas._membership import Membership
from qsctl.service.replicas._replica_writes import ReplicaWrites
from qsctl.service.run.named_configuration import differences, in_one_line
from qsctl.service.stores.stores import Stores
from qsctl.transport.dds.replicas.letter_box import SILENCE_NS, Link, ReceivedLetter
from qsctl.transport.dds.replicas.letter_signatures import REASONS

_QUEUES: Final = ""
"""In the place of a stream: the letters of the queues."""

FLUSH_AGAIN_NS: Final[Nanoseconds] = 5 * MILLISECOND_NS
"""Time to the next attempt while a peer's cache is full."""

SILENT_TIMEOUTS: Final = 2
"""Multiple of `master_timeout` that a member is silent before another process of its name is accepted: each is due to
send several messages in it.
"""

REPORTED_AGAIN_AFTER_NS: Final[Nanoseconds] = 60 * SECOND_NS
"""Interval after which a complaint about another service is logged again."""

COMPLAINTS_MAX: Final = 1_000
"""Complaints that are remembered."""


def member_count(configuration: ServiceConfiguration, hosted: ServiceSettings) -> int:
    """Return the number of members of a service's cluster; 0: the service is in none.

    A service whose file makes it a member of a cluster stays one while it hosts no replicated queue, because a command
    may create a deleted queue again.

    Args:
        configuration: the configuration as read.
        hosted: the current settings, which may be those of a stored configuration [QS 2.14.1].

    Raises:
        Refused: two parts name different numbers.
    """
    settings = configuration_replication_of(configuration)
    return instances_of(hosted, settings) or instances_of(configuration.service, settings)


class OpensLinks(Protocol):
    """A transport that carries messages between replicas, see `ServiceTransport`."""

    def open_replica_link(
        self,
        cluster: str,
        started_at_ns: Nanoseconds,
        replicated: Sequence[SharedReaderQueueSettings],
        silence_ns: Nanoseconds,
        *,
        joins: bool,
    ) -> Link:
        """Open the link for messages between the replicas of queues."""

    def open_configuration_link(self, cluster: str, started_at_ns: Nanoseconds, silence_ns: Nanoseconds) -> Link:
        """Open the link for messages about the configuration."""


class Lines(Protocol):
    """The log for people, see `ServiceLog`."""

    def info(self, event: str, **fields: object) -> None:
        """Log a normal event."""

    def warning(self, event: str, **fields: object) -> None:
        """Log a condition that may need attention."""

    def error(self, event: str, **fields: object) -> None:
        """Log a condition that needs attention."""


class Replication:
    """The part of a service that replicates queues, beside its engine.

    Args:
        engine: the restored engine, without the samples of replicated queues; it journals `REPLICATED`.
        stores: the stores of the other queues, whose directory and claim are used, too.
        configuration: the service's configuration.
        members: the names of the members that the cluster was formed with; empty: they are discovered. Those stored by
            an earlier start take their place.
        clock: see `steady_clock`.
        log: the service's log.
        on_synced: called in another thread when a sync is over; must not block.
        quick_sync_s: a faster sync runs in the calling thread.
        joins: whether the service is new to a cluster that was formed: it has no vote until it is promoted.
        master_priority: that of the service as master; the voter with the highest becomes the master.
        compacted_over_count: the number of entries above which a replica's log is compacted.

    Raises:
        Refused: the number of named members is not `queue_instances`, or this service is not among them.
        Damaged: an I/O error occurs.
    """

    def __init__(
        self,
        engine: ServiceEngine,
        stores: Stores,
        configuration: ServiceConfiguration,
        members: Sequence[str],
        clock: Callable[[], Nanoseconds],
        log: Lines,
        *,
        on_synced: Callable[[], object],
        quick_sync_s: float,
        joins: bool = False,
        master_priority: int = 0,
        compacted_over_count: int = COMPACTED_OVER_COUNT,
    ) -> None:
        self._clock = clock
        self._log = log
        settings = configuration_replication_of(configuration)
        name, count = engine.hosted.application_name, member_count(configuration, engine.hosted.settings())
        self._store = stores.open_replica_log(replica_stores.RECORDS)
        kept = self._store.members if len(self._store.members) == count else ()
        if kept and members and sorted(kept) != sorted(members):
            log.warning(
                "members_differ",
                text="the cluster was formed with other members than --members names; those that formed it count",
                formed=sorted(kept),
                named=sorted(members),
            )
        self.membership = Membership(name, count, kept or members, joins=joins)
        self._started_at_ns = clock()
        self.member = Member(
            engine,
            self.membership.stand_ins,
            is_joining=self.membership.is_joining,
            master_priority=master_priority,
            started_at=self._started_at_ns,
            jitter=stores.environment.jitter,
            compacted_over_count=compacted_over_count,
            configuration=settings,
            keeps_configuration=stores.service is not None,
        )
        resting = replica_stores.restore(self.member, self._store)
        self._writes = ReplicaWrites(
            self.member,
            self._store,
            resting,
            clock,
            on_synced=on_synced,
            quick_sync_s=quick_sync_s,
            open_syncs=stores.environment.open_syncs,
        )
        self._writes.report_failure = self._report_failure
        self._writes.compactions.report_failure = self._report_uncompacted
        if self.membership.is_known:
            self._writes.keep_members(list(self.membership.names))
        for report in self._store.damage:
            log.warning("stored_state_damaged", report=str(report))
        self.cluster = configuration.name
        # Clusters of one configuration in one domain do not see each other where their members are named.
        self._mark = ",".join((self.cluster, *(self.membership.names if members else ())))
        self._configuration = configuration
        self._links: dict[str, Link] = {}
        """The letters about the configuration, and all others, by the stream that is written about."""
        self._complaints: dict[tuple[str, ...], Nanoseconds] = {}
        self._all_sent = True
        self._disk_hangs = False
        self._namesake = ""
        """The state of another service of this one's name, for the status of replicas; empty: there is none."""
        self.on_change: Callable[[RoleChanged], object] = lambda _: None
        """Called with each change of a replica's role."""

    def start(self, transport: OpensLinks) -> None:
        """Join the cluster, with messages over this transport."""
        replicated = replicated_queues(self.member.engine.hosted.settings())
        silence_ns = SILENT_TIMEOUTS * self.member.master_timeout_ns or SILENCE_NS
        self._links[_QUEUES] = transport.open_replica_link(
            self._mark, self._started_at_ns, replicated, silence_ns, joins=self.membership.is_joining
        )
        if self.member.configuration is not None:
            self._links[CONFIGURATION_STREAM] = transport.open_configuration_link(
                self._mark, self._started_at_ns, silence_ns
            )
        self.member.start(self._clock())
        self._report_membership()

    # A turn of the driver.

    def poll(self) -> list[ReceivedLetter]:
        """Return the messages that have arrived, for `receive`."""
        return [each for link in self._links.values() for each in link.poll()]

    def receive(self, letters: Sequence[ReceivedLetter]) -> bool:
        """Process messages and changes of the other members; return whether messages were given."""
        now = self._clock()
        self._look(now)
        self.member.note = self._namesake or self._unproven() or self.membership.lack
        if not letters:
            return False
        for sender, letter in letters:
            if not self.membership.agrees(letter.members):
                self._complain("cluster_disagrees", now, sender=sender, members=list(letter.members))
                continue
            if self.membership.learn(letter.members):
                self._adopt()
            if self.member.versions.note(sender, letter.version):
                self._report_versions()
            self.member.receive_frames(now, letter.frames)
        for refused in self.member.pop_refusals():
            self._complain(
                "replica_frame_refused", now, about=(refused.stream, refused.sender, refused.kind),
                queue=refused.stream, sender=refused.sender, kind=refused.kind, reason=refused.reason,
            )  # fmt: skip
        return True

    def go_on(self, *, waits: bool = False) -> None:
        """Write the replicas' pending records, and send the messages whose records are durable."""
        self._writes.go_on(waits=waits)
        for kept in self._store.pop_kept():
            self._log.warning(
                "replica_log_kept",
                file=str(kept),
                text="what is behind the damage is not used here; delete the file once the queues have all samples",
            )
        self._send()
        for change in self.member.pop_changes():
            self._report_change(change)
        self._report_disk()
        if self.member.configuration is not None:
            self._report_configuration(self.member.configuration)

    def next_deadline(self) -> Nanoseconds | None:
        """Return the next instant with work to do even if no message arrives, or None."""
        due = [self.member.next_deadline(), self.membership.next_deadline()]
        if not self._all_sent:
            due.append(self._clock() + FLUSH_AGAIN_NS)
        return min((each for each in due if each is not None), default=None)

    def hand_over(self, *, waits: bool) -> bool:
        """Transfer mastership, because this service stops; return False while successors still need records: call
        again.
        """
        now = self.member.time.now
        done = [replica.hand_over(now, waits=waits) for replica in self.member.replicas.values()]
        self.go_on()
        return all(done)

    @property
    def is_any_master(self) -> bool:
        """Return whether this service is the master of a queue, which must be handed over."""
        return any(replica.is_master for replica in self.member.replicas.values())

    @property
    def is_succeeded(self) -> bool:
        """Return whether every handed-over queue has a new master, as far as this service knows."""
        return self._all_sent and all(replica.master for replica in self.member.replicas.values())

    def close(self) -> None:
        """Close the log and the links, which notifies the other members that this service has left."""
        self._writes.close()
        for link in self._links.values():
            link.close()
        self._links.clear()

    # Members.

    def _look(self, now: Nanoseconds) -> None:
        links = self._links.values()
        changed_count = 0
        for link in links:
            changed_count += link.pop_is_changed()
        if not changed_count and self.membership.is_known:
            return
        self._namesake = ""
        if any(link.namesake is not None for link in links):
            self._namesake = f"another service announces itself as {self.member.name}"
            self._complain(
                "another_replica_of_this_name",
                now,
                name=self.member.name,
                text="the other members accept the one of the two that they discovered first, and refuse the "
                "replication messages of the other; stop the one that is not to be the member",
            )
        peers = frozenset[str].intersection(*(link.peers for link in links))
        first = peers.difference(*(link.joining for link in links))
        if self.membership.find(now, first):
            self._adopt()
        elif not (self.membership.is_known or self.membership.is_joining) and len(first) >= self.membership.count:
            self._complain("too_many_instances", now, services=sorted({*first, self.member.name}))
        if self.membership.is_known:
            for link in links:
                link.send(sorted(link.peers), self.membership.names, ())

    def _unproven(self) -> str:
        """Return the members whose replication messages are refused, and why; empty: there are none."""
        refused = {name: denial for link in self._links.values() for name, denial in link.unproven.items()}
        return "; ".join(
            f"the replication messages of {name} are refused: {REASONS[refused[name]]}" for name in sorted(refused)
        )

    def _adopt(self) -> None:
        names = self.membership.names
        self.member.know_members(names)
        self._writes.keep_members(list(names))
        self._report_membership()

    def _send(self) -> None:
        outgoing = self.member.pop_frames()
        if not outgoing and self._all_sent:
            return
        letters: dict[tuple[str, str], list[Frame]] = {}
        for recipient, frame in outgoing:
            link = frame.stream if frame.stream in self._links else _QUEUES
            letters.setdefault((link, recipient), []).append(frame)
        if not self._links:
            return
        alike: dict[tuple[str, tuple[int, ...]], list[str]] = {}
        for (link, recipient), frames in letters.items():
            alike.setdefault((link, tuple(map(id, frames))), []).append(recipient)
        for (link, _), recipients in alike.items():
            self._links[link].send(recipients, self.membership.names, letters[link, recipients[0]])
        flushed = [link.flush() for link in self._links.values()]
        self._all_sent = all(flushed)

    # What is logged.

    def _report_membership(self) -> None:
        if self.membership.is_known:
            self._log.info("cluster", name=self.cluster, members=list(self.membership.names))
        else:
            self._log.info("cluster_incomplete", name=self.cluster, text=self.membership.lack)

    def _report_versions(self) -> None:
        versions = self.member.versions
        others = [each for each in self.member.names if each != self.member.name]
        self._log.info(
            "cluster_version",
            used=versions.common(others),
            own=VERSION,
            members={each: versions.of(each) for each in others},
        )

    def _report_change(self, change: RoleChanged) -> None:
        self.on_change(change)
        self._log.info(
            "role",
            queue=change.stream,
            role=change.role.value,
            epoch=change.epoch,
            master=change.master,
            reason=change.reason,
        )

    def _report_disk(self) -> None:
        hanging = [stream for stream, replica in self.member.replicas.items() if replica.disk.hangs]
        if bool(hanging) == self._disk_hangs:
            return
        self._disk_hangs = bool(hanging)
        if hanging:
            self._log.error("replica_disk_hangs", queues=sorted(hanging), reason=DISK_HANGS)
        else:
            self._log.info("replica_disk_answers")

    def _report_configuration(self, replicated: Configuration) -> None:
        for report in replicated.reports:
            if report.is_refusal:
                self._log.error("configuration_not_followed", reason=report.text)
            elif report.is_adoption:
                target = replicated.target_of(self._configuration.service)
                self._log.warning(
                    "configuration_of_the_cluster",
                    text=f"it takes the place of {self._configuration.name} as it was read: "
                    f"{in_one_line(differences(self._configuration, target))}",
                )
            else:
                self._log.info("configuration_followed", text=report.text)
        replicated.reports.clear()

    def _report_failure(self, error: Damaged) -> None:
        self._log.error("replicas_stopped", reason=error.message, remedy=error.remedy)

    def _report_uncompacted(self, error: Damaged) -> None:
        self._log.warning("replica_log_not_compacted", reason=error.message, remedy=error.remedy)

    def _complain(self, event: str, now: Nanoseconds, about: tuple[str, ...] = (), **fields: object) -> None:
        key = (event, *about)
        if now - self._complaints.get(key, -REPORTED_AGAIN_AFTER_NS) >= REPORTED_AGAIN_AFTER_NS:
            if len(self._complaints) >= COMPLAINTS_MAX:
                self._complaints.clear()
            self._complaints[key] = now
            self._log.error(event, members_known=list(self.membership.names), **fields)
