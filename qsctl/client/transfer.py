"""The transfer of samples from a queue to others [QS 2.12, 5.4.3, 5.4.6], for `move` and `requeue`.

Decides: how a part of the queue is moved, and the number of samples of one call. Between two queues of one service that
is one command, which moves each sample in one step: wherever this program or the service is killed, exactly one of the
queues holds it, and consumers of both may work on.

Where no service can do that, a sample moves at least once: between services, between processes of a service's sessions,
and between queues in different replica logs. A part is read, flagged as redelivered, inserted in the
target, and removed, each once the reply confirms that the step before is durable. Wherever this program or a service is
killed, a sample is in one of the two queues, or in both and flagged in both; the next call finds it in the target, or
enqueues it there again. A consumer of the source that is sent one between the flagging and the removal processes it
too, flagged: stop the consumers of a queue before it is moved to another service.

Only samples that no consumer has are moved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from qsctl.client.administration import Administration
from qsctl.core.admin.command import HeldSample
from qsctl.core.admin.reply import MessageData, SamplesChanged
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.queue.insertion import OF_ONE_SAMPLE, Insertion
from qsctl.errors import NotFound, UsageError
from qsctl.identity import NIL_INCARNATION, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.resource import ResourceIdentifier

BATCH_COUNT: Final = 256
"""Number of samples that are read and moved together."""

BATCH_BYTES: Final = 1024 * 1024
"""Octets of payload that are moved together, or one sample that is larger."""

_T = TypeVar("_T")

_UNDELIVERED: Final = "@sample_queue_status = UNDELIVERED_MESSAGE_STATUS"

TargetOf: TypeAlias = Callable[[MessageData], ResourceIdentifier | None]
"""The queue that a sample is to go to; None: it stays."""


@dataclass
class Transferred:
    """The outcome for the samples of one queue so far.

    `duplicate_count` is the part of `moved_count` that the target held already. `refused_count` samples stay where they
    are; `reason` is the reason for the first.
    """

    target: ResourceIdentifier
    moved_count: int = 0
    duplicate_count: int = 0
    refused_count: int = 0
    reason: str = ""


@dataclass
class Transfer:
    """A transfer of samples in steps. Iterate over `steps`; `results` has the outcome.

    Args:
        administration: the administration of the queues' services.
        source: the queue to move from.
        target_of: returns the target of each sample.
        selector: selects the samples; empty: all.
        limit: the largest number of samples; None: all.
        per_second: the largest rate; 0: no bound.
        is_wanted: returns whether a selected sample is moved; the others are skipped.
        begins_anew: whether lifespans begin again in the target; else each sample keeps its expiry.
        is_trial: whether nothing is changed; `moved_count` is then the number that would be moved.
    """

    administration: Administration
    source: ResourceIdentifier
    target_of: TargetOf
    selector: str = ""
    limit: int | None = None
    per_second: float = 0.0
    is_wanted: Callable[[MessageData], bool] = lambda _sample: True
    begins_anew: bool = False
    is_trial: bool = False
    results: dict[ResourceIdentifier, Transferred] = field(default_factory=dict)
    stayed_count: int = 0
    """The number of samples for which no target exists."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _seen: set[tuple[SampleIdentity, str]] = field(default_factory=set)
    _apart: set[ResourceIdentifier] = field(default_factory=set)
    """The targets that a sample of this source cannot go to in one step."""
    _sends_payloads: bool = False
    """Whether the service needs payloads in the command: the source has them on disk only, and a target keeps its in
    memory.
    """

    @property
    def copies(self) -> bool:
        """Return whether some samples cannot be moved in one step, so that they may be in both queues for a while."""
        return bool(self._apart)

    @property
    def moved_count(self) -> int:
        """Return the number of samples that were moved to their targets."""
        return sum(each.moved_count for each in self.results.values())

    def steps(self) -> Iterator[None]:
        """Move the next part with each step, until nothing is left, the limit is reached, or a target is full.

        Raises:
            QsctlError: a service does not answer, or refuses; what `results` counts is done.
        """
        begun_s, after_position, incarnation = self.clock(), 0, NIL_INCARNATION
        selector = undelivered(self.selector)
        while (left := self._left()) > 0:
            found = self.administration.messages(
                self.source, selector, min(left, self._batch_count()), after_position, incarnation
            )
            if not found:
                return
            after_position, incarnation = max((each.body.position, each.body.incarnation) for each in found)
            if not self._move([each.body for each in found]):
                return
            yield
            if self.per_second:
                self.sleep(max(0.0, begun_s + self.moved_count / self.per_second - self.clock()))

    def _left(self) -> int:
        return BATCH_COUNT if self.limit is None else self.limit - self.moved_count

    def _batch_count(self) -> int:
        return max(1, min(BATCH_COUNT, int(self.per_second / 10))) if self.per_second else BATCH_COUNT

    def _move(self, found: Sequence[MessageData]) -> bool:
        """Move the samples that were read; return False if a target accepts no more."""
        groups: dict[ResourceIdentifier, list[MessageData]] = {}
        for sample in found:
            key = (sample.identity, sample.dead_letter_from)
            if key in self._seen:  # of another replica, or dead again meanwhile: once a call
                continue
            self._seen.add(key)
            if not self.is_wanted(sample):
                continue
            target = self.target_of(sample)
            if target is None:
                self.stayed_count += 1
            else:
                groups.setdefault(target, []).append(sample)
        goes_on = True
        for target, samples in groups.items():
            for part in in_parts(samples, lambda sample: sample.size_bytes):
                goes_on = self._move_part(target, part) and goes_on
        return goes_on

    def _move_part(self, target: ResourceIdentifier, samples: Sequence[MessageData]) -> bool:
        result = self.results.setdefault(target, Transferred(target))
        if self.is_trial:
            result.moved_count += len(samples)
            return True
        if target not in self._apart:
            if (goes_on := self._move_at_once(result, samples)) is not None:
                return goes_on
            self._apart.add(target)
        return self._copy(result, samples)

    def _move_at_once(self, result: Transferred, samples: Sequence[MessageData]) -> bool | None:
        """Move samples within their service; return False if the target accepts no more, None if that is impossible."""
        changed = self.administration.move_samples(
            self.source,
            result.target,
            [held_sample(each) for each in samples],
            samples[0].incarnation,
            begins_anew=self.begins_anew,
            payloads=[each.payload or b"" for each in samples] if self._sends_payloads else (),
        )
        if changed is None:
            return None
        _note(result, changed, changed.done_count)
        goes_on = _goes_on(changed)
        if changed.without_payload and self._sends_payloads:  # it has another size by now: another sample
            result.refused_count += len(changed.without_payload)
            result.reason = result.reason or Insertion.NO_PAYLOAD.value
        elif changed.without_payload:
            self._sends_payloads = True
            goes_on = bool(self._move_at_once(result, [samples[at] for at in changed.without_payload])) and goes_on
        return goes_on

    def _copy(self, result: Transferred, samples: Sequence[MessageData]) -> bool:
        """Flag samples, insert them into their target, and remove them; return False if the target accepts no more."""
        target = result.target
        flagged = self.administration.flag_samples(self.source, [held_sample(each) for each in samples])
        with_consumers = set(flagged.refused)
        samples = [each for at, each in enumerate(samples) if at not in with_consumers]
        if not samples:
            return True
        inserted = [inserted_sample(each, begins_anew=self.begins_anew) for each in samples]
        changed = self.administration.insert_samples(target, inserted)
        refused = set(changed.refused)
        done = [each for at, each in enumerate(samples) if at not in refused]
        if done:
            self.administration.remove_samples(self.source, [held_sample(each) for each in done])
        _note(result, changed, len(done))
        return _goes_on(changed)


