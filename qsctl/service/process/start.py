"""The start of a service from the command line: log, domains, daemon, metrics and supervisor [QS 4.2].

Decides: the order. Every check comes before a file is written or a domain is entered.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qsctl.config.qos_libraries.transport_properties import DOMAIN_ID_MAX
from qsctl.config.rules.replication import configuration_replication_of, instances_of, members_of
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import StartRecording
from qsctl.core.settings import ServiceSettings
from qsctl.errors import InvalidInput, NoAnswer, Refused, UsageError
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.service.process.background import written_pid
from qsctl.service.process.daemon import Daemon, obeyed_signals
from qsctl.service.process.heap import heap_snapshots
from qsctl.service.process.logger import ServiceLog, Verbosity, dds_verbosity, log_stream
from qsctl.service.process.supervisor import SOCKET_VARIABLE, Supervisor
from qsctl.service.recording.new_folder import check as check_recording
from qsctl.service.run.domains import places_of_configuration, warnings_for
from qsctl.service.run.open_service import GRACE_NS, DaemonOptions, drift_of
from qsctl.service.sessions.coordinator import Coordinator
from qsctl.service.sessions.groups import session_groups
from qsctl.service.sessions.worker import WorkerSurroundings
from qsctl.transport.dds.participant import LEASE_DURATION_NS, LOOPBACK, DomainSettings
from qsctl.transport.dds.peers.peer_addresses import addresses_of

NAMES_PATIENCE_S: Final = 60
"""Time that a starting service waits for the names of its peers."""

NAMES_PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The options of [QS Table 4.1] and ours, without those that select the configuration. Durations in ns unless
    noted.
    """

    interface: str = LOOPBACK
    peers: tuple[str, ...] = ()
    lease_duration_ns: Nanoseconds = LEASE_DURATION_NS
    administration_domain_id: int | None = None
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    runs_in_background: bool = False
    grace_ns: Nanoseconds = GRACE_NS
    verbosity: int = 1
    log_file: Path | None = None
    log_json: bool = False
    pid_file: Path | None = None
    heap_snapshot_period_s: int = 0
    heap_snapshot_directory: Path = Path()
    warnings: tuple[str, ...] = ()
    record: StartRecording | None = None
    forgets_configuration: bool = False
    """Whether the configuration kept by an earlier run is dropped, because it comes from other services [QS 2.14.1]."""
    reread: Callable[[], ServiceConfiguration] | None = None
    """Function that reads the configuration's files again, at SIGHUP; None: it was not read from files."""
    members: tuple[str, ...] = ()
    """The application names of the members that the cluster was formed with; empty: they are discovered."""
    joins: bool = False
    """Whether the service is new to a cluster that was formed."""
    master_priority: int = 0
    """The priority of the service as master of replicated queues."""
    cluster_key_file: Path | None = None
    """The keys that sign the replication messages between the members of the cluster."""
    accepts_unsigned: bool = False
    """Whether replication messages without a signature are accepted beside signed ones."""
    discards_damaged: bool = False
    """Whether to continue with the intact records after a loss; else the service does not start."""
    without_tcp: bool = False
    """Whether participants configured for TCP use UDP only."""


