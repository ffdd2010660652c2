"""The state machines of a bridge, without I/O: effects out, answers in.

Decides: the order of the steps, the samples that cross, and the redelivered flag of each. `shovel_steps` and
`mirror_steps` are generators: each yields an `Effect` and is sent its answer, or thrown the error that it raised. They
may be dropped at any point, before or after an effect was carried out: others, started anew, lose nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec import structs

from qsctl.client.bridge._place import MirrorPlace
from qsctl.client.transfer import BATCH_COUNT, in_parts, inserted_sample
from qsctl.core.admin.reply import MessageData, SamplesChanged
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import bridges_of, flags_over_bridge
from qsctl.core.queue.insertion import OF_ONE_SAMPLE, Insertion
from qsctl.errors import Refused
from qsctl.identity import NIL_INCARNATION, Incarnation


class AnotherMirror(Refused):
    """The error for a mirror that finds another one of its name at work."""


@dataclass(frozen=True, slots=True)
class ReadSource:
    """Read at most `count` samples of the source behind a position, in its order.

    Answer: a list of `MessageData`. Raises `Refused` if `incarnation` is not that of the source; nil: any.
    """

    after_position: int
    incarnation: Incarnation
    count: int


@dataclass(frozen=True, slots=True)
class FlagSource:
    """Flag samples in the source as redelivered. Answer: `SamplesChanged`, without those that a consumer has."""

    samples: Sequence[MessageData]


@dataclass(frozen=True, slots=True)
class InsertTarget:
    """Insert samples into the target. Answer: `SamplesChanged`."""

    samples: Sequence[InsertedSample]


@dataclass(frozen=True, slots=True)
class RemoveSource:
    """Remove samples from the source. Answer: `SamplesChanged`."""

    samples: Sequence[MessageData]


@dataclass(frozen=True, slots=True)
class ReadPlaces:
    """Read the mirror's places. Answer: a dictionary of `MirrorPlace` by number, usually of one."""


@dataclass(frozen=True, slots=True)
class WritePlace:
    """Insert a place with this number. Answer: `SamplesChanged`."""

    number: int
    place: MirrorPlace


@dataclass(frozen=True, slots=True)
class RemovePlace:
    """Remove the place with this number. Answer: whether it was held."""

    number: int


@dataclass(frozen=True, slots=True)
class BridgeRest:
    """Wait before the next step. Answer: whether to read the source from its beginning again.

    What a shovel left behind may be there still: samples that the target refused, or that a consumer returned.
    `obstacle` is the reason why the target accepts nothing; empty: the source has nothing more to cross.
    """

    obstacle: str = ""


Effect: TypeAlias = (
    ReadSource | FlagSource | InsertTarget | RemoveSource | ReadPlaces | WritePlace | RemovePlace | BridgeRest
)
Steps: TypeAlias = Generator[Effect, Any, None]


@dataclass(slots=True)
class BridgeCounts:
    """The counts of a bridge since its start."""

    moved_count: int = 0
    """Samples that the target stored, or held already."""
    duplicate_count: int = 0
    """The part of `moved_count` that the target held already."""
    left_count: int = 0
    """Samples that do not cross because they have crossed enough bridges: those that a shovel found when it last read
    the source from its beginning, or all that a mirror has passed over.
    """
    refused_count: int = 0
    """Samples that the target refuses for what they are; counted as `left_count` is."""
    refused_reason: str = ""
    """Why it refuses the last of them."""
    latest_enqueued_at_ns: int = 0
    """Instant at which the source enqueued the sample that crossed last; 0: none did."""


