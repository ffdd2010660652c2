"""How much of what has come is taken in a turn, and from whom: a share of each reader, and so many readers at a time.

While the service works, its peers get their answers and work too; a turn that took all of a producer's window made the
two wait for each other. And what a turn takes is touched again by each of its steps, so that it must fit into the
processor's caches: ten busy queues in one turn cost a third more a sample than in turns (`test_ten_persistent_queues`
in `tests/benchmarks/test_dds.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

from qsctl.core.messages import Inbound

Taken = TypeVar("Taken")
SourceKind = TypeVar("SourceKind", bound="MessageSource")

READER_SHARE: Final = 256
"""A turn takes about so many messages of a reader and no more."""

TURN_SHARE: Final = 2 * READER_SHARE
"""A turn that has about so many of one kind, answers or samples, leaves the other queues to the next one."""

TAKES_MAX: Final = 64
"""A turn takes from a reader so often at most, whatever it gets: what cannot be read costs time and gives nothing."""


class MessageSource(Protocol):
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


class Rotation(Generic[SourceKind]):
    """A line of sources that have something: a turn polls from its head, and who has more moves to its end."""

    def __init__(self) -> None:
        self._line: dict[SourceKind, None] = {}
        self._polled_at: dict[SourceKind, int] = {}
        self._poll_count = 0

    def poll(self, ready: Iterable[SourceKind], inbox: list[Inbound]) -> list[SourceKind]:
        """Let sources that have something stand in line, poll each once until the turn has its share; return those."""
        line, polled_at = self._line, self._polled_at
        for source in sorted(ready, key=lambda each: polled_at.get(each, 0)):
            line.setdefault(source)
        enough = len(inbox) + TURN_SHARE
        polled: list[SourceKind] = []
        while line and len(inbox) < enough:
            source = next(iter(line))
            del line[source]
            polled.append(source)
            self._poll_count += 1
            polled_at[source] = self._poll_count
            source.poll(inbox)
        return polled

    def leave(self, source: SourceKind) -> None:
        """Poll a source no more: it is closed."""
        self._line.pop(source, None)
        self._polled_at.pop(source, None)
