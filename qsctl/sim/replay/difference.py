"""The comparison of a recording and its replay, sample by sample: which samples reached each queue, their consumers,
and their ends.

Without a change there should be no line. Where there is one, it has the recorded and the replayed value, and the cause,
as far as it is known: a gap of the recording, or an earlier difference of the same queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from qsctl.eventlog.recording.schema import Origin
from qsctl.instant import Nanoseconds, format_duration
from qsctl.sim.replay.recording import Delivered, Recorded, RecordedArrival

LINES_MAX: Final = 10_000
"""Differences that are written down; all are counted."""

FOLLOWS: Final = "follows from an earlier difference of this queue"
UNEXPLAINED: Final = "not explained by what was recorded"
_CHANGED: Final = "what was changed"
_OFFERED_ANEW: Final = "it was with a consumer when the recording began: it is offered anew"
_SHARE: Final = "the recording has a share of the samples: others held the consumers, or the room"
_PARTIAL: Final = "the recording is not complete"

_Sample: TypeAlias = tuple[str, str, int]
"""Queue, writer's GUID, sequence number. In the place of a GUID a dead letter has its number among those of its queue
and sequence number: its GUID depends on the incarnation of the queue that it comes from, and a replay has others."""


class DifferenceLine(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between a recording and its replay."""

    queue: str
    sample: str
    at_ns: Nanoseconds
    """The earlier of the recorded and the replayed instant."""
    then: str
    now: str
    why: str


