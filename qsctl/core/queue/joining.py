"""The runs among stored records: a restart restores samples as runs again [QS 2.14.2.1].

Decides: which consecutive records are replayed as one. The result is that of a replay one by one, for only records
about different samples change places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from qsctl.core.messages import RUN_SAMPLES_MIN, SampleFlag
from qsctl.core.records import (
    Assigned,
    AssignedRun,
    Enqueued,
    EnqueuedRun,
    Record,
    Removed,
    RemovedRun,
    StreamRecord,
)

RUN_SAMPLES_MAX: Final = 512
"""Number of samples in a joined run: a step of a part of a run takes the longer the longer the run is."""

_REDELIVERED: Final = int(SampleFlag.REDELIVERED)
_TRAITS: Final = attrgetter(
    "queue",
    "enqueued_at_ns",
    "expires_at_ns",
    "source_guid",
    "related_source_guid",
    "related_identity",
    "related_reader_guid",
    "flags",
    "dead_letter_reason",
    "payload_from",
    "moved_from",
)
"""The members that are equal in all records of a run, besides the writer."""


def joined(records: Iterable[Record]) -> Iterator[StreamRecord]:
    """Yield records; `Enqueued`, `Assigned` and `Removed` of enough consecutive samples as runs."""
    samples: list[Enqueued] = []
    assigned: list[Assigned] = []
    removed: list[Removed] = []
    traits: object = None
    position = number = 0
    writer = b""
    for record in records:
        if type(record) is Enqueued:
            identity = record.identity
            if (
                samples
                and record.position == position
                and identity.sequence_number == number
                and identity.writer_guid == writer
                and _TRAITS(record) == traits
                and len(samples) < RUN_SAMPLES_MAX
            ):
                samples.append(record)
                position += 1
                number += 1
                continue
        elif type(record) is Assigned and record.attempt == 1:
            if (assigned or samples) and not removed:
                following = assigned[-1].position + 1 if assigned else samples[0].position
                if record.position == following and not (samples and following >= position):
                    assigned.append(record)
                    continue
        elif type(record) is Removed and removed and _continues(removed, record):
            removed.append(record)
            continue
        yield from _runs(samples, assigned, removed)
        samples, assigned, removed = [], [], []
        if type(record) is Enqueued and _may_begin(record):
            samples.append(record)
            traits, writer = _TRAITS(record), record.identity.writer_guid
            position, number = record.position + 1, record.identity.sequence_number + 1
        elif type(record) is Assigned and record.attempt == 1:
            assigned.append(record)
        elif type(record) is Removed:
            removed.append(record)
        else:
            yield record
    yield from _runs(samples, assigned, removed)


def _may_begin(record: Enqueued) -> bool:
    """Return whether a sample may be the first of a run."""
    return record.dead_letter_reason is None and record.moved_from is None and not record.flags & _REDELIVERED


def _continues(removed: list[Removed], record: Removed) -> bool:
    """Return whether a record continues removals at a constant step."""
    last = removed[-1]
    step = record.position - last.position
    return (
        step > 0
        and record.cause is last.cause
        and record.queue == last.queue
        and (len(removed) == 1 or step == removed[1].position - removed[0].position)
    )


def _runs(samples: list[Enqueued], assigned: list[Assigned], removed: list[Removed]) -> Iterator[StreamRecord]:
    """Yield the records of each list as a run, or one by one if they are few."""
    if len(samples) >= RUN_SAMPLES_MIN:
        first = samples[0]
        yield EnqueuedRun(
            first.queue,
            first.position,
            first.identity,
            tuple([each.payload for each in samples]),
            first.enqueued_at_ns,
            first.expires_at_ns,
            first.source_guid,
            first.related_source_guid,
            first.related_identity,
            first.related_reader_guid,
            first.flags,
        )
    else:
        yield from samples
    if len(assigned) >= RUN_SAMPLES_MIN:
        consumers = tuple([each.consumer_guid for each in assigned])
        yield AssignedRun(assigned[0].queue, assigned[0].position, len(assigned), consumers)
    else:
        yield from assigned
    if len(removed) >= RUN_SAMPLES_MIN:
        first_removed, step = removed[0], removed[1].position - removed[0].position
        yield RemovedRun(first_removed.queue, first_removed.position, len(removed), step, first_removed.cause)
    else:
        yield from removed
