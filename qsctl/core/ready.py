"""The output of one engine turn for its driver: records by stream, messages, and events.

The records of a queue form one stream, the changes of the service's configuration another. The records of a stream have
consecutive indexes, from 1. A message rests on a record of its queue's stream: it may be sent once that record is
committed, see `qsctl.core.turn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from qsctl.core.events import Event
from qsctl.core.messages import Inbound, Outbound
from qsctl.core.records import Record, StreamRecord
from qsctl.instant import Nanoseconds

StreamName: TypeAlias = str
"""The full name of a queue or replication group, or `SERVICE_STREAM`."""

SERVICE_STREAM: Final[StreamName] = ""
"""The stream of the changes of the service's own configuration."""


class Batch(NamedTuple):
    """Records of one stream, in order. The receiver owns the list.

    `in_runs_count` is the number of records beyond one for each object, since those of a run share one.
    """

    stream: StreamName
    first_index: int
    records: list[StreamRecord]
    in_runs_count: int = 0

    @property
    def record_count(self) -> int:
        """Return the number of records."""
        return len(self.records) + self.in_runs_count

    @property
    def last_index(self) -> int:
        """Return the index of the last record."""
        return self.first_index + self.record_count - 1


class Input(NamedTuple):
    """A received message that causes no event: a peer that joined, left or reported on itself, or a command.

    It completes the event history, see `Outbox.reports_inputs`. `events_before` is the number of events of its turn
    that precede it.
    """

    events_before: int
    at_ns: Nanoseconds
    message: Inbound


class Ready(NamedTuple):
    """The output of one turn. The receiver owns its lists; messages and events are in the order of the steps.

    A stream has at most one batch; the batches are in the order of their first records. `may_lack_payloads`: a payload
    may be on disk only, see `qsctl.core.payloads`. `moves_samples`: all records belong to one command that moves
    samples between two queues; then no batch may be durable before its predecessor, and if one cannot be stored, none
    counts as stored.
    """

    batches: list[Batch]
    messages: list[Outbound]
    events: list[Event]
    may_lack_payloads: bool = False
    inputs: Sequence[Input] = ()
    moves_samples: bool = False

    @property
    def service_records(self) -> list[Record]:
        """Return the records that change the service's configuration."""
        for batch in self.batches:
            if batch.stream == SERVICE_STREAM:
                return batch.records  # type: ignore[return-value]  # none of them is about samples
        return []

    @property
    def record_count(self) -> int:
        """Return the number of records in all streams."""
        return sum(batch.record_count for batch in self.batches)