class QueueEquality(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a queue's samples that are unchanged."""

    queue: str
    arrivals_then: int
    arrivals_now: int
    arrivals_equal: int
    deliveries_then: int
    deliveries_now: int
    deliveries_equal: int


class ReplayDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between a recording and its replay: the document `replay.json` of a run folder."""

    recording: str
    changes: dict[str, str]
    """The changes, by path; a replaced service configuration has the path `config`."""
    is_equal: bool
    difference_count: int
    queues: tuple[QueueEquality, ...]
    lines: tuple[DifferenceLine, ...]
    """The differences, in the order of time; at most `LINES_MAX`."""
    notes: tuple[str, ...] = ()


def difference_of(then: Recorded, now: Recorded, recording: str, changes: Mapping[str, str]) -> ReplayDifference:
    """Compare a recording with a replay of it."""
    then_steps, now_steps = _steps(then), _steps(now)
    lines: list[DifferenceLine] = []
    for place in then_steps.keys() | now_steps.keys():
        lines += _lines_of(place, then_steps.get(place, []), now_steps.get(place, []))
    lines += _order_lines(then, now)
    lines.sort(key=lambda line: (line.at_ns, line.queue, line.sample, line.then))
    explained = list(_explained(lines, then, bool(changes)))
    return ReplayDifference(
        recording=recording,
        changes=dict(changes),
        is_equal=not lines,
        difference_count=len(lines),
        queues=tuple(_equalities(then_steps, now_steps)),
        lines=tuple(explained[:LINES_MAX]),
        notes=tuple(_notes(then)),
    )


_Step: TypeAlias = tuple[str, Nanoseconds, str]
"""`arrival` or `delivery`, when, and the whole of it in words."""


def _steps(recorded: Recorded) -> dict[_Sample, list[_Step]]:
    """Return the steps of each sample, in order; equal words are equal facts."""
    guids = {number: guid.hex() for number, guid in recorded.guids.items()}
    letters = _letters(recorded)
    found: dict[_Sample, list[_Step]] = {}
    for arrival in recorded.arrivals:
        place = _place(arrival, guids, letters)
        found.setdefault(place, []).append(("arrival", arrival.at_ns, _arrival_text(arrival)))
    for delivery in recorded.deliveries:
        place = _place(delivery, guids, letters)
        text = _delivery_text(delivery, guids[delivery.consumer])
        found.setdefault(place, []).append(("delivery", delivery.sent_ns, text))
    return found


def _letters(recorded: Recorded) -> dict[tuple[str, int, int], str]:
    """Return a name for each dead letter, by queue, number of its writer, and sequence number."""
    counts: Counter[tuple[str, int]] = Counter()
    names: dict[tuple[str, int, int], str] = {}
    for arrival in recorded.arrivals:
        if arrival.origin == Origin.DEAD_LETTER:
            counts[arrival.queue, arrival.sequence_number] += 1
            number = counts[arrival.queue, arrival.sequence_number]
            names.setdefault((arrival.queue, arrival.producer, arrival.sequence_number), f"dead letter {number}")
    return names


def _place(
    row: RecordedArrival | Delivered, guids: Mapping[int, str], letters: Mapping[tuple[str, int, int], str]
) -> _Sample:
    letter = letters.get((row.queue, row.producer, row.sequence_number))
    return row.queue, letter or guids[row.producer], row.sequence_number


def _arrival_text(row: RecordedArrival) -> str:
    came = f"came at {_at(row.at_ns)}"
    if row.origin == Origin.DEAD_LETTER:
        came = f"came as a dead letter at {_at(row.at_ns)}"
    elif row.origin == Origin.HELD:
        return f"was there, enqueued at {_at(row.at_ns)}"
    answered = "" if row.answered_ns is None else f" at {_at(row.answered_ns)}"
    why = f" ({row.reason})" if row.reason else ""
    words = {"none": "waited for room to the end"}
    return f"{came}, {words.get(row.answer, row.answer)}{answered if row.answer != 'none' else ''}{why}"


def _delivery_text(row: Delivered, consumer: str) -> str:
    flag = ", flagged redelivered" if row.redelivered else ""
    ended = row.answer.replace("_", " ") if row.answer != "none" else "not answered"
    at = "" if row.answered_ns is None else f" at {_at(row.answered_ns)}"
    late = "" if row.late_ns is None else f", late answer at {_at(row.late_ns)}"
    return f"attempt {row.attempt}{flag} to {_short(consumer)} at {_at(row.sent_ns)}: {ended}{at}{late}"


def _at(at_ns: Nanoseconds) -> str:
    return format_duration(at_ns) if at_ns >= 0 else f"-{format_duration(-at_ns)}"


def _short(guid: str) -> str:
    return f"consumer {guid.lstrip('0') or '0'}"


def _lines_of(place: _Sample, then: list[_Step], now: list[_Step]) -> Iterator[DifferenceLine]:
    missing, added = Counter(then) - Counter(now), Counter(now) - Counter(then)
    before, after = sorted(missing.elements(), key=_by_time), sorted(added.elements(), key=_by_time)
    for at in range(max(len(before), len(after))):
        was = before[at] if at < len(before) else None
        has = after[at] if at < len(after) else None
        yield DifferenceLine(
            queue=place[0],
            sample=f"{place[1]}:{place[2]}",
            at_ns=min(step[1] for step in (was, has) if step is not None),
            then="nothing" if was is None else was[2],
            now="nothing" if has is None else has[2],
            why="",
        )


def _by_time(step: _Step) -> tuple[Nanoseconds, str, str]:
    return step[1], step[0], step[2]


def _order_lines(then: Recorded, now: Recorded) -> Iterator[DifferenceLine]:
    """Yield a line for each queue whose samples were sent in another order at the same instants."""
    orders = [_sent_order(recorded) for recorded in (then, now)]
    for queue in orders[0].keys() & orders[1].keys():
        was, has = orders[0][queue], orders[1][queue]
        if was == has or sorted(was) != sorted(has):
            continue  # equal, or other lines have the difference
        first = next(at for at in range(len(was)) if was[at] != has[at])
        yield DifferenceLine(
            queue=queue,
            sample=f"{was[first][1]}:{was[first][2]}",
            at_ns=was[first][0],
            then=f"sent as number {first + 1}",
            now=f"another is sent as number {first + 1}, at the same instant",
            why="",
        )


def _sent_order(recorded: Recorded) -> dict[str, list[tuple[Nanoseconds, str, int]]]:
    guids = {number: guid.hex() for number, guid in recorded.guids.items()}
    letters = _letters(recorded)
    found: dict[str, list[tuple[Nanoseconds, str, int]]] = {}
    for row in recorded.deliveries:
        queue, writer, sequence_number = _place(row, guids, letters)
        found.setdefault(queue, []).append((row.sent_ns, writer, sequence_number))
    return found


def _explained(lines: Iterable[DifferenceLine], then: Recorded, is_changed: bool) -> Iterator[DifferenceLine]:
    anew = {
        (row.queue, f"{then.guids[row.producer].hex()}:{row.sequence_number}")
        for row in then.deliveries
        if row.sent_ns < 0
    }
    seen: set[str] = set()
    for line in lines:
        if is_changed:
            why = _CHANGED
        elif (line.queue, line.sample) in anew:
            why = _OFFERED_ANEW
        elif then.sample_share < 1:
            why = _SHARE
        elif line.queue in seen:
            why = FOLLOWS
        else:
            why = UNEXPLAINED if then.info.complete else _PARTIAL
        seen.add(line.queue)
        yield msgspec.structs.replace(line, why=why)


def _equalities(then: Mapping[_Sample, list[_Step]], now: Mapping[_Sample, list[_Step]]) -> Iterator[QueueEquality]:
    counts: dict[str, Counter[str]] = {}
    for place in then.keys() | now.keys():
        count = counts.setdefault(place[0], Counter())
        before, after = Counter(then.get(place, ())), Counter(now.get(place, ()))
        for name, steps in (("then", before), ("now", after), ("equal", before & after)):
            for kind, _, _ in steps.elements():
                count[f"{kind}_{name}"] += 1
    for queue, count in sorted(counts.items()):
        yield QueueEquality(
            queue=queue,
            arrivals_then=count["arrival_then"],
            arrivals_now=count["arrival_now"],
            arrivals_equal=count["arrival_equal"],
            deliveries_then=count["delivery_then"],
            deliveries_now=count["delivery_now"],
            deliveries_equal=count["delivery_equal"],
        )


def _notes(then: Recorded) -> Iterator[str]:
    """Yield notes on the completeness of a recording, for the reader of a replay."""
    if then.sample_share < 1:
        yield (
            f"The recording has {then.sample_share:.3g} of the samples: queues are emptier and consumers idler in its "
            "replay than they were."
        )
    if not then.info.complete:
        yield f"The recording is {then.info.status.value}: what came after its last complete part is not in it."
    with_consumers = sum(row.sent_ns < 0 for row in then.deliveries)
    if with_consumers:
        yield f"{with_consumers} samples were with consumers when the recording began: they are offered anew."
    not_stored = sum(row.reason == "not_stored" for row in then.arrivals)
    if not_stored:
        yield f"{not_stored} samples were refused because the disk did not take them: they are refused again."
