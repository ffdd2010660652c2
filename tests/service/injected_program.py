"""A program one of whose calls is refused by the system: a command of an embedded service.

`injected_program STATE_DIR JOURNAL_MODE`: it writes to both queues, consumes, and prints a line for each thing that it
reports: the class of an error, or a damage.
"""

from __future__ import annotations

import sys
from pathlib import Path

from qsctl.errors import QsctlError
from qsctl.service.directory.embedded import open_embedded
from tests.service.embedded_commands import FULL_NAME, IN_MEMORY, ON_DISK, create, queue, write
from tests.service.traced_program import configuration
from tests.storage.await_strace import await_strace

QUEUES = {"Log": IN_MEMORY, "Database": ON_DISK}


def fill(state_dir: Path, journal_mode: str) -> None:
    """Make a service with samples in both queues."""
    with open_embedded(state_dir, configuration=configuration("FULL", journal_mode)) as service:
        for name, persistence in QUEUES.items():
            create(service, queue(name, persistence))
            write(service, *(f"{name} {at}".encode() for at in range(4)), topic=name)


def main() -> None:
    await_strace()
    given = configuration("FULL", sys.argv[2])
    try:
        with open_embedded(Path(sys.argv[1]), configuration=given) as service:
            try:
                for name in QUEUES:
                    write(service, *(b"new" + bytes(900) for _ in range(3)), topic=name, start=10)
                    service.acknowledge_all(service.receive(FULL_NAME + name, 1, 0.0), ok=True)
            finally:
                for report in service.damage:
                    sys.stdout.write(f"damage {report}\n")
    except QsctlError as error:
        sys.stdout.write(f"{type(error).__name__} {error.message}\n")


if __name__ == "__main__":
    main()
