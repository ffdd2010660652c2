"""Samples written to replicated queues and not yet answered, and when a producer writes them again [QS 7.1.1.2].

Decides: the combined result of the answers of several replicas.

- A positive answer of any replica is the queue's answer.
- A negative answer counts for that replica and that attempt alone. The sample is refused once every reachable replica
  has refused the latest attempt, and every other replica that was sent an attempt has refused the last one that it was
  sent. A replica that has not refused may have stored the sample, and may become the master: the sample then remains
  unanswered.
- While a queue has no master, all its replicas refuse. Replicas forward samples to each other, so that one that the
  producer does not reach may have the sample: where none of those that refuse is the master, the sample remains
  unanswered; it is refused if all still refuse it `PATIENCE_NS` after its first attempt.
- An unanswered sample is written again as another attempt. A queue that has it already drops the copy, by its identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import takewhile
from typing import Final, TypeAlias

import msgspec

from qsctl.core.messages import AckResponse, SampleFlag, Write, WriteAcknowledgment
from qsctl.identity import SampleIdentity
from qsctl.instant import SECOND_NS, Nanoseconds

WRITES_AGAIN_NS: Final[Nanoseconds] = SECOND_NS
"""Time without an answer after which a sample is written again."""

PATIENCE_NS: Final[Nanoseconds] = 60 * SECOND_NS
"""Time for which a sample is retried that every replica refuses for lack of a master; then it is refused."""

ATTEMPT_MAX: Final = 2**16 - 1
"""Highest attempt number that an answer on the wire can carry; later attempts use it again."""

Replicas: TypeAlias = Mapping[str, AbstractSet[str]]
"""The reachable replicas, by their identifiers, of each replicated queue `<topic>@<subscriber>` that acknowledges."""


class _Open(msgspec.Struct, gc=False):
    """A sample that some replicated queues have not answered."""

    write: Write
    first_sent_ns: Nanoseconds
    sent_ns: Nanoseconds
    queues: frozenset[str]
    awaited: Mapping[str, frozenset[str]]
    """The replicas of each queue that may have the sample unless they refuse the latest attempt."""
    refused_by: dict[str, set[str]] | None = None
    """The replicas of each queue that refused the latest attempt; None: none did."""
    is_refused_by_master: bool = False


class Unanswered:
    """The unanswered samples of one writer.

    Args:
        writes_again_ns: time without an answer after which a sample is written again.
        patience_ns: time after which a sample that all replicas refuse is refused, even if none of them is a master.
    """

    def __init__(self, writes_again_ns: Nanoseconds = WRITES_AGAIN_NS, patience_ns: Nanoseconds = PATIENCE_NS) -> None:
        self._writes_again_ns = writes_again_ns
        self._patience_ns = patience_ns
        self._open: dict[SampleIdentity, _Open] = {}
        self._look_at_ns: Nanoseconds = 0
        self.written_again_count = 0
        """Number of repeated writes since the start."""

    def __len__(self) -> int:
        return len(self._open)

    def sent(self, now: Nanoseconds, writes: Sequence[Write], replicas: Replicas) -> list[Write]:
        """Register samples that are about to be sent; return them with their attempt numbers."""
        if not replicas:
            return list(writes)
        numbered: list[Write] = []
        queues, reached = frozenset(replicas), _reached(replicas)
        for write in writes:
            each = self._open.get(write.identity)
            if each is None:
                write = msgspec.structs.replace(write, attempt=1)
                self._open[write.identity] = _Open(write, now, now, queues, reached)
            else:
                write = self._again(now, each, reached)
            numbered.append(write)
        return numbered

    def receive(self, answer: WriteAcknowledgment, replica: str, replicas: Replicas) -> bool:
        """Process a replica's answer; return whether it decides the queue's answer."""
        each = self._open.get(answer.identity)
        if each is None or answer.queue not in each.queues:
            return answer.response != AckResponse.REJECTED
        if answer.response == AckResponse.REJECTED:
            if answer.attempt not in (0, each.write.attempt):
                return False
            if each.refused_by is None:
                each.refused_by = {}
            refused_by = each.refused_by.setdefault(answer.queue, set())
            refused_by.add(replica)
            each.is_refused_by_master |= not answer.lacks_master
            if not _is_refused(each, answer.queue, replicas) or not each.is_refused_by_master:
                return False
        self._answered(each, answer.queue)
        return True

    def pop_due(self, now: Nanoseconds, replicas: Replicas) -> list[Write]:
        """Return the samples to write again now, each as its next attempt."""
        if now < self._look_at_ns or not replicas:
            return []
        self._look_at_ns = now + self._writes_again_ns // 4
        due = [each for each in self._open.values() if now - each.sent_ns >= self._writes_again_ns]
        self.written_again_count += len(due)
        reached = _reached(replicas)
        return [self._again(now, each, reached) for each in due]

    def pop_refused(self, now: Nanoseconds, replicas: Replicas, *, gives_up: bool = False) -> list[WriteAcknowledgment]:
        """Return refusals of the samples that every replica has refused for too long; with `gives_up`, of all."""
        refused: list[WriteAcknowledgment] = []
        # They are in the order in which they were first sent: a full window is not looked through at every turn.
        old = takewhile(lambda each: gives_up or now - each.first_sent_ns >= self._patience_ns, self._open.values())
        for each in list(old):
            if each.refused_by and not each.write.flags & SampleFlag.REPLICATE:
                for queue in list(each.refused_by):
                    if _is_refused(each, queue, replicas):
                        refused.append(WriteAcknowledgment(queue, each.write.identity, AckResponse.REJECTED))
                        self._answered(each, queue)
        return refused

    def forget(self, queue: str) -> None:
        """Stop waiting for answers of a queue that no longer exists."""
        for each in list(self._open.values()):
            self._answered(each, queue)

    def _again(self, now: Nanoseconds, each: _Open, reached: Mapping[str, frozenset[str]]) -> Write:
        refused = each.refused_by or {}
        each.awaited = {
            queue: reached.get(queue, frozenset()) | each.awaited.get(queue, frozenset()) - refused.get(queue, set())
            for queue in each.queues
        }
        each.write = msgspec.structs.replace(each.write, attempt=min(each.write.attempt + 1, ATTEMPT_MAX))
        each.sent_ns = now
        each.is_refused_by_master = False
        each.refused_by = None
        return each.write

    def _answered(self, each: _Open, queue: str) -> None:
        if len(each.queues) > 1:
            each.queues -= {queue}
            if each.refused_by is not None:
                each.refused_by.pop(queue, None)
        elif queue in each.queues:
            self._open.pop(each.write.identity, None)


def _reached(replicas: Replicas) -> Mapping[str, frozenset[str]]:
    """Return the replicas that are reachable now, which what is sent now reaches."""
    return {queue: frozenset(names) for queue, names in replicas.items()}


def _is_refused(each: _Open, queue: str, replicas: Replicas) -> bool:
    """Return whether every replica of a queue that may have a sample, or is reachable, has refused it."""
    refused_by = (each.refused_by or {}).get(queue, set())
    return each.awaited.get(queue, frozenset()) <= refused_by and replicas.get(queue, frozenset()) <= refused_by
