"""The opening of a service: its engine and stores, from a configuration and the stored state.

Decides: which settings configure the engine and its stores, in a process that holds samples and in the coordinator of
several such processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import StartRecording
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.queue.settings import PersistenceKind
from qsctl.core.settings import ServiceSettings
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.service.process.logger import ServiceLog
from qsctl.service.run.incarnations import drawn_incarnation
from qsctl.service.run.named_configuration import differences, in_one_line
from qsctl.service.stores.restore import restore
from qsctl.service.stores.stores import Stores
from qsctl.storage.claim import Claim
from qsctl.transport.dds.serving.endpoints import SAMPLE_SIZE_BYTES_MAX
from qsctl.transport.dds.serving.service_transport import ServicePlaces

GRACE_NS: Final[Nanoseconds] = 2 * SECOND_NS
"""Time in which consumers may still answer once the service shuts down."""

SHARE_COUNT: Final = 1_000
"""Number of samples of one queue moved in a row, which takes some 3 ms: the bound on how long the others wait where a
consumer comes to a queue of millions or leaves with as many, where they expire, or where a command removes them.
"""


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """Options that the command line adds to a configuration.

    `claim` is the lock on the stores, passed on by the process that has it; `log_label` distinguishes the write-ahead
    logs of a service's processes. `runs_in_background` makes SHUTDOWN answer UNSUPPORTED
    [QS 5.4.9]: a daemon is stopped by its parent. `record` is the recording that begins with the service.
    """

    places: ServicePlaces = field(default_factory=ServicePlaces)
    storage_directory: Path = Path()
    runs_in_background: bool = False
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    grace_ns: Nanoseconds = GRACE_NS
    claim: Claim | None = None
    log_label: str = ""
    reread: Callable[[], ServiceConfiguration] | None = None
    """Function that reads the configuration's files again; None: it was not read from files."""
    process_count: int = 1
    """The number of processes that share the service's memory limit."""
    record: StartRecording | None = None
    forgets_configuration: bool = False
    """Whether the configuration kept by an earlier run is dropped: it comes from other services [QS 2.14.1]."""
    members: tuple[str, ...] = ()
    """The application names of the members that the cluster was formed with; empty: they are discovered."""
    joins: bool = False
    """Whether the service is new to a cluster that was formed."""
    master_priority: int = 0
    """The priority of the service as master of replicated queues."""
    discards_damaged: bool = False
    """Whether to continue with the intact records after a loss; else the service does not start."""
    now: Callable[[], Nanoseconds] = time.time_ns
    """Function that returns Unix nanoseconds, for time-outs and lifespans. A cluster's member uses a steady clock
    instead.
    """
    owns_process: bool = True
    """Whether garbage collection and thread switches of the interpreter are tuned for the service."""


def open_service(
    configuration: ServiceConfiguration, options: DaemonOptions, *, holds_samples: bool = True
) -> tuple[ServiceEngine, Stores]:
    """Open an engine in the state where the last run stopped, and its stores.

    Args:
        configuration: the configuration, unless a stored one replaces it [QS 2.14.1].
        options: the options, with the directory of the files.
        holds_samples: False: this process stores the configuration only; others have the queues' files.

    Raises:
        InvalidInput: the storage directory does not exist, or a name cannot be part of a file's.
        Refused: two persistent queues would share a file.
        Damaged: stored records are lost, and the user has not accepted that.
    """
    engine = ServiceEngine(
        configuration.service,
        started_at=options.now(),
        draw=drawn_incarnation,
        journal=Journal.REPLICATED,
        payload_size_bytes_max=SAMPLE_SIZE_BYTES_MAX,
        stops_on_command=not options.runs_in_background,
    )
    persistence = configuration.service_qos.persistence
    stores = Stores(
        options.storage_directory,
        configuration.filesystem,
        configuration.service.application_name,
        keeps_service_state=persistence.kind is PersistenceKind.PERSISTENT,
        claim=options.claim,
        log_label=options.log_label,
        holds_samples=holds_samples,
        discards_damaged=options.discards_damaged,
        drops_service_state=options.forgets_configuration or not persistence.restore,
    )
    try:
        restore(engine, stores, options.now())
    except BaseException:
        stores.abandon()
        raise
    return engine, stores


def log_damage(log: ServiceLog, stores: Stores) -> None:
    """Log the damage found in the stored state."""
    for report in stores.damage:
        log.warning("stored_state_damaged", report=str(report))


def drift_of(configuration: ServiceConfiguration, hosted: ServiceSettings) -> list[str]:
    """Return the differences between the stored configuration [QS 2.14.1] and the one given at the start, as
    sentences.
    """
    found = differences(configuration, hosted)
    drift = [f"the stored configuration is in force, not {configuration.name} as it was read: {in_one_line(found)}"]
    return drift if found else []


def report_drift(log: ServiceLog, configuration: ServiceConfiguration, hosted: ServiceSettings) -> None:
    """Log the differences between the hosted configuration and the given one."""
    for text in drift_of(configuration, hosted):
        log.warning("configuration_not_in_force", text=text)


def report_namesake(log: ServiceLog, application_name: str, domain_id: int) -> None:
    """Log that another service has the same name, so that it also receives commands for this one."""
    log.warning(
        "another_service_of_this_name",
        name=application_name,
        domain=domain_id,
        text="commands reach both, and producers write to both; start one of them with another -appName",
    )
