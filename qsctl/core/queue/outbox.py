"""The outbox of a service's queues: records, messages and events in order of their creation.

Decides: the batching of records by stream; all queues share one sequence of messages and one of events. It also holds
the service's settings that apply to all of its queues.
"""

from __future__ import annotations

from typing import Protocol

from qsctl.core.events import Event
from qsctl.core.messages import Inbound, Outbound
from qsctl.core.queue._agenda import Agenda
from qsctl.core.queue._run import Run
from qsctl.core.queue.sample import Sample
from qsctl.core.ready import SERVICE_STREAM, Batch, Input, Ready, StreamName
from qsctl.core.records import Record, RunRecord, StreamRecord
from qsctl.instant import INFINITE_NS, Nanoseconds


class OpenStream:
    """The records of one stream in the open batch.

    On a hot path write `(stream.records or stream.begin()).append(record)`, and `stream.base_index +
    len(stream.records)` for the index of the last record.
    """

    __slots__ = ("_begun", "_in_runs_count", "base_index", "name", "opening", "records")

    def __init__(self, name: StreamName, begun: list[OpenStream]) -> None:
        self.name = name
        self._begun = begun
        self.base_index = 0
        """The index of the last record before the open batch; more by the records of the batch that share an object."""
        self._in_runs_count = 0
        """Number of records of the open batch beyond one for each object."""
        self.records: list[StreamRecord] = []
        self.opening: Record | None = None
        """The first record of a stream that is still empty; it is written together with the next record."""

    @property
    def last_index(self) -> int:
        """Return the index of the last record; 0: there is none."""
        return self.base_index + len(self.records)

    def begin(self) -> list[StreamRecord]:
        """Enter this stream into the open batch, and return its list of records there."""
        self._begun.append(self)
        if self.opening is not None and not self.base_index:
            self.records.append(self.opening)
        return self.records

    def record(self, record: Record) -> None:
        """Append a record."""
        (self.records or self.begin()).append(record)

    def record_run(self, record: RunRecord) -> None:
        """Append the records of a run as one object."""
        (self.records or self.begin()).append(record)
        self._in_runs_count += record.count - 1
        self.base_index += record.count - 1

    def take(self) -> Batch:
        """Close the batch of this stream and return it."""
        batch = Batch(self.name, self._handed_over + 1, self.records, self._in_runs_count)
        self.base_index += len(self.records)
        self._in_runs_count = 0
        self.records = []
        return batch

    @property
    def _handed_over(self) -> int:
        """Return the index of the last record before the open batch."""
        return self.base_index - self._in_runs_count

    def forget(self) -> int:
        """Discard the records of the open batch; indexes restart. Return the former index of the last one before."""
        handed_over = self._handed_over
        self.records = []
        self.base_index = self._in_runs_count = 0
        return handed_over


class Counting(Protocol):
    """A queue that counts usual steps, see `SamplesPassed`."""

    def end_count(self) -> None:
        """Detach the current counter; the next step begins a new one."""


class Outbox:
    """The open batch of a service's engine, and its agenda."""

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
        """Quantum: number of samples that a queue moves in a row for one cause; the rest follows in the next turn."""
        self.holds_back = False
        """Whether no new sample is enqueued, because memory is at its bound."""
        self.payload_size_bytes_max: int = INFINITE_NS
        """The largest payload that the transport accepts, in octets."""
        self.reports_each_step = True
        """Whether each step of a single sample is an event; otherwise usual ones are counted, see `SamplesPassed`."""
        self.reports_inputs = False
        """Whether incoming messages are part of the batch too, see `Input`."""
        self.inputs: list[Input] = []
        self.counting: list[Counting] = []
        """The queues whose counters are in the open batch."""
        self._begun: list[OpenStream] = []
        self.service_stream = self.open_stream(SERVICE_STREAM)
        self.messages: list[Outbound] = []
        self.events: list[Event] = []
        self.spilling: list[Sample | Run] = []
        """Samples and runs whose payload leaves memory when this batch is closed, and is on disk only [QS 2.14.2]."""
        self.agenda = Agenda()
        self._has_spilled = False
        self.moves_samples = False
        """Whether a command moved samples in the open batch, see `Ready`."""

    def open_stream(self, name: StreamName) -> OpenStream:
        """Return a new stream without records."""
        return OpenStream(name, self._begun)

    def forget(self, stream: OpenStream) -> None:
        """Discard a stream's records in the open batch and the messages that rest on them; its indexes restart."""
        is_begun = bool(stream.records)
        handed_over = stream.forget()
        if is_begun:
            self._begun.remove(stream)
            self.messages = [
                each for each in self.messages if each.queue != stream.name or each.rests_on <= handed_over
            ]

    def note_input(self, now: Nanoseconds, message: Inbound) -> None:
        """Add an incoming message to the batch, with the number of events before it."""
        self.inputs.append(Input(len(self.events), now, message))

    def end_counts(self) -> None:
        """Detach the counters of usual steps from their queues, because they are about to be read."""
        for queue in self.counting:
            queue.end_count()
        self.counting.clear()

    def spill_stored(self, run: Run) -> None:
        """Release the payloads of a restored run, which are stored: the open batch may need them from the store."""
        run.spill()
        self._has_spilled = True

    @property
    def is_empty(self) -> bool:
        """Return whether the open batch is empty."""
        return not (self._begun or self.messages or self.events or self.inputs or self.counting or self.spilling)

    def take(self) -> Ready:
        """Close the batch and open the next one. Payloads that are on disk only are released from memory here."""
        batches = [each.take() for each in self._begun]
        ready = Ready(batches, self.messages, self.events, self._has_spilled, self.inputs or (), self.moves_samples)
        self._begun.clear()
        self.moves_samples = False
        self.messages, self.events = [], []
        if self.inputs:
            self.inputs = []
        if self.spilling:
            self._has_spilled = True
            for each in self.spilling:
                each.spill()
            self.spilling.clear()
        return ready
