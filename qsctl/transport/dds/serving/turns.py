"""The number of messages consumed in a turn: a quantum for each reader, and a bound for the whole turn.

While the service works, its peers process its answers; if a turn consumed a producer's whole window, the two would wait
for each other. Each step of a turn reads its messages again, so they must fit into the processor's caches: ten busy
queues in one turn cost a third more per sample than in separate turns (tests/benchmarks/test_dds.py,
`test_ten_persistent_queues_together_take_nine_tenths_of_what_one_takes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from qsctl.core.messages import Acknowledgment, Inbound, RunAcknowledgment, Write, WriteRun

Taken = TypeVar("Taken")
SourceKind = TypeVar("SourceKind", bound="MessageSource")

READER_SHARE: Final = 256
"""Approximate number of messages that a turn consumes from one reader."""

TURN_SHARE: Final = 2 * READER_SHARE
"""Approximate number of answers, or of samples, after which a turn defers the other queues to the next turn."""

TAKES_MAX: Final = 64
"""Maximum number of reads from a reader in a turn: invalid messages cost time and yield nothing."""


class Inbox(list[Inbound]):
    """The messages of a turn. A run of samples or answers is one message, but counts as all of them."""

    in_runs_count = 0
    """Number of samples and answers in runs beyond one for each run."""

    def receive(self, messages: Sequence[Write | WriteRun] | Sequence[Acknowledgment | RunAcknowledgment]) -> None:
        """Append messages that may be runs."""
        self.extend(messages)
        for each in messages:
            if type(each) is WriteRun or type(each) is RunAcknowledgment:
                self.in_runs_count += each.count - 1

    @property
    def size(self) -> int:
        """Return the number of messages, with each sample and answer of a run."""
        return len(self) + self.in_runs_count


class MessageSource(Protocol):
    """A source of messages for the engine."""

    def poll(self, inbox: Inbox, /) -> object:
        """Move up to a turn's share of messages into the inbox."""


def read_all(poll: Callable[[Inbox], bool], inbox: Inbox) -> None:
    """Move all available messages into the inbox."""
    while poll(inbox):
        pass


def read_share(take: Callable[[], Taken | None], put: Callable[[Taken, Inbox], object], inbox: Inbox) -> bool:
    """Move up to a turn's share into the inbox; return False if `take` returned None, so that nothing is left."""
    enough = inbox.size + READER_SHARE
    for _ in range(TAKES_MAX):
        taken = take()
        if taken is None:
            return False
        put(taken, inbox)
        if inbox.size >= enough:
            break
    return True


class Rotation(Generic[SourceKind]):
    """A round robin of sources with data: each turn polls from the head of the line and leaves the rest."""

    def __init__(self) -> None:
        self._line: dict[SourceKind, None] = {}
        self._polled_at: dict[SourceKind, int] = {}
        self._poll_count = 0

    def poll(self, ready: Iterable[SourceKind], inbox: Inbox) -> list[SourceKind]:
        """Add sources with data to the line, poll each once until the turn's bound is reached; return the polled."""
        line, polled_at = self._line, self._polled_at
        for source in sorted(ready, key=lambda each: polled_at.get(each, 0)):
            line.setdefault(source)
        enough = inbox.size + TURN_SHARE
        polled: list[SourceKind] = []
        while line and inbox.size < enough:
            source = next(iter(line))
            del line[source]
            polled.append(source)
            self._poll_count += 1
            polled_at[source] = self._poll_count
            source.poll(inbox)
        return polled

    def leave(self, source: SourceKind) -> None:
        """Remove a source that is closed."""
        self._line.pop(source, None)
        self._polled_at.pop(source, None)
