"""A running service: engine, stores and DDS, driven by the wall clock until it is stopped [QS 4].

Decides: how a service starts, the steps of one pass of its loop, and how it stops. To stop it accepts no more samples,
gives consumers a grace time to acknowledge, stores, and leaves the domains; unacknowledged samples are sent again after
a restart.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import takewhile
from types import FrameType
from typing import TYPE_CHECKING, Final

from qsctl.config.budgets import ServiceLimits
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.events import Event
from qsctl.core.messages import CommandReply, CommandRequest, Inbound, QueueName
from qsctl.core.queue.settings import UNLIMITED
from qsctl.core.turn import Released
from qsctl.errors import QsctlError
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.service.process.logger import ServiceLog
from qsctl.service.process.memory import HeldCount, MemoryGuard, bound_of, peer_limits_of
from qsctl.service.process.metrics import Budget, ServiceFigures, Tally
from qsctl.service.process.supervisor import NOBODY, Supervisor
from qsctl.service.recording.recordings import Recordings, is_recording_request
from qsctl.service.recording.reporting import Reporting
from qsctl.service.replicas.replication import Replication, member_count
from qsctl.service.run.config_snippets import ConfigSnippets, is_configuration_request
from qsctl.service.run.loop import ServiceLoop
from qsctl.service.run.open_service import (
    SHARE_COUNT,
    DaemonOptions,
    log_damage,
    open_service,
    report_drift,
    report_namesake,
)
from qsctl.service.run.rereading import Rereading, follow_files
from qsctl.service.run.steady_clock import steady_clock
from qsctl.service.stores.places import places_of
from qsctl.service.stores.sync_thread import QUICK_SYNC_S
from qsctl.transport.dds.serving.administration import WAITING_MAX
from qsctl.transport.dds.serving.service_transport import CommandSource, ServiceTransport

if TYPE_CHECKING:
    from qsctl.service.process.metrics_server import MetricsServer

IDLE_NS: Final[Nanoseconds] = 100 * MILLISECOND_NS
"""The longest sleep: a signal is acted on after it at the latest."""

SWITCH_INTERVAL_S: Final = 0.0005
"""Longest time that the storing thread waits for the interpreter while the service works."""


class Daemon:
    """One running service, or one process of a service whose sessions run in several.

    Args:
        configuration: the queues to host.
        options: domains, files, metrics.
        log: the service's log.
        commands: the source of commands, if they do not arrive by administration over DDS.
        is_whole: whether it answers commands about recordings and the configuration itself; by default where
            commands arrive over DDS, since a session's process gets its commands from the coordinator.
        report_figures: called about once a second with the figures for Prometheus.

    Raises:
        InvalidInput: the storage directory does not exist, or a name cannot be part of a file's.
        Refused: the configuration requires a feature that this version does not have.
        Unavailable: DDS does not start here.
        Damaged: the stored state cannot be read.
    """

    def __init__(
        self,
        configuration: ServiceConfiguration,
        options: DaemonOptions,
        log: ServiceLog,
        *,
        commands: CommandSource | None = None,
        is_whole: bool | None = None,
        report_figures: Callable[[ServiceFigures], None] | None = None,
    ) -> None:
        self.configuration = configuration
        self.options = options
        self.log = log
        is_whole = commands is None if is_whole is None else is_whole
        self._says = "" if is_whole else "session_"
        self.stop_cause = ""
        """The cause of the service's end: a signal's name or SHUTDOWN; empty while it runs."""
        self.engine, stores = open_service(configuration, options)
        hosted = self.engine.hosted
        hosted.share_count = SHARE_COUNT
        self._snippets = ConfigSnippets(configuration, hosted)
        self.transport = ServiceTransport(
            hosted.application_name,
            options.places,
            self._snippets,
            commands,
            configuration.types.class_of,
            self._reads_on,
        )
        self._replication: Replication | None = None
        clock = options.now
        if member_count(configuration, hosted.settings()):
            clock = steady_clock()
            self._replication = Replication(
                self.engine,
                stores,
                configuration,
                options.members,
                clock,
                log,
                on_synced=self.transport.wake,
                joins=options.joins,
                master_priority=options.master_priority,
                quick_sync_s=QUICK_SYNC_S,
            )
        self._loop = ServiceLoop(
            self.engine,
            stores,
            clock,
            on_finished=self.transport.wake,
            quick_sync_s=QUICK_SYNC_S,
            replication=self._replication,
            limits=lambda: self.configuration.limits,
        )
        self._memory = MemoryGuard(
            bound_of(configuration.limits, options.process_count),
            HeldCount(lambda: [each.held for each in self.engine.hosted.by_name.values()]),
        )
        self._loop.try_endpoints = self.transport.try_endpoints
        self._reporting = Reporting(
            self.engine,
            self._loop.clock,
            self._release_all,
            reports_each_step=log.traces or options.metrics_port is not None or report_figures is not None,
        )
        self._recordings = (
            Recordings(configuration, hosted.settings, lambda: 1, self.report_to, log) if is_whole else None
        )
        self._rereading = Rereading(options.reread, self.transport, self.log)
        self._tells_to: str | None = None
        self._given_limits: ServiceLimits | None = None
        self._not_offered: dict[str, str] = {}
        self.transport.boundary.report_to(log.peer_fault)
        self.transport.boundary.peer_limits = peer_limits_of(configuration.limits)
        member = None if self._replication is None else self._replication.member
        self._tally = Tally(self.engine, self.transport.boundary, member, self._budget)
        self._report_figures = report_figures
        self.metrics: MetricsServer | None = None
        if options.metrics_port is not None:
            from qsctl.service.process.metrics_server import MetricsServer

            self.metrics = MetricsServer(lambda: [self._tally.figures], options.metrics_address, options.metrics_port)
        log.publish_through(self.transport.logger)
        log_damage(log, stores)
        report_drift(log, configuration, self.engine.hosted.settings())
        self._loop.recovery.report = log.report_storage

    def stop(self, cause: str) -> None:
        """Request an orderly stop of the service; may be called from a signal handler or another thread."""
        self.stop_cause = cause
        self.transport.wake()

    def hang_up(self) -> None:
        """Reopen the log in the next pass of the loop; may be called from a signal handler."""
        self._rereading.request()

    def report_to(self, address: str) -> None:
        """Report events to the recorder at this address from the next pass on; empty: stop reporting.

        May be called from another thread.
        """
        self._tells_to = address
        self.transport.wake()

    def obey(self, limits: ServiceLimits) -> None:
        """Apply new limits from the next pass on. May be called from another thread."""
        self._given_limits = limits
        self.transport.wake()

    def run(self, on_start: Callable[[], None] | None = None, supervisor: Supervisor = NOBODY) -> None:
        """Serve until `stop` is called or a SHUTDOWN command arrives, then stop in an orderly way.

        Args:
            on_start: called once the service can be reached.
            supervisor: notified that the loop runs, and that the service stops.

        Raises:
            Damaged: an I/O error occurs; the service stops at once, for it must not answer what it cannot store.
        """
        with _tuned_collector() if self.options.owns_process else nullcontext():
            try:
                if self._replication is not None:
                    self._replication.start(self.transport)
                self._loop.begin()
                self._release_all()
                if self.options.discards_damaged:
                    self._loop.finish()
                    self._loop.compact(all_damaged=True)  # the next start finds what is whole, and no damage
                self._reconcile()
                if self._recordings is not None and self.options.record is not None:
                    self._recordings.start(self.options.record)
                    self._follow_recording()
                port = {} if self.metrics is None else {"metrics_port": self.metrics.port}
                self.log.info(f"{self._says}started", queues=len(self.engine.hosted.queues()), **port)
                if on_start is not None:
                    on_start()
                self._serve(supervisor)
                supervisor.leaving()
                self._leave()
            finally:
                self.close()

    def close(self) -> None:
        """Close everything, in whatever state the service is."""
        if self.metrics is not None:
            self.metrics.close()
        self.log.publish_through(None)
        self._reporting.close()
        self._loop.close()
        if self._recordings is not None:
            self._recordings.close()
        if self._replication is not None:
            self._replication.close()
        self.transport.close()
        self._loop.stores.close()

    def _serve(self, supervisor: Supervisor) -> None:
        while not self.is_ending:
            supervisor.beat()
            if self.serve_once():
                continue
            deadline, now = self._loop.next_deadline(), self._loop.clock()
            self.transport.wait(IDLE_NS if deadline is None else max(0, min(IDLE_NS, deadline - now)))
            if self._loop.clock() - now >= IDLE_NS:
                self._loop.rest()

    @property
    def is_ending(self) -> bool:
        """Return whether `stop` was called or a SHUTDOWN command arrived; no further pass is run then."""
        return bool(self.stop_cause) or self.engine.hosted.shutting_down

    def serve_once(self) -> bool:
        """Run one pass: process a bounded number of messages and all due deadlines; return whether more can be done at
        once.

        Between two passes it may be called from another thread than the one of `run`, if `transport.wait` blocks that
        thread meanwhile.

        Raises:
            Damaged: an I/O error occurs; the service must stop.
        """
        if self._memory.look():
            self._follow_memory()
        if (found := self._rereading.turn()) is not None:
            self._follow_files(found)
        if (limits := self._given_limits) is not None:
            self._given_limits = None
            self._obey(limits)
        finished, is_busy = self._loop.serve(self._poll)
        for released in finished:
            self._hand_on(released)
        if self._counts and self._tally.refresh() and self._report_figures is not None:
            self._report_figures(self._tally.figures)
        for domain_id in self.transport.namesakes():
            report_namesake(self.log, self.engine.hosted.application_name, domain_id)
        self._follow_recording()
        if is_busy:
            return True
        self._flush()
        if self._loop.is_compacting:
            self._loop.compact_on()
            return True
        return False

    def _follow_memory(self) -> None:
        """Start or stop refusing samples of producers, after the memory guard has changed."""
        memory = self._memory
        self.engine.holds_back = memory.is_high
        report = self.log.warning if memory.is_high else self.log.info
        report(
            "memory_high" if memory.is_high else "memory_sufficient",
            resident_bytes=memory.resident_bytes,
            limit_bytes=memory.bound_bytes,
            text="samples of producers are refused" if memory.is_high else "samples are enqueued again",
        )

    def _follow_files(self, found: ServiceConfiguration | QsctlError) -> None:
        """Apply the configuration's files that were read again, as far as that is possible without a restart."""
        followed = follow_files(found, self.configuration, self.engine.hosted.settings(), self.log)
        if followed is not None:
            self._obey(followed.limits)

    def _obey(self, limits: ServiceLimits) -> None:
        """Apply new limits now."""
        self.configuration = replace(self.configuration, limits=limits)
        self._memory.bound_bytes = bound_of(limits, self.options.process_count)
        self.transport.boundary.peer_limits = peer_limits_of(limits)

    def _budget(self) -> Budget:
        """Return the current use of each limit by the service and its peers."""
        limits, memory, time_shares = self.configuration.limits, self._memory, self.transport.boundary.time.shares()
        return Budget(
            {
                "memory_bytes": memory.bound_bytes or UNLIMITED,
                "queues": limits.max_queues,
                "endpoints_per_peer": limits.max_endpoints_per_peer,
                "consumers_per_peer": limits.max_consumers_per_peer,
                "waiting_commands_per_peer": WAITING_MAX,
            },
            {
                "memory_bytes": memory.resident_bytes,
                "queues": len(self.engine.hosted.by_name),
                **self.transport.usage(),
            },
            {name: each.taken_ns for name, each in time_shares.items()},
            int(memory.is_high),
        )

    def _poll(self) -> list[Inbound]:
        """Return the messages for the engine; commands about recordings or the configuration are answered here."""
        inbox = self.transport.poll()
        if self._recordings is not None and inbox and isinstance(inbox[0], CommandRequest):
            # Commands come first, see the transport.
            commands = takewhile(lambda each: isinstance(each, CommandRequest), inbox)
            if answers := [answer for each in commands if (answer := self._answer(each)) is not None]:
                inbox = [each for each in inbox if not (is_recording_request(each) or is_configuration_request(each))]
                self.transport.put(answers)
                self._flush()
        return inbox

    def _answer(self, request: Inbound) -> CommandReply | None:
        """Return the reply to a command about recordings or the configuration; None for one that the engine handles."""
        if is_configuration_request(request):
            name = self.engine.hosted.application_name
            return CommandReply(request.request, name, self._snippets.configuration())
        if self._recordings is not None and is_recording_request(request):
            return self._recordings.answer(request)
        return None

    def _follow_recording(self) -> None:
        """Start or stop reports to a recorder as requested, and send buffered ones."""
        if self._recordings is not None:
            self._recordings.poll()
        self._reporting.go_on()
        if (address := self._tells_to) is not None:
            self._tells_to = None
            if address:
                self._reporting.begin(address)
            else:
                self._reporting.end()

    def _release_all(self) -> None:
        """Wait for all begun turns, and send their messages and events."""
        for released in self._loop.drain():
            self._hand_on(released)

    def _hand_on(self, released: Released) -> None:
        """Send the messages and report the events of a turn whose records are durable."""
        self._reporting.report(released)
        messages = released.messages
        if released.service_records:
            # What a deleted queue answers leaves before its endpoints go, a reply once a created one has its own.
            self.transport.put([each for each in messages if not isinstance(each, CommandReply)])
            self._flush()
            self._reconcile()
            messages = [each for each in messages if isinstance(each, CommandReply)]
        self.transport.put(messages)
        self._flush()
        if released.events:
            self._report(released.events)

    def _reads_on(self, queue: QueueName) -> bool:
        """Return whether the transport may read samples for a queue: none are waiting because it is full or refuses."""
        hosted = self.engine.hosted.by_name.get(queue)
        if self.engine.holds_back:
            return False
        return hosted is None or not (hosted.reader_cache.arrivals or hosted.context.refuses)

    def _flush(self) -> None:
        self.transport.flush()
        self.engine.answers.reads_on = not self.transport.replies_wait

    def _report(self, events: Sequence[Event]) -> None:
        if self._counts:
            self._tally.count(events)
        self.log.events(events)

    @property
    def _counts(self) -> bool:
        return self.metrics is not None or self._report_figures is not None

    def _reconcile(self) -> None:
        self.transport.reconcile(
            {name: (place.subscriber, place.settings) for name, place in places_of(self.engine.hosted).items()}
        )
        failures = self.transport.failures
        for name in failures.keys() - self._not_offered.keys():
            self.log.error(
                "queue_not_offered", queue=name, cause=failures[name], remedy="Delete it, and create it anew."
            )
        self._not_offered = failures

    def _leave(self) -> None:
        cause = self.stop_cause = self.stop_cause or "SHUTDOWN"
        self.log.info(f"{self._says}leaving", cause=cause)
        self._tally.leave()
        self.transport.accept_no_more()
        deadline = time.monotonic_ns() + self.options.grace_ns
        while time.monotonic_ns() < deadline:
            inbox = self.transport.poll()
            if not (inbox or self.unanswered_count or self.engine.answers.is_answering or self.transport.is_draining):
                break
            if self._replication is not None:
                self._replication.receive(self._replication.poll())
            self._loop.begin(inbox)
            for released in self._loop.pop_finished():
                self._hand_on(released)
            self._flush()
            self.transport.wait(0 if self.engine.answers.is_answering else 10 * MILLISECOND_NS)
        unanswered_count = self.unanswered_count
        self._hand_over()
        self._release_all()
        self._reporting.end()
        while not self.transport.flush() and time.monotonic_ns() < deadline:
            self.transport.wait(MILLISECOND_NS)
        self._loop.compact()
        self.log.info(f"{self._says}left", cause=cause, unanswered=unanswered_count)

    def _hand_over(self) -> None:
        """Transfer mastership to other members and take part in their elections, within the grace time."""
        replication = self._replication
        if replication is None or not replication.is_any_master:
            return
        deadline = time.monotonic_ns() + self.options.grace_ns
        while not replication.hand_over(waits=time.monotonic_ns() < deadline):
            self._turn_on_leaving()
        while not replication.is_succeeded and time.monotonic_ns() < deadline:
            self._turn_on_leaving()

    def _turn_on_leaving(self) -> None:
        assert self._replication is not None, "it is a member"
        self._replication.receive(self._replication.poll())
        self._loop.begin(self.transport.poll())
        for released in self._loop.pop_finished():
            self._hand_on(released)
        self._flush()
        self.transport.wait(5 * MILLISECOND_NS)

    def next_deadline(self) -> Nanoseconds | None:
        """Return the next instant at which the service has work without a message, or None."""
        return self._loop.next_deadline()

    @property
    def is_idle(self) -> bool:
        """Return whether all received messages are stored as required, and the messages that depend on them were
        sent.
        """
        return self._loop.is_idle

    @property
    def unanswered_count(self) -> int:
        """The number of samples that consumers have received and not acknowledged."""
        return sum(self.engine.hosted.queue(resource).sent_count() for resource in self.engine.hosted.queues())


@contextmanager
def obeyed_signals(stop: Callable[[str], None], hang_up: Callable[[], None] | None) -> Iterator[None]:
    """Call `stop` on SIGTERM and SIGINT, and `hang_up` on SIGHUP; restore the former handlers on exit.

    Without `hang_up` SIGHUP stops the service, too: it runs in the foreground, and its terminal was closed.
    """

    def handler(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP and hang_up is not None:
            hang_up()
        else:
            stop(signal.Signals(number).name)

    former = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, each in former.items():
            signal.signal(number, each)


@contextmanager
def _tuned_collector() -> Iterator[None]:
    """Tune garbage collection and thread switches for a process that holds many long-lived samples."""
    before, switch_interval_s = gc.get_threshold(), sys.getswitchinterval()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(switch_interval_s)
        gc.set_threshold(*before)
        gc.unfreeze()
