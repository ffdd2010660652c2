"""A service whose disk refuses writes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerJoined,
    Delivery,
    Inbound,
    Outbound,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.queue.settings import PersistenceSettings
from qsctl.identity import SampleIdentity
from qsctl.service.stores.recovery import AGAIN_AFTER_NS
from qsctl.service.stores.stores import Stores
from tests.service.pipelines import IN_MEMORY, ON_DISK, READER, WRITER, pipelined, queue, service

VOLATILE = PersistenceSettings()
QUEUES = {"volatile": VOLATILE, "segments": IN_MEMORY, "database": ON_DISK}
BIG = 60_000


class Trial:
    """A service with a queue of each kind, its producers and its consumers."""

    def __init__(self, directory: Path, *, keeps_state: bool = False) -> None:
        queues = [queue(name, persistence) for name, persistence in QUEUES.items()]
        self.loop = pipelined(service(directory, *queues, keeps_state=keeps_state))
        self.reports: list[tuple[str, str]] = []
        self.loop.recovery.report = lambda event, name, _reason: self.reports.append((event, name))
        self.kept: dict[str, dict[int, bytes]] = {name: {} for name in QUEUES}
        """What producers were answered 1 for and no consumer has acknowledged."""
        self.refused: dict[str, set[int]] = {name: set() for name in QUEUES}
        self._number = 0

    def turn(self, inbox: Sequence[Inbound] = ()) -> list[Outbound]:
        self.loop.begin(inbox)
        return [message for released in self.loop.drain() for message in released.messages]

    def write(self, name: str, size_bytes: int = 100) -> AckResponse:
        """One sample; its producer's answer."""
        self._number += 1
        payload = b"%08d" % self._number * (size_bytes // 8)
        message = Write("P", name.capitalize(), SampleIdentity(WRITER, self._number), payload)
        answers = [each for each in self.turn([message]) if isinstance(each, WriteAcknowledgment)]
        assert len(answers) == 1, f"{name}: the producer got {len(answers)} answers"
        if answers[0].response is AckResponse.ACCEPTED:
            self.kept[name][self._number] = payload
        else:
            self.refused[name].add(self._number)
        return answers[0].response

    def consume(self, name: str, count: int) -> int:
        """Take and acknowledge so many samples; gives how many there were."""
        queue_name = f"P/S/{name}"
        joined = ConsumerJoined(queue_name, READER, unacked_threshold=count - 1, reception_enabled=True)
        held = [each for each in self.turn([joined]) if isinstance(each, Delivery)]
        self.turn([ConsumerJoined(queue_name, READER, reception_enabled=False)])
        for each in held:
            number = each.identity.sequence_number
            assert number not in self.refused[name], "what was refused never comes"
            assert each.payload == self.kept[name].pop(number)
        self.turn([Acknowledgment(queue_name, READER, each.identity) for each in held])
        return len(held)

    def fill_up(self, name: str, size_bytes: int = BIG) -> int:
        """Write until one is refused; gives how many were taken."""
        for count in range(1_000):
            if self.write(name, size_bytes) is AckResponse.REJECTED:
                return count
        raise AssertionError("the disk never got full")

    def recover(self) -> None:
        """Wait until nothing is wrong with the stores any more."""
        until = time.monotonic() + 60
        while self.loop.recovery.is_needed:
            assert time.monotonic() < until, f"still {self.loop.stores.failures.error}"
            time.sleep(AGAIN_AFTER_NS / 5e9)
            self.loop.rest()

    def close(self) -> None:
        self.loop.close()
        self.loop.stores.close()


@contextmanager
def restarted(directory: Path) -> Iterator[Trial]:
    trial = Trial(directory)
    yield trial
    trial.close()


def refusing(error: int, *, calls: str, only: str) -> Callable[..., object]:
    """The call, which fails for descriptors of files with this in their names."""
    real = getattr(os, calls)

    def call(descriptor: int, *arguments: object) -> object:
        if only in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(error, os.strerror(error))
        return real(descriptor, *arguments)

    return call


def stores(directory: Path, application: str = "app", *, prefix: str = "QS", wait_s: float = 0.0) -> Stores:
    filesystem = FilesystemSettings(file_prefix=prefix)
    return Stores(directory, filesystem, application, keeps_service_state=True, claim_wait_s=wait_s)
