"""The samples of a queue by identity, and the identities that it recently retired [QS 2.9 and 5.2.2].

Decides: how long a retired identity is remembered, so that a second sample with it is recognized as a duplicate. Every
held sample passed `Held.enter`: samples that `Entry` enqueued, and samples that `QueueReplay` restored from a store or
from the log of a replication group, for which an `Entry` had decided before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final

from qsctl.core.queue.sample import Sample
from qsctl.identity import SampleIdentity

RETIRED_IDENTITIES_MAX: Final = 8_192
"""Number of remembered identities: far more than a producer, whose send window is finite, repeats unacknowledged."""


class Held:
    """One dictionary of every identity that may not enter again: a held sample, or None for a retired one.

    Iteration is in queue order: positions only grow, and a dictionary keeps the order of insertion.
    """

    __slots__ = ("_retired", "known", "next_position")

    def __init__(self) -> None:
        self.known: dict[SampleIdentity, Sample | None] = {}
        """Read by all parts of the queue; changed only here."""
        self._retired: deque[SampleIdentity] = deque()
        self.next_position = 1

    def __len__(self) -> int:
        return len(self.known) - len(self._retired)

    def __iter__(self) -> Iterator[Sample]:
        return filter(None, self.known.values())

    def enter(self, sample: Sample) -> bool:
        """Hold a sample; return False if its identity is held, or was retired at this position or a later one.

        A retired identity may enter again, at a position behind all earlier ones, if a command brings it.
        """
        # One look-up: a restart may bring a million samples.
        known, identity = self.known, sample.identity
        if known.setdefault(identity, sample) is not sample:
            if known[identity] is not None or sample.position < self.next_position:
                return False
            self.forget(identity)
            known[identity] = sample
        # In a compacted store the next position precedes the held samples.
        if sample.position >= self.next_position:
            self.next_position = sample.position + 1
        return True

    def go_beyond(self, position: int) -> None:
        """Ensure that new samples get positions behind this one."""
        self.next_position = max(self.next_position, position + 1)

    def retire(self, sample: Sample) -> None:
        """Remove a sample and remember its identity for a while."""
        self.known[sample.identity] = None
        retired = self._retired
        retired.append(sample.identity)
        if len(retired) > RETIRED_IDENTITIES_MAX:
            del self.known[retired.popleft()]

    def forget(self, identity: SampleIdentity) -> None:
        """Forget a retired identity, so that a sample with it may enter again."""
        self._retired.remove(identity)
        del self.known[identity]

    def retired(self) -> tuple[SampleIdentity, ...]:
        """Return the remembered identities, oldest first."""
        return tuple(self._retired)

    def newer_than(self, position: int) -> list[Sample]:
        """Return the held samples behind a position, in queue order."""
        newer = takewhile(lambda sample: sample.position > position, filter(None, reversed(self.known.values())))
        return list(newer)[::-1]

    def clear(self) -> None:
        """Drop all samples and remembered identities, as in a queue that was just created."""
        self.known.clear()
        self._retired.clear()
        self.next_position = 1

    def remember(self, next_position: int, identities: Iterable[SampleIdentity]) -> None:
        """Restore the next position and the retired identities from the state of a compacted store."""
        self.next_position = max(self.next_position, next_position)
        for identity in self._retired:
            del self.known[identity]
        self._retired.clear()
        for identity in identities:
            if identity not in self.known:
                self.known[identity] = None
                self._retired.append(identity)
