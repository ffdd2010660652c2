"""The followers of a replica's log: the queues of a group, or the configuration of the cluster [QS 7.1 and 7.2]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from qsctl.core.events import BounceReason
from qsctl.core.high_availability._log import LogSnapshot, ReplicatedLog
from qsctl.core.messages import Write, WriteRun
from qsctl.core.records import QueueRecord
from qsctl.errors import QsctlError
from qsctl.identity import Guid, Incarnation, SampleIdentity
from qsctl.instant import Nanoseconds

UNPLAYABLE: Final = (ArithmeticError, AssertionError, LookupError, QsctlError, TypeError, ValueError)
"""Exceptions of replaying an entry that cannot follow its predecessors; the follower is rebuilt after any of them."""


class Unplayable(Exception):
    """An entry or a snapshot does not follow from what is before it: no queue can have recorded it there."""


class KnownIdentities(Protocol):
    """The samples that a queue has, or had lately."""

    def knows(self, identity: SampleIdentity, /) -> bool:
        """Return whether a sample of this identity is held or was recently retired."""


class KnownRuns(KnownIdentities, Protocol):
    """The samples, and runs of samples, that a queue has, or had lately."""

    def admits_run(self, first: SampleIdentity, count: int, /) -> bool:
        """Return whether none of these consecutive identities is known, nor among the numbers of another run."""


class Answering(Protocol):
    """The treatment of producers by a queue."""

    @property
    def acknowledges(self) -> bool:
        """Return whether it answers them."""


class Fed(Protocol):
    """A queue as producers use it."""

    @property
    def name(self) -> str:
        """Its full name."""

    @property
    def held(self) -> KnownIdentities:
        """The samples or records that it has."""

    @property
    def context(self) -> Answering:
        """Return how it answers."""

    def receive(self, now: Nanoseconds, write: Write, /) -> None:
        """Process a sample, as the master's."""

    def bar(self, write: Write, /) -> BounceReason | None:
        """Return why no replica of it takes a sample, whatever it holds."""


class FedByRuns(Fed, Protocol):
    """A queue that receives runs of samples."""

    @property
    def held(self) -> KnownRuns:
        """The samples that it has."""

    def receive_run(self, now: Nanoseconds, writes: WriteRun, /) -> None:
        """Process samples of one producer, as the master's."""


class Followed(Protocol):
    """The state machine behind a log."""

    applied_index: int
    """It is in the state of this entry."""
    sends_ahead: bool
    """Whether samples may have been sent before their assignment was committed, in that state."""

    @property
    def follows_commit(self) -> bool:
        """Return whether a master's, too, is only ever in a state that is committed."""

    @property
    def sends_payloads(self) -> bool:
        """Return whether entries travel whole, whatever the other replicas had from the producer."""

    @property
    def queues(self) -> Sequence[Fed]:
        """The queues that producers write to."""

    def record(self, now: Nanoseconds, record: QueueRecord, /) -> None:
        """Put a record into the master's log."""

    @property
    def names(self) -> frozenset[str]:
        """The names that entries of this log can belong to: the stream and its queues."""

    def recorded(self, index: int, /) -> None:
        """Note that the log has what was recorded, up to here."""

    def forget(self, now: Nanoseconds, /) -> None:
        """Forget everything, and be in the state before any entry."""

    def begin(self, now: Nanoseconds, base: LogSnapshot, /) -> None:
        """Be in the state of a snapshot.

        Raises:
            Unplayable: it cannot be one; the state is undefined until the next `begin` or `forget`.
        """

    def roll_back(self, now: Nanoseconds, log: ReplicatedLog, index: int, /) -> None:
        """Follow the log from its beginning up to a committed entry.

        Raises:
            Unplayable: as `begin` does.
        """

    def follow(self, log: ReplicatedLog, index: int, /) -> None:
        """Follow up to an entry.

        Raises:
            Unplayable: an entry cannot be where it is; the state is undefined until the next `begin` or `forget`, and
                `applied_index` still names the last entry before this call.
        """

    def assigned(self) -> dict[str, dict[int, Guid]]:
        """Return who was assigned what, by queue and position."""

    def take_over(self, now: Nanoseconds, index: int, assigned: dict[str, dict[int, Guid]], /) -> None:
        """Begin to work as the master's, behind its first entry."""

    def pause(self) -> None:
        """Let a master's queues send nothing, so that the log comes to rest; acknowledgments still count."""

    def go_on(self, now: Nanoseconds, /) -> None:
        """Let a master's queues work again after `pause`."""

    def step_down(self, now: Nanoseconds, log: ReplicatedLog, /) -> list[tuple[str, Write]]:
        """Follow again; return the samples that waited outside, with their queues."""

    def be(self, incarnation: Incarnation, /) -> None:
        """Take the incarnation of the group."""

    def snapshot(self, epoch: int, incarnation: int, /) -> tuple[QueueRecord, ...]:
        """Return the fewest records that describe the present state, after an entry of this epoch of a group."""

    def held_count(self) -> int:
        """Return how much a snapshot holds, in entries."""