def _note(result: Transferred, changed: SamplesChanged, moved_count: int) -> None:
    """Add the outcome of a part to the result."""
    result.moved_count += moved_count
    result.duplicate_count += changed.duplicate_count
    result.refused_count += len(changed.refused)
    result.reason = result.reason or changed.reason


def _goes_on(changed: SamplesChanged) -> bool:
    """Return whether the target may accept the next sample, judging by the outcome of a part.

    A sample refused because it has expired, or because its identity is in use, does not affect the next; otherwise
    the target is full.
    """
    return not changed.refused or changed.reason in OF_ONE_SAMPLE


def in_parts(samples: Iterable[_T], size_of: Callable[[_T], int], count: int = BATCH_COUNT) -> Iterator[list[_T]]:
    """Yield samples in parts that fit a command, each of at most the given number."""
    part: list[_T] = []
    size_bytes = 0
    for sample in samples:
        if part and (len(part) == count or size_bytes + size_of(sample) > BATCH_BYTES):
            yield part
            part, size_bytes = [], 0
        part.append(sample)
        size_bytes += size_of(sample)
    if part:
        yield part


def require_one_place(administration: Administration, queue: ResourceIdentifier) -> None:
    """Raise an error unless one service hosts a queue, or several host it as replicas.

    Raises:
        NotFound: no service hosts it.
        UsageError: several host queues of this name, each with samples of its own.
    """
    bare = str(queue.bare)
    data = administration.service_data()
    hosts = [each.service for each in data if any(hosted.resource == bare for hosted in each.body.queues)]
    if not hosts:
        raise NotFound(f"no service hosts {bare}", remedy="List the queues with `qsctl get data`.")
    if len(hosts) > 1 and any(each.body.replication is None for each in administration.statuses(queue)):
        raise UsageError(
            f"several services host a queue {bare}: {', '.join(sorted(hosts))}", remedy="Name one with --target NAME."
        )


def undelivered(selector: str) -> str:
    """Return the selector of those selected samples that no consumer has; `selector` may be empty."""
    return f"({selector}) AND {_UNDELIVERED}" if selector else _UNDELIVERED


def held_sample(sample: MessageData) -> HeldSample:
    """Return the reference to a sample that was read."""
    return HeldSample(
        sample.position,
        sample.identity,
        sample.dead_letter_from,
        sample.dead_letter_position,
        sample.dead_letter_incarnation,
    )


def inserted_sample(sample: MessageData, *, redelivered: bool = True, begins_anew: bool = False) -> InsertedSample:
    """Return a sample that was read, as a command inserts it elsewhere."""
    return InsertedSample(
        sample.identity,
        sample.payload or b"",
        sample.source_guid,
        sample.related_source_guid,
        sample.related_identity,
        sample.related_reader_guid,
        sample.flags,
        redelivered=redelivered,
        expires_at_ns=INFINITE_NS if begins_anew else sample.expires_at_ns,
        dead_letter_from=sample.dead_letter_from,
        dead_letter_reason=sample.dead_letter_reason,
        dead_letter_position=sample.dead_letter_position,
        dead_letter_incarnation=sample.dead_letter_incarnation,
    )