def run_service(configuration: ServiceConfiguration, options: StartOptions, on_start: Callable[[str], None]) -> str:
    """Run a service until it is stopped; return the cause: a signal's name or SHUTDOWN.

    `on_start` is called once clients can reach it, with a line for people that describes how.

    Raises:
        Refused: the configuration requires a feature that this version does not have.
        NotFound, Refused, InvalidInput: a key file cannot be used.
        InvalidInput: the storage directory does not exist, or a name cannot be part of a file's.
        Unavailable: DDS cannot start, or the metrics port is not available.
        Damaged: the stored state cannot be read, or an I/O error occurs.
    """
    members = members_of(configuration, options.members, joins=options.joins)
    is_member = instances_of(configuration.service, configuration_replication_of(configuration)) > 0
    if options.cluster_key_file is not None and not is_member:
        raise Refused("a key of a cluster is given, and nothing is replicated", remedy="Leave --cluster-key out.")
    if options.accepts_unsigned and options.cluster_key_file is None:
        raise UsageError("--accept-unsigned is for members with a key", remedy="Name its file with --cluster-key.")
    directory = configuration.filesystem.directory or Path.cwd()
    if not directory.is_dir():
        raise InvalidInput(
            f"the directory of the persistent storage, {directory}, does not exist",
            remedy="Make it, or name another with -persistentStoragePath or <filesystem><directory>.",
        )
    if options.record is not None:
        check_recording(options.record)
    administration = options.administration_domain_id
    if administration is not None and not 0 <= administration <= DOMAIN_ID_MAX:
        raise UsageError(
            f"-remoteAdministrationDomainId {administration} is not a domain",
            remedy=f"Domain ids run from 0 to {DOMAIN_ID_MAX}.",
        )
    level = Verbosity(options.verbosity)
    settings = DomainSettings(
        interface=options.interface,
        peers=options.peers,
        lease_duration_ns=max(options.lease_duration_ns, SECOND_NS // 10),
        verbosity=dds_verbosity(level),
    )
    places = places_of_configuration(
        configuration,
        settings,
        options.administration_domain_id,
        without_tcp=options.without_tcp,
        cluster_key_file=options.cluster_key_file,
        accepts_unsigned=options.accepts_unsigned,
    )
    with log_stream(options.log_file) as stream:
        log = ServiceLog(configuration.service.application_name, level, stream=stream, as_json=options.log_json)
        for text in (*options.warnings, *warnings_for(settings, places, is_member=is_member)):
            log.warning("configuration", text=text)
        daemon_options = DaemonOptions(
            places=places,
            storage_directory=directory,
            runs_in_background=options.runs_in_background,
            metrics_port=options.metrics_port,
            metrics_address=options.metrics_address,
            grace_ns=options.grace_ns,
            record=options.record,
            members=members,
            joins=options.joins,
            master_priority=options.master_priority,
            reread=options.reread,
            forgets_configuration=options.forgets_configuration,
            discards_damaged=options.discards_damaged,
        )
        _await_names(options.peers, log)
        supervisor = Supervisor()
        with log.endings():
            service = _opened(configuration, options, daemon_options, log, is_member=is_member)
            outlives_terminal = options.log_file or options.runs_in_background or SOCKET_VARIABLE in os.environ
            with (
                obeyed_signals(service.stop, service.hang_up if outlives_terminal else None),
                written_pid(options.pid_file),
                heap_snapshots(configuration.name, options.heap_snapshot_period_s, options.heap_snapshot_directory),
            ):
                hosted = service.engine.hosted.settings

                def started() -> None:
                    on_start(_where(configuration, hosted(), options))
                    supervisor.ready()

                service.run(started, supervisor)
            return service.stop_cause


def _await_names(peers: Sequence[str], log: ServiceLog) -> None:
    """Wait until the host names of peers can be resolved: machines that start together may not be in DNS at first.

    Raises:
        UsageError: a peer is malformed.
        NoAnswer: a name cannot be resolved in time.
    """
    deadline, is_reported = time.monotonic() + NAMES_PATIENCE_S, False
    while True:
        try:
            addresses_of(peers)
            return
        except NoAnswer as error:
            if time.monotonic() >= deadline:
                raise
            if not is_reported:
                log.warning("peer_not_resolved", cause=error.message, waits_s=NAMES_PATIENCE_S)
                is_reported = True
        time.sleep(NAMES_PAUSE_S)


def _opened(
    configuration: ServiceConfiguration,
    options: StartOptions,
    daemon_options: DaemonOptions,
    log: ServiceLog,
    *,
    is_member: bool,
) -> Daemon | Coordinator:
    """Return the service as one process, or as a coordinator with a process for each group of sessions [QS 3.3.9]."""
    if len(session_groups(configuration.service)) <= 1 or is_member:
        return Daemon(configuration, daemon_options, log)
    around = WorkerSurroundings(
        Verbosity(options.verbosity),
        options.log_file,
        options.log_json,
        options.heap_snapshot_period_s,
        options.heap_snapshot_directory,
        options.metrics_port is not None,
    )
    return Coordinator(configuration, daemon_options, around, log)


def _where(configuration: ServiceConfiguration, hosted: ServiceSettings, options: StartOptions) -> str:
    """Return a line with the domains and the name by which clients reach the service, and warnings."""
    domains = sorted({participant.domain_id for participant in hosted.participants})
    administration = options.administration_domain_id
    if administration is None and configuration.administration is not None:
        administration = configuration.administration.domain_id
    count = sum(len(subscriber.queues) for each in hosted.participants for subscriber in each.subscribers)
    commands = "no administration" if administration is None else f"administration in domain {administration}"
    place = (
        f"service {hosted.application_name} is up: {count} {'queue' if count == 1 else 'queues'} in domain "
        f"{', '.join(map(str, domains))}, {commands}, interface {options.interface}"
    )
    return "\n".join([place, *(f"Warning: {text}" for text in drift_of(configuration, hosted))])
