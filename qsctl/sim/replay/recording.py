"""A recording in memory: arrivals, deliveries, peers and commands, in the order of the service's steps.

Decides nothing: rows of the tables of `eventlog.recording.schema` as tuples, by queue, in the order of their steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from qsctl.core.settings import ServiceSettings
from qsctl.errors import UNREADABLE, Damaged, InvalidInput
from qsctl.eventlog.checked_files import checked_text
from qsctl.eventlog.location import Location
from qsctl.eventlog.reader import batches_of
from qsctl.eventlog.run_folder import SERVICE_FILE, RunInfo, read_run_info
from qsctl.identity import Guid
from qsctl.instant import Nanoseconds
from qsctl.sim.scenario.rules.replay import has_arrivals

if TYPE_CHECKING:
    import pyarrow as pa


class RecordedArrival(NamedTuple):
    """A sample that reached a queue; see `eventlog.recording.schema.ARRIVALS`."""

    at_ns: Nanoseconds
    step: int
    queue: str
    producer: int
    sequence_number: int
    origin: str
    size_bytes: int
    lifespan_ns: Nanoseconds | None
    address: str | None
    attempts: int
    redelivered: bool
    answer: str
    answered_ns: Nanoseconds | None
    reason: str | None


class Delivered(NamedTuple):
    """A delivery; see `eventlog.recording.schema.DELIVERIES`."""

    sent_ns: Nanoseconds
    step: int
    queue: str
    producer: int
    sequence_number: int
    attempt: int
    redelivered: bool
    consumer: int
    answer: str
    answered_ns: Nanoseconds | None
    answered_step: int | None
    late_ns: Nanoseconds | None
    late_step: int | None
    late_retired: bool


class PeerRow(NamedTuple):
    """An action of a peer; see `eventlog.recording.schema.PEERS`."""

    at_ns: Nanoseconds
    step: int
    happening: str
    peer: int
    queue: str | None
    participant: str | None
    topic: str | None
    address: str | None
    unacked_threshold: int | None
    reception_enabled: bool | None
    hands_back: bool


class CommandRow(NamedTuple):
    """A command that changed the service; see `eventlog.recording.schema.COMMANDS`."""

    at_ns: Nanoseconds
    step: int
    command: str
    resource: str
    body: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording; each list in the order of the steps."""

    info: RunInfo
    service: ServiceSettings
    guids: dict[int, Guid]
    """GUIDs of producers and consumers, by their numbers."""
    arrivals: tuple[RecordedArrival, ...]
    deliveries: tuple[Delivered, ...]
    peers: tuple[PeerRow, ...]
    commands: tuple[CommandRow, ...]
    left: dict[str, list[Nanoseconds]] = field(default_factory=dict)
    """The instants at which samples left each queue, by the queue's name in the table of messages."""

    @property
    def sample_share(self) -> float:
        """Return the recorded fraction of the samples; see `eventlog.run_folder.Recording`."""
        recording = self.info.recording
        return 1.0 if recording is msgspec.UNSET else recording.sample_share


_NAMES: Final[dict[str, tuple[type[Any], tuple[str, ...]]]] = {
    "arrivals": (RecordedArrival, RecordedArrival._fields),
    "deliveries": (Delivered, Delivered._fields),
    "peers": (PeerRow, PeerRow._fields),
    "commands": (CommandRow, CommandRow._fields),
}


def files_of_replay(info: RunInfo) -> list[str]:
    """Return the names of the files in a recording's folder that `read_recording` reads besides `run.json`.

    Args:
        info: the recording's info.
    """
    tables = (*_NAMES, "messages")
    return [name for name in info.files if name == SERVICE_FILE or name.partition("/")[0] in tables]


def read_recording(folder: Location) -> Recorded:
    """Read a whole recording into memory.

    Raises:
        NotFound: the folder is not a run.
        InvalidInput: it has no arrivals.
        Damaged: a file of it is missing, was changed, or cannot be read.
    """
    return _read(folder, read_run_info(folder).fingerprint)


@lru_cache(maxsize=2)
def _read(folder: Location, _fingerprint: str) -> Recorded:
    """Read a recording; cached, so that repetitions and candidates do not read it again."""
    info = read_run_info(folder)
    if not has_arrivals(info):
        raise InvalidInput(
            f"{folder} holds no arrivals: nothing can be replayed (model {info.model}, log level {info.log_level})",
            remedy="Record at level messages or events: `qsctl record start --level messages`.",
        )
    try:
        service = msgspec.json.decode(checked_text(folder, info, SERVICE_FILE), type=ServiceSettings)
    except UNREADABLE as error:
        raise Damaged(f"{folder / SERVICE_FILE} is damaged: {error}") from None
    guids: dict[int, Guid] = {}
    for batch in _first_replication(folder, info, "peers", ("peer", "guid")):
        for number, guid in zip(batch["peer"].to_pylist(), batch["guid"].to_pylist(), strict=True):
            guids[number] = Guid(bytes.fromhex(guid))
    return Recorded(
        info,
        service,
        guids,
        tuple(sorted(_rows(folder, info, "arrivals"), key=lambda row: (row.step, row.at_ns))),
        tuple(sorted(_rows(folder, info, "deliveries"), key=lambda row: row.step)),
        tuple(sorted(_rows(folder, info, "peers"), key=lambda row: row.step)),
        tuple(sorted(_rows(folder, info, "commands"), key=lambda row: row.step)),
        _left(folder, info),
    )


def _first_replication(folder: Location, info: RunInfo, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the first repetition: a recording has only that one; others of a replay had other loads."""
    for batch in batches_of(folder, info, table, columns):
        if batch.num_rows and batch["replication"][0].as_py() == 0:
            yield batch


def _rows(folder: Location, info: RunInfo, table: str) -> Iterator[Any]:
    kind, names = _NAMES[table]
    for batch in _first_replication(folder, info, table, names):
        columns = [batch[name].to_pylist() for name in names]
        yield from map(kind._make, zip(*columns, strict=True))


def _left(folder: Location, info: RunInfo) -> dict[str, list[Nanoseconds]]:
    """Return when samples left each queue by a timer: without a consumer's answer, or as dead letters."""
    found: dict[str, list[Nanoseconds]] = {}
    for batch in _first_replication(folder, info, "messages", ("queue", "enqueued_ns", "wait_ns", "outcome")):
        columns = [batch[name].to_pylist() for name in ("queue", "enqueued_ns", "wait_ns", "outcome")]
        for queue, enqueued_ns, wait_ns, outcome in zip(*columns, strict=True):
            if outcome != "delivered" and wait_ns is not None:
                found.setdefault(queue, []).append(enqueued_ns + wait_ns)
    return found
