"""The number of messages consumed in a turn: a quantum for each reader, and a bound on the readers of one turn.

While the service works, its peers process their answers, too; a turn that consumed all of a producer's window made the
two wait for each other. Each step of a turn reads its messages again, so they must fit into the processor's caches: ten
busy queues in one turn cost a third more a sample than in turns (tests/benchmarks/test_dds.py,
`test_ten_persistent_queues_together_take_nine_tenths_of_what_one_takes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

from qsctl.core.messages import Inbound

Taken = TypeVar("Taken")
SourceKind = TypeVar("SourceKind", bound="MessageSource")

READER_SHARE: Final = 256
"""Approximate number of messages that a turn consumes from one reader."""

TURN_SHARE: Final = 2 * READER_SHARE
"""Approximate number of answers, or of samples, after which a turn leaves the other queues to the next turn."""

TAKES_MAX: Final = 64
"""A turn takes from a reader so often at most, whatever it gets: what cannot be read costs time and gives nothing."""


class MessageSource(Protocol):
    """A source of messages for the engine."""

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
        """Append sources that have messages to the line, poll each once until the turn's quantum is used; return the
        polled ones.
        """
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
