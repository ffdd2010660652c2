"""The coordinator of a service whose sessions run in processes of their own [QS 3.3.9].

Decides: which process answers which command. The coordinator has the whole configuration: it makes every change, stores
it [QS 2.14.1], and passes it to the process concerned; commands about a queue's content are passed to its process.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from qsctl.config.qos_libraries.qos import QosLibraries
from qsctl.config.rules.replication import instances_of
from qsctl.config.sample_types.types import TypeLibrary
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import (
    Command,
    FlagSamples,
    FlushQueue,
    GetData,
    GetMessages,
    GetStatus,
    InsertSamples,
    MoveSamples,
    RemoveSamples,
)
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.core.queue.settings import PersistenceKind
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import NoAnswer, NotFound, QsctlError, Refused
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds
from qsctl.resource import ResourceIdentifier
from qsctl.service.process.daemon import IDLE_NS
from qsctl.service.process.logger import ServiceLog
from qsctl.service.process.memory import peer_limits_of
from qsctl.service.process.metrics import ServiceFigures, ServiceState
from qsctl.service.process.metrics_server import MetricsServer
from qsctl.service.process.supervisor import NOBODY, Supervisor
from qsctl.service.recording.recordings import Recordings, is_recording_request
from qsctl.service.run.config_snippets import ConfigSnippets, is_configuration_request
from qsctl.service.run.loop import ServiceLoop
from qsctl.service.run.open_service import (
    DaemonOptions,
    log_damage,
    open_service,
    report_drift,
    report_namesake,
)
from qsctl.service.run.rereading import Rereading, follow_files
from qsctl.service.sessions._link import (
    Ask,
    Obey,
    ReportTo,
    SessionAnswers,
    SessionCounted,
    SessionFailed,
    SessionLeft,
    SessionStarted,
    StopSession,
)
from qsctl.service.sessions._placement import Placement, ProcessIndex
from qsctl.service.sessions._processes import FromSession, Mail, SessionProcess
from qsctl.service.sessions.groups import part_of, session_groups
from qsctl.service.sessions.worker import WorkerSurroundings
from qsctl.transport.dds.serving.service_transport import ServiceTransport

LEAVE_NS: Final[Nanoseconds] = 10 * SECOND_NS
"""Time in which sessions must store and leave, after the consumers' time."""


@dataclass
class _Asked:
    """A command that is waiting for the replies of one or more processes.

    `made` is the coordinator's own reply to a change.
    """

    request: SampleIdentity
    awaited: set[ProcessIndex]
    replies: list[CommandReply]
    made: CommandReply | None = None
    is_of_one: bool = False


