"""How much of what has come is taken in a turn, and from whom: a share of each reader, and so many readers at a time.

While the service works, its peers get their answers and work too; a turn that took all of a producer's window made the
two wait for each other. And what a turn takes is touched again by each of its steps, so that it must fit into the
processor's caches: ten busy queues in one turn cost a third more a sample than in turns (`test_ten_persistent_queues`
in `tests/benchmarks/test_dds.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import chain, islice
from typing import Final, Protocol, TypeVar

from qsctl.core.messages import Inbound

Taken = TypeVar("Taken")

READER_SHARE: Final = 256
"""A turn takes about so many messages of a reader and no more."""

TURN_SHARE: Final = 2 * READER_SHARE
"""A turn that has about so many of one kind, answers or samples, leaves the other queues to the next one."""

TAKES_MAX: Final = 64
"""A turn takes from a reader so often at most, whatever it gets: what cannot be read costs time and gives nothing."""


class Source(Protocol):
    """What has messages for the engine."""

    def poll(self, inbox: list[Inbound], /) -> object:
        """Move what is there into the inbox, a turn's share of it."""


def read_all(poll: Callable[[list[Inbound]], bool], inbox: list[Inbound]) -> None:
    """Move everything that is there into the inbox."""
    while poll(inbox):
        pass


def read_share(
    take: Callable[[], Taken | None], put: Callable[[Taken, list[Inbound]], object], inbox: list[Inbound]
) -> bool:
    """Move a turn's share into the inbox. False: `take` gave None, nothing is left."""
    enough = len(inbox) + READER_SHARE
    for _ in range(TAKES_MAX):
        taken = take()
        if taken is None:
            return False
        put(taken, inbox)
        if len(inbox) >= enough:
            break
    return True


class Rotation:
    """Who is polled first: whoever comes after the last one that the turn before had room for."""

    def __init__(self) -> None:
        self._first = 0

    def poll(self, sources: Collection[Source], inbox: list[Inbound]) -> None:
        """Poll in order, each once, until the turn has its share."""
        enough = len(inbox) + TURN_SHARE
        first = self._first if self._first < len(sources) else 0
        self._first = first
        for at, source in enumerate(chain(islice(sources, first, None), islice(sources, first)), first + 1):
            source.poll(inbox)
            if len(inbox) >= enough:
                self._first = at % len(sources)
                return
