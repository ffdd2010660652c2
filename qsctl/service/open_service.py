"""The state of a service as its process begins: what it is asked to be, and what its files make of it.

Decides: which of a configuration's settings shape the engine and its stores, in the process that holds the samples and
in the one that only coordinates those that do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.queue.settings import PersistenceKind
from qsctl.errors import Refused
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.service.logger import ServiceLog
from qsctl.service.loop import ServiceLoop
from qsctl.service.restore import restore
from qsctl.service.stores import Stores
from qsctl.transport.dds.endpoints import SAMPLE_SIZE_BYTES_MAX
from qsctl.transport.dds.service_transport import ServicePlaces

GRACE_NS: Final[Nanoseconds] = 2 * SECOND_NS
"""How long consumers may still answer once the service shuts down."""


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """What the command line adds to a configuration.

    `runs_in_background` makes SHUTDOWN answer UNSUPPORTED (section 5.4.9): who started a daemon stops it.
    """

    places: ServicePlaces = field(default_factory=ServicePlaces)
    storage_directory: Path = Path()
    runs_in_background: bool = False
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    grace_ns: Nanoseconds = GRACE_NS


class DaemonEngine(ServiceEngine):
    """The engine of a service that its operating system stops (section 5.4.9)."""

    def request_shutdown(self) -> None:
        """Refuse: a daemon is not stopped remotely.

        Raises:
            Refused: always.
        """
        raise Refused(
            f"service {self.application_name} runs as a daemon", remedy="Stop it where it was started: SIGTERM."
        )


def open_service(
    configuration: ServiceConfiguration, options: DaemonOptions, *, holds_samples: bool = True
) -> ServiceLoop:
    """An engine that goes on where the last run stopped, with its stores.

    Args:
        configuration: what is hosted, unless a stored configuration takes its place (section 2.14.1).
        options: where the files are.
        holds_samples: False: only the configuration is kept here; other processes have the queues' files.

    Raises:
        InvalidInput: the storage directory does not exist, or a name cannot be part of a file's.
        Refused: two persistent queues would share a file.
        Damaged: the stored state cannot be read.
    """
    make = DaemonEngine if options.runs_in_background else ServiceEngine
    engine = make(
        configuration.service,
        started_at=time.time_ns(),
        journal=Journal.PERSISTENT_ONLY,
        payload_size_bytes_max=SAMPLE_SIZE_BYTES_MAX,
    )
    persistence = configuration.service_qos.persistence
    stores = Stores(
        options.storage_directory,
        configuration.filesystem,
        configuration.service.application_name,
        keeps_service_state=persistence.kind is PersistenceKind.PERSISTENT,
        holds_samples=holds_samples,
    )
    if stores.service is not None and not persistence.restore:
        stores.service.compact([])
    restore(engine, stores, time.time_ns())
    return ServiceLoop(engine, stores)


def tell_damage(log: ServiceLog, stores: Stores) -> None:
    """Say what of the stored state was found broken."""
    for report in stores.damage:
        log.warning("stored_state_damaged", report=str(report))