class Coordinator:
    """One running service of several processes; it has the interface of `Daemon`.

    Raises:
        InvalidInput, Refused, Unavailable, Damaged: as from `Daemon`.
    """

    def __init__(
        self, configuration: ServiceConfiguration, options: DaemonOptions, around: WorkerSurroundings, log: ServiceLog
    ) -> None:
        self.configuration = configuration
        self.options = options
        self.log = log
        self.stop_cause = ""
        self._around = around
        self.engine, stores = open_service(configuration, options, holds_samples=False)
        if instances_of(self.engine.hosted.settings()):
            stores.close()
            raise Refused(
                "the stored configuration has a replicated queue, and the one named has none",
                remedy="Name the stored one, or start with an empty directory: a replicated service is one process.",
            )
        self._loop = ServiceLoop(self.engine, stores, limits=lambda: self.configuration.limits)
        self._snippets = ConfigSnippets(configuration, self.engine.hosted)
        self.transport = ServiceTransport(
            self.engine.hosted.application_name, replace(options.places, delivers=False), self._snippets
        )
        self._loop.try_endpoints = self.transport.try_endpoints
        self.transport.boundary.report_to(log.peer_fault)
        self.transport.boundary.peer_limits = peer_limits_of(configuration.limits)
        self._mail = Mail(self.transport.wake)
        self._processes: list[SessionProcess] = []
        self._placement = Placement(configuration.service, ())
        self._started: set[SessionProcess] = set()
        self._asked: dict[SampleIdentity, _Asked] = {}
        self._guid = Guid(os.urandom(16))
        self._asked_count = 0
        self._unanswered_count = 0
        self._recordings = Recordings(
            configuration, self.engine.hosted.settings, lambda: len(self._processes), self._report_to, log
        )
        self._figures: dict[SessionProcess, ServiceFigures] = {}
        self._rereading = Rereading(options.reread, self.transport, self.log)
        self._turned_at_ns: Nanoseconds = 0
        self._state: ServiceState = "starting"
        self.metrics: MetricsServer | None = None
        if options.metrics_port is not None:
            self.metrics = MetricsServer(self._all_figures, options.metrics_address, options.metrics_port)
        log.publish_through(self.transport.logger)
        log_damage(log, stores)
        report_drift(log, configuration, self.engine.hosted.settings())
        self._loop.recovery.report = log.report_storage

    def stop(self, cause: str) -> None:
        """Request an orderly stop of the service; may be called from a signal handler or another thread."""
        self.stop_cause = cause
        self.transport.wake()

    def hang_up(self) -> None:
        """Reopen the log in the next pass of the loop; may be called from a signal handler.

        The processes of the sessions reopen it with their next line.
        """
        self._rereading.request()

    def run(self, on_start: Callable[[], None] | None = None, supervisor: Supervisor = NOBODY) -> None:
        """Serve until `stop` is called or a SHUTDOWN command arrives, then stop in an orderly way.

        Args:
            on_start: called once the service can be reached.
            supervisor: notified that the loop runs, and that the service stops.

        Raises:
            QsctlError: a session could not start or failed; the others were stopped in an orderly way.
        """
        try:
            self._loop.turn()
            if self.options.discards_damaged:
                self._loop.compact(all_damaged=True)
            self._start()
            port = {} if self.metrics is None else {"metrics_port": self.metrics.port}
            pids = {process.name: process.pid for process in self._processes}
            self.log.info("started", queues=len(self.engine.hosted.queues()), processes=pids, **port)
            if self.options.record is not None and not self.stop_cause:
                self._recordings.start(self.options.record)
            if on_start is not None:
                on_start()
            while not self.stop_cause and not self.engine.hosted.shutting_down:
                supervisor.beat()
                if (found := self._rereading.turn()) is not None:
                    self._follow_files(found)
                self._turn()
                for domain_id in self.transport.namesakes():
                    report_namesake(self.log, self.engine.hosted.application_name, domain_id)
                self.transport.wait(IDLE_NS)
            supervisor.leaving()
            self._leave()
        finally:
            self.close()

    def close(self) -> None:
        """Close everything, in whatever state the service is; running sessions are requested to stop."""
        if self.metrics is not None:
            self.metrics.close()
        self._request_departure()
        for process in self._processes:
            process.close()
        self._recordings.close()
        self.log.publish_through(None)
        self.transport.close()
        self._loop.close()
        self._loop.stores.close()

    def _all_figures(self) -> list[ServiceFigures]:
        boundary = self.transport.boundary
        refused = self.engine.refused_message_count
        own = ServiceFigures(
            {}, {}, {}, refused, boundary.refused_count, boundary.unexpected_count, {}, {}, {},
            refreshed_at_ns=self._turned_at_ns, state=self._state,
            limits={"queues": self.configuration.limits.max_queues}, denied=dict(boundary.denied),
        )  # fmt: skip
        return [own, *list(self._figures.values())]

    def _follow_files(self, found: ServiceConfiguration | QsctlError) -> None:
        """Apply the configuration's reread files, and pass new limits to the sessions' processes."""
        followed = follow_files(found, self.configuration, self.engine.hosted.settings(), self.log)
        if followed is not None:
            self.configuration = followed
            self.transport.boundary.peer_limits = peer_limits_of(followed.limits)
            for process in self._processes:
                process.send(Obey(followed.limits))

    def _start(self) -> None:
        """Start a process for each group, all at once, and wait until clients can reach each."""
        settings = self.engine.hosted.settings()
        groups = session_groups(settings)
        self._placement = Placement(settings, groups)
        volatile = replace(
            self.configuration.service_qos,
            persistence=replace(self.configuration.service_qos.persistence, kind=PersistenceKind.VOLATILE),
        )
        options = replace(
            self.options,
            places=replace(self.options.places, administration=None),
            metrics_port=None,
            record=None,
            claim=self._loop.stores.files.claim,
            process_count=len(groups),
            reread=None,
        )
        for group in groups:
            part = replace(
                self.configuration,
                service=part_of(settings, group),
                service_qos=volatile,
                types=TypeLibrary(self.configuration.types.definitions),
                qos_libraries=QosLibraries(),
            )
            labelled = replace(options, log_label=str(len(self._processes)))
            self._processes.append(SessionProcess(group.name, part, labelled, self._around, self._mail.put))
        while len(self._started) < len(self._processes) and not self.stop_cause:
            self._listen()
            self.transport.wait(IDLE_NS)

    def _turn(self) -> None:
        self._turned_at_ns, self._state = time.monotonic_ns(), "serving"
        for request in self.transport.poll():
            assert isinstance(request, CommandRequest)
            if is_recording_request(request):
                self.transport.put([self._recordings.answer(request)])
            elif is_configuration_request(request):
                name = self.engine.hosted.application_name
                self.transport.put([CommandReply(request.request, name, self._snippets.configuration())])
            else:
                self._take(request)
        self._recordings.poll()
        self._listen()
        self.transport.flush()

    def _take(self, request: CommandRequest) -> None:
        command = request.command
        if isinstance(command, GetStatus) and _is_of_service(command.queue) and self.engine.hosted.queues():
            self._ask(request.request, dict.fromkeys(self._placement.holders(), command))
        elif (queue := _queue_of(command)) is not None and (holder := self._holder(queue)) is not None:
            self._ask(request.request, {holder: command})
        else:
            self._answer(request)

    def _holder(self, queue: ResourceIdentifier) -> ProcessIndex | None:
        """Return the process of a queue; None if this service has no such queue, which the engine reports."""
        try:
            return self._placement.holder(self.engine.hosted.queue(queue.bare).name)
        except NotFound:
            return None

    def _answer(self, request: CommandRequest) -> None:
        """Answer from the configuration, or change it and pass the change to the processes concerned before
        replying.
        """
        done = self._loop.turn([request])
        commands = self._placement.follow(request.command, done.service_records)
        if commands:
            (made,) = (each for each in done.messages if isinstance(each, CommandReply))
            self._ask(request.request, commands, made)
        else:
            self.transport.put(done.messages)

    def _ask(
        self,
        request: SampleIdentity,
        commands: Mapping[ProcessIndex, Command],
        made: CommandReply | None = None,
    ) -> None:
        self._asked_count += 1
        identity = SampleIdentity(self._guid, self._asked_count)
        self._asked[identity] = _Asked(request, set(commands), [], made, is_of_one=len(commands) == 1)
        for index, command in commands.items():
            self._processes[index].send(Ask(CommandRequest(identity, self.engine.hosted.application_name, command)))

    def _listen(self) -> None:
        for process, message in self._mail.take():
            self._heard(process, message)

    def _heard(self, process: SessionProcess, message: FromSession) -> None:
        match message:
            case SessionStarted():
                self._started.add(process)
            case SessionAnswers(replies):
                for reply in replies:
                    self._replied(self._processes.index(process), reply)
            case SessionCounted(figures):
                self._figures[process] = figures
            case SessionLeft(count):
                process.has_ended = True
                self._unanswered_count += count
            case SessionFailed():
                process.has_ended = True
                raise message.error()
            case _:
                if not process.has_ended:
                    process.has_ended = True
                    raise process.loss()

    def _replied(self, index: ProcessIndex, reply: CommandReply) -> None:
        asked = self._asked[reply.request]
        if reply.intermediate and asked.is_of_one:
            # There may be millions of samples: they are not gathered here.
            self.transport.put([msgspec.structs.replace(reply, request=asked.request)])
            return
        asked.replies.append(reply)
        if reply.intermediate:
            return
        asked.awaited.discard(index)
        if not asked.awaited:
            del self._asked[reply.request]
            self.transport.put(self._reply_of(asked))

    def _reply_of(self, asked: _Asked) -> list[CommandReply]:
        """Combine the replies of the processes into those of one service, in the order of the configuration."""
        replies = asked.replies
        if asked.made is not None:
            failed = [each for each in replies if each.reply.retcode is not ReturnCode.OK]
            for each in failed:
                self.log.error("session_refused_a_change", text=each.reply.text)
            replies = failed[:1] or [asked.made]
        elif all(isinstance(each.reply.body, SharedReaderQueueStatus) for each in replies):
            hosted = self.engine.hosted.queues()
            order = {"/".join(name for _, name in queue.names): at for at, queue in enumerate(hosted)}
            replies = sorted(replies, key=lambda each: order[each.reply.body.queue_name])  # type: ignore[union-attr]
        last = len(replies) - 1
        return [
            CommandReply(asked.request, each.replying_service, each.reply, intermediate=at < last)
            for at, each in enumerate(replies)
        ]

    def _report_to(self, address: str) -> None:
        """Make every session report events to a recorder at this address; empty: stop reporting."""
        for process in self._processes:
            if not process.has_ended:
                with contextlib.suppress(NoAnswer):  # it is gone; the next turn reports that
                    process.send(ReportTo(address))

    def _request_departure(self) -> None:
        for process in self._processes:
            if not process.has_ended:
                try:
                    process.send(StopSession(self.stop_cause or "another session ended"))
                except NoAnswer:
                    process.has_ended = True

    def _leave(self) -> None:
        cause = self.stop_cause = self.stop_cause or "SHUTDOWN"
        self.log.info("leaving", cause=cause)
        self._state = "leaving"
        deadline = time.monotonic_ns() + self.options.grace_ns + LEAVE_NS
        self._request_departure()
        while not all(process.has_ended for process in self._processes) and time.monotonic_ns() < deadline:
            self._listen()
            self.transport.flush()
            self.transport.wait(10 * MILLISECOND_NS)
        while not self.transport.flush() and time.monotonic_ns() < deadline:
            self.transport.wait(MILLISECOND_NS)
        self.log.info("left", cause=cause, unanswered=self._unanswered_count)


def _is_of_service(resource: ResourceIdentifier | None) -> bool:
    """Return whether a status is that of all queues, and not of one or of the configuration."""
    return resource is not None and resource.kind is None


def _queue_of(command: Command) -> ResourceIdentifier | None:
    """Return the queue whose process must answer the command; None if the coordinator answers it."""
    match command:
        case (
            FlagSamples(queue)
            | FlushQueue(queue)
            | GetMessages(queue)
            | GetStatus(queue)
            | InsertSamples(queue)
            | MoveSamples(queue)
            | RemoveSamples(queue)
        ):
            return queue
        case GetData(resource):
            return resource
        case _:
            return None
