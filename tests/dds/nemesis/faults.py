"""Faults of members: what each does to a process, its disk or its links, and how it ends."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from tests.dds.nemesis.hosts import Links
from tests.dds.nemesis.service import NAMESPACE
from tests.dds.service_process import ServiceProcess
from tests.dds.watched_service import HANG
from tests.patience import PATIENCE_S

FULL_BYTES: Final = 20_000
"""The length up to which a full disk still takes a file."""

End: TypeAlias = Callable[[], None]
"""Ends a fault: the member is whole again."""

Fault: TypeAlias = Callable[["Victim"], End]


class Victim:
    """A member that a fault is to meet."""

    def __init__(self, name: str, service: ServiceProcess, others: tuple[str, ...], draw: Random) -> None:
        self.name, self.service, self.others, self.draw = name, service, others, draw

    def signal(self, number: int) -> None:
        """Send its process a signal."""
        os.kill(self.service.pid, number)

    def kill(self) -> None:
        """Kill its process."""
        self.signal(signal.SIGKILL)
        assert self.service.process is not None
        self.service.process.wait(PATIENCE_S)


def wipe(service: ServiceProcess) -> None:
    """Remove the files of a service that does not run, but its configuration and its log."""
    for path in service.directory.iterdir():
        if path not in (service.file, service.log, service.directory / NAMESPACE):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _killed(victim: Victim) -> End:
    victim.kill()
    return victim.service.start


def _wiped(victim: Victim) -> End:
    victim.kill()
    wipe(victim.service)
    return victim.service.start


def _stopped(victim: Victim) -> End:
    victim.signal(signal.SIGTERM)

    def restart() -> None:
        assert victim.service.process is not None
        status = victim.service.process.wait(PATIENCE_S)
        assert status == 0, f"{victim.name} ended with {status}"
        victim.service.start()

    return restart


def _paused(victim: Victim) -> End:
    victim.signal(signal.SIGSTOP)
    return lambda: victim.signal(signal.SIGCONT)


def _hanging(victim: Victim) -> End:
    hang = victim.service.directory / HANG
    hang.touch()
    return hang.unlink


def _full(victim: Victim) -> End:
    resource.prlimit(victim.service.pid, resource.RLIMIT_FSIZE, (FULL_BYTES, resource.RLIM_INFINITY))

    def restart() -> None:
        victim.kill()
        victim.service.start()

    return restart


FAULTS: Final[dict[str, tuple[int, float, Fault]]] = {
    "killed": (4, 4.0, _killed),
    "stopped": (3, 4.0, _stopped),
    "paused": (4, 4.0, _paused),
    "disk hangs": (3, 4.0, _hanging),
    "disk full": (2, 3.0, _full),
    "wiped": (2, 4.0, _wiped),
}
"""Of each fault its weight, its longest time in seconds, and what it does."""


def link_faults(links: Links) -> dict[str, tuple[int, float, Fault]]:
    """Return the same of links."""

    def mute(victim: Victim) -> End:
        """Cut the links of a member to some others, or to all, in one direction."""
        others = (*victim.others, "")
        links.cut(victim.name, victim.draw.sample(others, victim.draw.randint(1, len(others))))
        return lambda: links.heal(victim.name)

    def deaf(victim: Victim) -> End:
        """Cut the links of some others, or of all, to a member, in one direction."""
        cut = victim.draw.sample(victim.others, victim.draw.randint(1, len(victim.others)))
        for each in cut:
            links.cut(each, (victim.name,))

        def heal() -> None:
            for each in cut:
                links.restore(each, victim.name)

        return heal

    def losing(victim: Victim) -> End:
        links.lose(victim.name)
        return lambda: links.heal(victim.name)

    return {"mute": (4, 4.0, mute), "deaf": (3, 4.0, deaf), "losing": (3, 6.0, losing)}
