"""The tables that all parts of the fold write to: rows, step numbers, peers' numbers, events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from qsctl.eventlog.recording.queue_state import QueueState
from qsctl.eventlog.recording.rows import TableRows
from qsctl.eventlog.recording.schema import PeerHappening
from qsctl.eventlog.run_folder import Happening
from qsctl.identity import NIL_GUID, Guid
from qsctl.instant import Nanoseconds

TABLES: Final = ("messages", "arrivals", "deliveries", "peers", "commands", "events")


@dataclass(slots=True)
class _RowKind:
    count: int = 0
    first_ns: Nanoseconds = 0
    peak: int = 0


@dataclass(slots=True)
class RecordingRows:
    """The rows of one recording, until the writer takes them.

    `keeps_rows`: whether rows are made at all; `keeps_events`: whether rows of `events` are made.
    """

    client: str
    keeps_rows: bool
    keeps_events: bool
    step: int = 0
    """The step number of the event being folded, from 1."""
    now_ns: Nanoseconds = 0
    """The latest reported instant, in nanoseconds since the beginning."""
    rows: dict[str, TableRows] = field(default_factory=lambda: {name: TableRows() for name in TABLES})
    """The rows by table, with values in the order of the columns without `run_id`."""
    _peers: dict[Guid, int] = field(default_factory=dict)
    _latest_producer: Guid = NIL_GUID
    _latest_number: int = 0
    _producers: set[Guid] = field(default_factory=set)
    _kinds: dict[str, _RowKind] = field(default_factory=dict)

    def peer(self, guid: Guid) -> int:
        """Return the number of a peer, assigning one if it has none."""
        number = self._peers.get(guid)
        if number is None:
            number = self._peers[guid] = len(self._peers)
        return number

    def producer(self, guid: Guid, at_ns: Nanoseconds) -> int:
        """Return the number of a producer; its first sample adds a row of `peers`."""
        if guid == self._latest_producer:
            return self._latest_number
        if guid not in self._producers:
            self._producers.add(guid)
            self.add_peer(at_ns, PeerHappening.PRODUCER_SEEN, guid)
        self._latest_producer, self._latest_number = guid, self._peers[guid]
        return self._latest_number

    def forget_producer(self, guid: Guid) -> None:
        """Register that a producer left: if it returns, it counts as new."""
        self._producers.discard(guid)
        self._latest_producer = NIL_GUID

    def add_peer(
        self,
        at_ns: Nanoseconds,
        happening: PeerHappening,
        guid: Guid,
        *,
        queue: str | None = None,
        participant: str | None = None,
        topic: str | None = None,
        address: str | None = None,
        unacked_threshold: int | None = None,
        reception_enabled: bool | None = None,
        hands_back: bool = False,
    ) -> None:
        """Add a row of `peers`."""
        number = self.peer(guid)
        if self.keeps_rows:
            self.rows["peers"].parts.append(
                (
                    self.step, at_ns, happening.value, number, guid.hex(), queue, participant, topic, address,
                    unacked_threshold, reception_enabled, hands_back,
                )
            )  # fmt: skip

    def add_event(self, queue: QueueState, event: str, at_ns: Nanoseconds, value: int = 1, count: int = 1) -> None:
        """Add an event of a queue: a happening at any level, a row at level events. `value` is in the event's unit."""
        kind = self._kinds.get(event)
        if kind is None:
            kind = self._kinds[event] = _RowKind(first_ns=at_ns)
        kind.count += count
        kind.peak = max(kind.peak, value)
        if self.keeps_events:
            self.rows["events"].parts.append((at_ns, 0, queue.shown, event, value))

    def happenings(self) -> tuple[Happening, ...]:
        """Return each kind of event, in the order of their first occurrence."""
        kinds = sorted(self._kinds.items(), key=lambda each: (each[1].first_ns, each[0]))
        return tuple(
            Happening(
                event=event,
                count=kind.count,
                clients=1,
                first_ns=kind.first_ns,
                first_client=self.client,
                peak=kind.peak,
            )
            for event, kind in kinds
        )