@dataclass(slots=True)
class BridgeSteps:
    """The options and counts of a bridge, and the size of its next batch.

    Args:
        bridges_max: largest number of bridges that a sample crosses, this one included.
        limit: number of samples after which to end; None: no bound.
        is_exclusive: whether no consumer reads the source of a shovel, so that a first copy needs no flag.
        is_trial: whether nothing is changed: `moved_count` is the number of samples that would cross.
    """

    bridges_max: int = 1
    limit: int | None = None
    is_exclusive: bool = False
    is_trial: bool = False
    counts: BridgeCounts = field(default_factory=BridgeCounts)
    is_ending: bool = False
    """Whether to end before the next batch."""
    _count: int = 1
    """Size of the next batch. It begins at one and doubles, so that a full target is not sent many in vain."""

    @property
    def is_over(self) -> bool:
        """Return whether no further batch begins."""
        return self.is_ending or self._left() <= 0

    def _left(self) -> int:
        return BATCH_COUNT if self.limit is None else self.limit - self.counts.moved_count

    def read(self, after_position: int, incarnation: Incarnation) -> ReadSource:
        """Return the effect that reads the next batch."""
        return ReadSource(after_position, incarnation, min(self._count, self._left()))

    def batch(self, found: Sequence[MessageData]) -> Sequence[MessageData]:
        """Return the first of the samples that were read, as many as may be in flight."""
        first = next(in_parts(found, lambda each: each.size_bytes))
        self._count = min(2 * self._count, BATCH_COUNT) if len(first) == len(found) else len(first)
        return first

    def crosses(self, sample: MessageData) -> bool:
        """Return whether a sample may cross this bridge; count one that may not."""
        if bridges_of(sample.flags) < self.bridges_max:
            return True
        self.counts.left_count += 1
        return False

    def judge(self, batch: Sequence[MessageData], changed: SamplesChanged) -> tuple[int, str]:
        """Return how many samples of a batch are done with, from its first, and why the target accepts no more.

        The reply has the reason for the first refused sample only. If it depends on that sample alone, it is done with,
        and the next refused one is inserted again to find out about it. An empty text: the target accepts more.
        """
        if not changed.refused:
            return len(batch), ""
        if changed.reason not in OF_ONE_SAMPLE:
            self._count = 1
            return changed.refused[0], changed.reason
        self.counts.refused_count += 1
        self.counts.refused_reason = changed.reason
        return changed.refused[1] if len(changed.refused) > 1 else len(batch), ""

    def count(self, done: Sequence[MessageData], duplicate_count: int) -> None:
        """Count samples that the target stored or held already."""
        counts = self.counts
        counts.moved_count += len(done)
        counts.duplicate_count += min(duplicate_count, len(done))
        if done:
            counts.latest_enqueued_at_ns = done[-1].enqueued_at_ns


def done_of(batch: Sequence[MessageData], changed: SamplesChanged) -> list[MessageData]:
    """Return the samples of a batch that a command did not refuse."""
    refused = set(changed.refused)
    return [each for at, each in enumerate(batch) if at not in refused]


def crossing(sample: MessageData, *, is_flagged: bool) -> InsertedSample:
    """Return a sample as it is inserted into the target."""
    flagged = is_flagged or bridges_of(sample.flags) > 0
    return structs.replace(inserted_sample(sample, redelivered=flagged), flags=flags_over_bridge(sample.flags))


def shovel_steps(bridge: BridgeSteps) -> Steps:
    """Move the samples of the source that no consumer has to the target.

    Each batch is flagged in the source, inserted into the target, and removed from the source. A consumer of the source
    may be sent a sample between these steps; therefore the copy in the target is flagged too, unless there is none.
    """
    after_position, incarnation = 0, NIL_INCARNATION
    while not bridge.is_over:
        found: list[MessageData] = yield bridge.read(after_position, incarnation)
        if not after_position:
            bridge.counts.left_count = bridge.counts.refused_count = 0
        if not found:
            if (yield BridgeRest()):
                after_position, incarnation = 0, NIL_INCARNATION
            continue
        batch = bridge.batch(found)
        after_position, incarnation = batch[-1].position, batch[-1].incarnation
        chosen = [each for each in batch if bridge.crosses(each)]
        if bridge.is_trial:
            bridge.count(chosen, 0)
        elif chosen and (chosen := done_of(chosen, (yield FlagSource(chosen)))):
            samples = [crossing(each, is_flagged=each.redelivered or not bridge.is_exclusive) for each in chosen]
            changed: SamplesChanged = yield InsertTarget(samples)
            if done := done_of(chosen, changed):
                yield RemoveSource(done)
            bridge.count(done, changed.duplicate_count)
            known_count, obstacle = bridge.judge(chosen, changed)
            if known_count < len(chosen):
                after_position = chosen[known_count].position - 1
            if obstacle:
                yield BridgeRest(obstacle)


