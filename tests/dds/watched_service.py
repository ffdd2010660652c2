"""`qsctl` with a disk that hangs while the file `hang` is in the working directory, and notes about heartbeats.

A sync takes as long as `QSCTL_TEST_SYNC_S` states: one that takes long is left to another thread.

The file `heard` has a line for each sign of a master: the instant, the octets of memory of the process then, and the
kind of the frame.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from qsctl.__main__ import main
from qsctl.core.high_availability.frames import OfMaster
from qsctl.core.high_availability.replica import Replica
from qsctl.instant import Nanoseconds
from qsctl.storage.file_system import HostFileSystem

QUEUE: Final = "P/S/Orders"
HANG, HEARD = Path("hang"), Path("heard")
SYNC_S: Final = "QSCTL_TEST_SYNC_S"
_LOOK_S: Final = 0.01


def let_disk_hang() -> None:
    """Let syncs hang while the file is there."""
    sync = HostFileSystem.sync

    def hanging(disk: HostFileSystem, descriptor: int) -> None:
        time.sleep(float(os.environ.get(SYNC_S, "0")))
        while HANG.exists():
            time.sleep(_LOOK_S)
        sync(disk, descriptor)

    HostFileSystem.sync = hanging  # type: ignore[method-assign]


def note_heartbeats() -> None:
    """Let signs of a master be noted."""
    receive = Replica._receive_of_master
    heard = HEARD.open("a", encoding="ascii")

    def noted(replica: Replica, now: Nanoseconds, frame: OfMaster) -> str:
        if replica.stream == QUEUE:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            heard.write(f"{time.monotonic_ns()} {pages * os.sysconf('SC_PAGE_SIZE')} {type(frame).__name__}\n")
            heard.flush()
        return receive(replica, now, frame)

    Replica._receive_of_master = noted  # type: ignore[method-assign]


if __name__ == "__main__":
    let_disk_hang()
    note_heartbeats()
    main()
