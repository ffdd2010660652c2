"""The outbox of a service's queues: records, messages and events, in order.

Decides: that records are gathered by stream, and that all queues share one sequence of messages and one of events. The
service's settings for all of its queues are here, too.
"""

from __future__ import annotations

from typing import Protocol

from qsctl.core.events import Event
from qsctl.core.messages import Inbound, Outbound
from qsctl.core.queue._agenda import Agenda
from qsctl.core.queue.sample import Sample
from qsctl.core.ready import SERVICE_STREAM, Batch, Input, Ready, StreamName
from qsctl.core.records import Record
from qsctl.instant import INFINITE_NS, Nanoseconds


class OpenStream:
    """The records of one stream in the open batch.

    On a hot path write `(stream.records or stream.begin()).append(record)`, and `stream.base_index +
    len(stream.records)` for the index of the last record.
    """

    __slots__ = ("_begun", "base_index", "name", "opening", "records")

    def __init__(self, name: StreamName, begun: list[OpenStream]) -> None:
        self.name = name
        self._begun = begun
        self.base_index = 0
        """The index of the last record before the open batch."""
        self.records: list[Record] = []
        self.opening: Record | None = None
        """The first record of a stream that has none, written with the next one."""

    @property
    def last_index(self) -> int:
        """The index of the last record; 0 when there is none."""
        return self.base_index + len(self.records)

    def begin(self) -> list[Record]:
        """Return the records of the open batch, in which this stream has none yet."""
        self._begun.append(self)
        if self.opening is not None and not self.base_index:
            self.records.append(self.opening)
        return self.records

    def record(self, record: Record) -> None:
        """Append a record."""
        (self.records or self.begin()).append(record)

    def take(self) -> Batch:
        """Close the batch."""
        batch = Batch(self.name, self.base_index + 1, self.records)
        self.base_index += len(self.records)
        self.records = []
        return batch


class Counting(Protocol):
    """A queue that counts usual steps, see `SamplesPassed`."""

    def end_count(self) -> None:
        """Begin anew with the next step."""


class Outbox:
    """The open batch, and the service's agenda."""

    __slots__ = (
        "_begun",
        "_has_spilled",
        "agenda",
        "counting",
        "events",
        "holds_back",
        "inputs",
        "messages",
        "moves_samples",
        "payload_size_bytes_max",
        "reports_each_step",
        "reports_inputs",
        "service_stream",
        "share_count",
        "spilling",
    )

    def __init__(self) -> None:
        self.share_count = INFINITE_NS
        """Number of samples that a queue moves in a row for one cause; the rest follows in the next turn."""
        self.holds_back = False
        """Whether nothing new is enqueued, for memory is at its bound."""
        self.payload_size_bytes_max: int = INFINITE_NS
        """No larger payload comes from outside: the transport's own bound."""
        self.reports_each_step = True
        """Whether each step of a sample is an event; else the usual ones are counted, see `SamplesPassed`."""
        self.reports_inputs = False
        """Whether messages without an event are handed over too, see `Input`."""
        self.inputs: list[Input] = []
        self.counting: list[Counting] = []
        """The queues that do so in the open batch."""
        self._begun: list[OpenStream] = []
        self.service_stream = self.open_stream(SERVICE_STREAM)
        self.messages: list[Outbound] = []
        self.events: list[Event] = []
        self.spilling: list[Sample] = []
        """Samples whose payload is on disk as soon as this batch is stored [QS 2.14.2]."""
        self.agenda = Agenda()
        self._has_spilled = False
        self.moves_samples = False
        """Whether a command moved samples in the open batch, see `Ready`."""

    def open_stream(self, name: StreamName) -> OpenStream:
        """Return a new stream, without records."""
        return OpenStream(name, self._begun)

    def forget(self, stream: OpenStream) -> None:
        """Take back what a stream has in the open batch, and what rests on it. Its indexes begin anew."""
        if stream.records:
            self._begun.remove(stream)
            handed_over = stream.base_index
            self.messages = [
                each for each in self.messages if each.queue != stream.name or each.rests_on <= handed_over
            ]
            stream.records = []
        stream.base_index = 0

    def note_input(self, now: Nanoseconds, message: Inbound) -> None:
        """Hand over a message with what has happened so far before it."""
        self.inputs.append(Input(len(self.events), now, message))

    def end_counts(self) -> None:
        """Let the counts of usual steps grow no more: they are being read."""
        for queue in self.counting:
            queue.end_count()
        self.counting.clear()

    @property
    def is_empty(self) -> bool:
        """Return whether nothing happened since the last batch was closed."""
        return not (self._begun or self.messages or self.events or self.inputs or self.counting or self.spilling)

    def take(self) -> Ready:
        """Close the batch and open the next one. Payloads that are on disk only leave the memory here."""
        batches = [each.take() for each in self._begun]
        ready = Ready(batches, self.messages, self.events, self._has_spilled, self.inputs or (), self.moves_samples)
        self._begun.clear()
        self.moves_samples = False
        self.messages, self.events = [], []
        if self.inputs:
            self.inputs = []
        if self.spilling:
            self._has_spilled = True
            for sample in self.spilling:
                sample.payload = None
            self.spilling.clear()
        return ready
