"""Which creation of a queue each service hosts, and how many logs of it are left: from what is durable on their disks.

Decides nothing about services; the rules need it, for a name is not the queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from qsctl.core.high_availability.ballot import NO_VOTER, HardState
from qsctl.core.ready import SERVICE_STREAM
from qsctl.core.records import (
    Enqueued,
    EpochBegan,
    QueueCreated,
    Record,
    Removed,
    SubscriberCreated,
)
from qsctl.identity import SampleIdentity
from qsctl.sim.world.administrator import Administrator
from qsctl.sim.world.disk import Append, Operation, StreamFile
from qsctl.sim.world.history import Observer

OF_THE_FILE = 0
"""The creation of a queue that a service has from its configuration file."""


class Incarnations(Observer):
    """A plain fold of each service's own stream.

    Args:
        administrator: whose commands create queues.
    """

    def __init__(self, administrator: Administrator) -> None:
        self._administrator = administrator
        self._hosted: dict[tuple[int, str], int] = {}

    def of(self, service: int, queue: str) -> int:
        """Return which creation of a queue a service has: by the full name, or by that of its stream."""
        return self._hosted.get((service, queue), OF_THE_FILE)

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Fold what is durable now."""
        for operation in operations:
            if isinstance(operation, Append) and operation.stream == SERVICE_STREAM:
                for record in operation.records:
                    self._fold(service, record)

    def lost_disk(self, service: int) -> None:
        """Begin with the file again."""
        self._hosted = {key: which for key, which in self._hosted.items() if key[0] != service}

    def _fold(self, service: int, record: Record) -> None:
        match record:
            case QueueCreated(participant, subscriber, settings):
                self._host(service, f"{participant}/{subscriber}/{settings.name}")
            case SubscriberCreated(participant, settings):
                for queue in settings.queues:
                    self._host(service, f"{participant}/{settings.name}/{queue.name}")
            case _:
                pass

    def _host(self, service: int, queue: str) -> None:
        self._hosted[service, queue] = self._administrator.part_at(queue, self._administrator.now)[0]


def best_left(logs: Iterable[tuple[int, StreamFile | None]], quorum: int) -> StreamFile | None:
    """Return the log that reaches furthest where fewer than a quorum are left; None: a quorum is.

    Args:
        logs: of each service that is not gone for good, which creation of the queue it is, and the log; None: nothing.
        quorum: how many a group needs.
    """
    left = [(which, log) for which, log in logs if log is not None and is_log(log)]
    if not left:
        return StreamFile()
    which, count = Counter(which for which, _ in left).most_common(1)[0]
    if count >= quorum:
        return None
    return max((log for each, log in left if each == which), key=_last)


def is_log(log: StreamFile) -> bool:
    """Whether a stored stream is that of a replica that has a vote."""
    return log.hard_state != HardState() and log.hard_state.vote != NO_VOTER


def held_in(log: StreamFile) -> frozenset[SampleIdentity]:
    """Return the samples that a log enqueues and does not remove."""
    held: dict[tuple[str, int], SampleIdentity] = {}
    dead: set[SampleIdentity] = set()
    for record in log.load():
        if isinstance(record, Enqueued):
            held[record.queue, record.position] = record.identity
            if record.dead_letter_reason is not None:
                dead.add(record.identity)
        elif isinstance(record, Removed):
            held.pop((record.queue, record.position), None)
    return frozenset(held.values()) - dead


def _last(log: StreamFile) -> tuple[int, int]:
    """Return how far a log reaches: the epoch of its last entry, and its length."""
    epochs = [record.epoch for record in log.load() if isinstance(record, EpochBegan)]
    return (epochs[-1] if epochs else 0, log.last_index)