def mirror_steps(bridge: BridgeSteps, mirror: str, run: str) -> Steps:
    """Copy the samples of the source to the target, each once, in the order of their positions.

    Before each batch the place states how far the target may have been filled after it. A mirror that is started anew
    flags the samples up to there, and no others. The place goes on stating it until the mirror is past them, because
    the mirror may be killed again before.

    Args:
        bridge: the options and counts.
        mirror: the name of the mirror, under which it keeps its place.
        run: identifies this process among others of the name.
    """
    places: dict[int, MirrorPlace] = yield ReadPlaces()
    stored = _StoredPlace(
        run, bridge.is_trial, max(places, default=0), places[max(places)] if places else MirrorPlace(mirror)
    )
    for number in sorted(places)[:-1]:  # of a process that ended between writing a place and removing the one before
        if not bridge.is_trial:
            yield RemovePlace(number)
    done, incarnation = stored.place.done_position, stored.place.incarnation
    uncertain = stored.place.sending_position
    while not bridge.is_over:
        try:
            found: list[MessageData] = yield bridge.read(done, incarnation)
        except Refused:
            first: list[MessageData] = yield ReadSource(0, NIL_INCARNATION, 1)
            if first and first[0].incarnation == incarnation:
                raise
            if first:  # the source was created anew
                done, incarnation, uncertain = 0, first[0].incarnation, 0
                continue
            found = []
        if not found:
            yield from stored.go_to(incarnation, done, max(done, uncertain))
            yield BridgeRest()
            continue
        batch = bridge.batch(found)
        begin, done, incarnation = done, batch[-1].position, batch[-1].incarnation
        chosen = [each for each in batch if bridge.crosses(each)]
        if bridge.is_trial:
            bridge.count(chosen, 0)
        elif chosen:
            if obstacle := (yield from stored.go_to(incarnation, begin, max(done, uncertain))):
                done = begin
            else:
                samples = [crossing(each, is_flagged=each.position <= uncertain) for each in chosen]
                changed: SamplesChanged = yield InsertTarget(samples)
                known_count, obstacle = bridge.judge(chosen, changed)
                inserted = done_of(chosen, changed)
                if known_count < len(chosen):
                    done = chosen[known_count].position - 1
                    if inserted and inserted[-1].position > done:
                        uncertain = max(uncertain, inserted[-1].position)
                bridge.count([each for each in inserted if each.position <= done], changed.duplicate_count)
            if obstacle:
                yield from stored.go_to(incarnation, done, max(done, uncertain))
                yield BridgeRest(obstacle)
    yield from stored.go_to(incarnation, done, max(done, uncertain))


@dataclass(slots=True)
class _StoredPlace:
    """The place of a mirror as it is stored, and its number; 0: none is."""

    run: str
    is_trial: bool
    number: int
    place: MirrorPlace

    def go_to(self, incarnation: Incarnation, done: int, sending: int) -> Generator[Effect, Any, str]:
        """Store the place, unless it is stored so; return why the queue of places accepts nothing, or an empty text.

        Raises:
            AnotherMirror: another process has stored a place of this name meanwhile.
        """
        before = self.place
        if self.is_trial or (before.incarnation, before.done_position, before.sending_position) == (
            incarnation,
            done,
            sending,
        ):
            return ""
        place = MirrorPlace(before.mirror, self.run, incarnation, done, sending)
        changed: SamplesChanged = yield WritePlace(self.number + 1, place)
        if changed.refused and changed.reason != Insertion.HELD_ANOTHER.value:
            return f"the queue of places: {changed.reason}"
        is_ours = not changed.refused
        if is_ours and self.number and not (yield RemovePlace(self.number)):
            # Another mirror removes a place once its own is stored: where there is none, the queue lost this one.
            places: dict[int, MirrorPlace] = yield ReadPlaces()
            is_ours = all(each.run == self.run for each in places.values())
            if not is_ours:
                yield RemovePlace(self.number + 1)
        if not is_ours:
            raise AnotherMirror(
                f"another mirror {place.mirror!r} is at work", remedy="End it, or give each mirror its --name."
            )
        self.place, self.number = place, self.number + 1
        return ""
