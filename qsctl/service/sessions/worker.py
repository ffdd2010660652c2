"""The process of one group of sessions: a service without administration [QS 3.3.9].

Decides: the division of work. The coordinator handles signals, commands, the service's state and the metrics port; the
session handles samples, their files, their status and their log lines.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from qsctl.config.settings import ServiceConfiguration
from qsctl.endings import whole_process
from qsctl.errors import QsctlError
from qsctl.service.process.daemon import Daemon
from qsctl.service.process.heap import heap_snapshots
from qsctl.service.process.logger import ServiceLog, Verbosity, log_stream
from qsctl.service.run.open_service import DaemonOptions
from qsctl.service.sessions._link import PipedCommands, SessionCounted, SessionFailed, SessionLeft, SessionStarted


@dataclass(frozen=True, slots=True)
class WorkerSurroundings:
    """The log of a service's processes, and their work beside the queues."""

    verbosity: Verbosity
    log_file: Path | None = None
    log_json: bool = False
    heap_snapshot_period_s: int = 0
    heap_snapshot_directory: Path = Path()
    serves_metrics: bool = False


def session_process(
    link: Connection, name: str, configuration: ServiceConfiguration, options: DaemonOptions, around: WorkerSurroundings
) -> None:
    """Run the process of a group of sessions."""
    with whole_process():
        run_session(link, name, configuration, options, around)


def run_session(
    link: Connection, name: str, configuration: ServiceConfiguration, options: DaemonOptions, around: WorkerSurroundings
) -> None:
    """Serve the sessions until the coordinator sends a stop, or ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal and systemd signal every process; the coordinator's counts
    commands = PipedCommands(link)
    with log_stream(around.log_file) as stream:
        log = ServiceLog(
            configuration.service.application_name,
            around.verbosity,
            stream=stream,
            as_json=around.log_json,
            session=name,
        )
        try:
            with (
                log.endings(),
                heap_snapshots(configuration.name, around.heap_snapshot_period_s, around.heap_snapshot_directory),
            ):
                report_figures = (
                    (lambda figures: commands.report(SessionCounted(figures))) if around.serves_metrics else None
                )
                daemon = Daemon(configuration, options, log, commands=commands, report_figures=report_figures)
                commands.listen(daemon.transport.wake, daemon.stop, daemon.report_to, daemon.obey)
                daemon.run(lambda: commands.report(SessionStarted()))
        except QsctlError as error:
            commands.report(SessionFailed(type(error), error.message, error.remedy))
        else:
            commands.report(SessionLeft(daemon.unanswered_count))
