"""The folder of one run: its name, its `run.json`, its parts. No file is overwritten, and its status is recorded.

`run.json` is replaced atomically (a temporary file, renamed), so that every reader sees a whole document: its status is
`running` while the run is in progress or after it was killed, `partial` when it was stopped, `complete` at the end. It
lists every file of the replications that ended, with its checksum (`checked_files.py` compares them), and carries a
seal over itself. A part that is being written has a hidden name (`.part-…`), which Spark and the reader pass over.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from qsctl.errors import UNREADABLE, Damaged, InvalidInput, NotFound
from qsctl.eventlog.location import Location, move

RUN_FILE: Final = "run.json"
SCENARIO_FILE: Final = "scenario.xml"
SERVICE_FILE: Final = "service.json"
"""The settings of the service that was simulated or recorded (`core.settings.ServiceSettings`), exactly."""
CONFIG_FILE: Final = "config.xml"
"""Of a recording: its service's configuration when it began, resolved."""
DEFAULT_PARENT: Final = Path("qsctl-runs")
FORMAT: Final = 4
"""The version of this layout that is written.

Format 1 had no checksum of each file, format 2 lacked the time at which a message entered its queue; format 3 had
durations as integers, no descriptions, no file of a table without rows, and no tables of names."""

READABLE_FORMATS: Final = (3, FORMAT)
"""A reader refuses any other one."""
_READS: Final = " and ".join(map(str, READABLE_FORMATS))

CHECKSUM_BYTES: Final = 16
_FOOTER_END_BYTES: Final = 8
"""A Parquet file ends with the length of its footer and a word of four letters."""


class RunStatus(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"


class FileInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the folder, as it was when it was written."""

    bytes: int
    blake2b: str
    rows: int = 0
    """The number of rows of a Parquet file."""
    footer: str | msgspec.UnsetType = msgspec.UNSET
    """BLAKE2b of a Parquet file's footer, where each page has a checksum of its own [parquet-format, Checksumming]."""


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of event in a replication, at any level of the log: its number, first instant, and client."""

    event: str
    count: int
    clients: int
    """Number of clients with this event; 0 for events of the whole broker."""
    first_ns: int
    first_client: str = ""
    peak: int = 0
    """The largest value, in the event's unit."""


class RuleVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a rule that a simulated cluster must obey."""

    rule: str
    """The short name of the rule, such as P1."""
    meaning: str
    checked: int
    """Number of tests."""
    violations: int
    first_ns: int = 0
    """The first violation."""
    first: str = ""
    """The first violation."""
    replay: str = ""
    """The shortest schedule of faults found that violates the rule."""


class ReplicatedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """The masters of a replicated queue of a simulated cluster, and the writes refused without one [QS 7.1.2]."""

    queue: str
    replicas: int
    """Number of instances with a replica of the queue."""
    first_master: str = ""
    """The instance that was the first master; empty: no instance ever was."""
    first_master_ns: int | None = None
    refused_before: int = 0
    """Number of writes that every replica answered with 0 before the first master was elected."""
    first_accepted_ns: int | None = None
    """The instant at which a replica first answered 1."""
    refused_later: int = 0
    """Number of writes that every replica answered with 0 after that election, for any reason."""
    elected: int = 0
    """Number of times that an instance became master."""
    longest_without_master_ns: int = 0
    """The longest time without a master after the first one; until the end of the run if no other followed."""


class QueueWorker(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one consumer of a simulated broker's queue after the warm-up."""

    consumer: str
    group: str
    """The name, in the scenario, of the group of consumers that it belongs to."""
    present_ns: int
    busy_ns: int
    """The working time, summed over its servers."""
    paid_ns: int
    """The time during which it was present or starting."""
    servers: int
    succeeded: int
    """Attempts."""
    failed: int

    @property
    def utilization(self) -> float | None:
        """The fraction of its servers' time in which they worked; None: it was never present."""
        return self.busy_ns / (self.present_ns * self.servers) if self.present_ns else None


class WorkedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a simulated broker's queue after the warm-up, beside its counters."""

    queue: str
    duplicates: int
    """Number of times that work on a message succeeded although it had succeeded before."""
    parallel_duplicates: int
    """Number of times that work on a message began while another consumer was working on it."""
    backlog_mean: float
    """Number of messages in the queue, including those being processed by consumers."""
    backlog_max: int
    ready_max: int
    """Number of messages ready to be delivered."""
    oldest_ns: int
    """The greatest age of a ready message."""
    drain_ns: int | None
    """The longest time, after an outage or an absence, until the backlog was as before, or until the end of the run;
    None: no outage.
    """
    busy_ns: int
    """The working time of all servers."""
    served_ns: int
    """The time of presence, summed over all servers."""
    worker_ns: int
    """The paid time of consumers."""
    requests: int
    """Number of requests to the broker: messages published, polls, acknowledgments, rejections and heartbeats."""
    cost: float
    within: int | None = None
    """Number of messages processed within the objective; None: no objective."""
    missed: int | None = None
    """Number of messages processed later, lost, or older than the objective when the run ends."""

    @property
    def utilization(self) -> float | None:
        """The fraction of all servers' time in which they worked; None: no server was present."""
        return self.busy_ns / self.served_ns if self.served_ns else None

    @property
    def within_objective(self) -> float | None:
        """The fraction of messages processed within the objective; None if no message counts for it."""
        if self.within is None or self.missed is None or self.within + self.missed == 0:
            return None
        return self.within / (self.within + self.missed)


class ReplicationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One replication: its progress and its files."""

    replication: int
    complete: bool
    simulated_ns: int
    messages: int
    """The number of arrivals, warm-up included."""
    message_rows: int = 0
    event_rows: int = 0
    happenings: tuple[Happening, ...] = ()
    """Events of the run, in the order of their first occurrence."""
    verdicts: tuple[RuleVerdict, ...] = ()
    """Of a world."""
    replicated_queues: tuple[ReplicatedQueue, ...] = ()
    """Of a world, in the order of its configuration."""
    worked_queues: tuple[WorkedQueue, ...] = ()
    """Of a broker's queue."""
    workers: tuple[QueueWorker, ...] = ()
    """Of a broker's queue: its consumers."""


class RecordingEnd(StrEnum):
    """Why a recording ended."""

    NOT_YET = ""
    STOPPED = "stopped"
    """It was stopped by a command, or in an orderly stop of its service: it is complete."""
    LIMIT = "limit"
    """Its folder reached `max_bytes`."""
    SERVICE_GONE = "service_gone"
    """The service ended without reporting the end."""
    OVERRUN = "overrun"
    """The service was faster than its recorder for too long."""
    FAILED = "failed"
    """A write to the folder failed: the disk is full, or the folder was removed."""


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """The members of `run.json` for a recording of a live service.

    Its `horizon_ns` is its duration. A recording has one replication, 0. The run is COMPLETE where `end` is STOPPED,
    PARTIAL where it ended otherwise; it is complete up to its end then, too. One that is RUNNING, or was killed, is
    complete up to the last closed part, with counters of the same instant.
    """

    service: str
    """The application name of the service."""
    started_at_ns: int
    """Unix nanoseconds: instant 0 of all times."""
    sample_share: float = 1.0
    """Fraction of the samples that have rows in `messages`, `arrivals` and `deliveries`, chosen by a hash of the
    identity.

    Counts over rows are of this fraction; ratios and percentiles are estimates. The counters are of all samples.
    """
    max_bytes: int = 0
    """The size of the folder at which the recording ends; 0: no limit."""
    processes: int = 1
    """The number of processes of the service."""
    share_count: int = 0
    """Largest number of samples that a queue moves in one step for one cause (`Outbox.share_count`); 0: unbounded."""
    held_messages: int = 0
    """Number of samples held when the recording began; they have arrivals before 0."""
    end: RecordingEnd = RecordingEnd.NOT_YET
    end_text: str = ""
    """The error message."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `run.json`. Nothing in it depends on the clock: the same run writes the same document."""

    format: int = FORMAT
    run_id: str
    status: RunStatus
    scenario: str
    """The scenario's name; its canonical text is in `scenario.xml` beside."""
    model: str
    seed: int
    log_level: str
    horizon_ns: int
    warm_up_ns: int
    replications: int
    done: tuple[ReplicationInfo, ...] = ()
    arrived_messages: int = 0
    delivered_messages: int = 0
    discarded_messages: int = 0
    version: str = ""
    reproduce: str = ""
    """The command that repeats this run."""
    fingerprint: str = ""
    """BLAKE2b of every part's name and checksum, in the order of their names; empty until the run has ended."""
    overrides: dict[str, str] = {}
    recording: Recording | msgspec.UnsetType = msgspec.UNSET
    """Of a live service; absent from the document of a simulated run."""
    files: dict[str, FileInfo] = {}
    """The parts of the replications in `done`, and the texts beside them, by their path within the folder."""
    seal: str = ""
    """BLAKE2b of this document without it: `write_run_info` sets it, `read_run_info` compares it; else empty."""

    @property
    def complete(self) -> bool:
        """Return whether every replication reached its horizon."""
        return self.status is RunStatus.COMPLETE


def new_folder(name: str, parent: Location = DEFAULT_PARENT) -> Location:
    """Create the next free folder `parent/name-N`; concurrent runs get different folders.

    Raises:
        InvalidInput: the folder cannot be made there.
    """
    number = 1
    while True:
        folder = parent / f"{name}-{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
            continue
        except OSError as error:
            raise InvalidInput(
                f"{parent}: the folder cannot be created: {error.strerror}", remedy="Choose another with --out."
            ) from None
        return folder


_CLAIM: Final = ".claimed"


def claim_folder(folder: Location) -> Location:
    """Create `folder`, or claim an empty one; of two concurrent callers only one succeeds.

    The claim is a hidden file, which is removed once `run.json` marks the folder as a run's (`release_claim`).

    Raises:
        InvalidInput: something is in it already, or it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        used = any(folder.iterdir())
        if not used:
            (folder / _CLAIM).touch(exist_ok=False)
            used = any(path.name != _CLAIM for path in folder.iterdir())
    except FileExistsError:
        used = folder.is_dir()
        if not used:
            raise InvalidInput(f"{folder}: the folder cannot be created: it is a file") from None
    except OSError as error:
        raise InvalidInput(f"{folder}: the folder cannot be created: {error.strerror}") from None
    if used:
        raise InvalidInput(f"{folder} is not empty", remedy="A run never overwrites: name a new folder, or omit --out.")
    return folder


def release_claim(folder: Location) -> None:
    """Remove the claim, which is unnecessary once the folder has a `run.json` and is not empty."""
    (folder / _CLAIM).unlink(missing_ok=True)


def write_run_info(folder: Location, info: RunInfo) -> None:
    """Replace `run.json` in one step, sealed."""
    temporary = folder / f".{RUN_FILE}.tmp"
    sealed = msgspec.structs.replace(info, seal=_seal(msgspec.to_builtins(info)))
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(sealed), indent=2) + b"\n")
    move(temporary, folder / RUN_FILE)


def read_run_info(folder: Location) -> RunInfo:
    """Read `run.json`.

    Raises:
        NotFound: the folder, or its `run.json`, does not exist.
        Damaged: it is not what a run wrote, was changed since, or another version of qsctl wrote it.
    """
    path = folder / RUN_FILE
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        missing = "is not a folder" if not folder.is_dir() else f"has no {RUN_FILE}: it is not a run folder"
        raise NotFound(f"{folder} {missing}", remedy="Name the folder that `qsctl simulate` printed.") from None
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror}") from None
    try:
        format_found = msgspec.json.decode(text, type=_Format).format
        if format_found not in READABLE_FORMATS:
            raise _other_format(path, format_found)
        info = msgspec.json.decode(text, type=RunInfo)
        seal = _seal(msgspec.json.decode(text))
    except UNREADABLE as error:
        raise Damaged(f"{path} is damaged: {error}", remedy="Run the scenario again.") from None
    if info.seal != seal:
        raise Damaged(
            f"{path} was changed after it was written: its seal is {info.seal!r}, its content gives {seal!r}",
            remedy="Restore it from a copy, or run the scenario again.",
        )
    return msgspec.structs.replace(info, seal="")


class _Format(msgspec.Struct):
    format: int


def _other_format(path: Location, found: int) -> Damaged:
    if found > FORMAT:
        return Damaged(f"{path} has format {found}, this qsctl reads {_READS}", remedy="Use the qsctl that wrote it.")
    return Damaged(
        f"{path} has format {found}, which lacks what this qsctl needs; it reads {_READS}",
        remedy="Run the scenario again: the command is in the file, as `reproduce`.",
    )


def _seal(document: dict[str, Any]) -> str:
    """Return a hash over the document's content, independent of its layout.

    The hash covers the document and not a `RunInfo`, which has members that older documents lack.
    """
    return _checksum(msgspec.json.encode(document | {"seal": ""}))


def describe_file(path: Location, rows: int = 0) -> FileInfo:
    """Read a file once for its size and checksum."""
    with path.open("rb") as file:
        checksum = _checksum_of_rest(file)
        return FileInfo(bytes=file.tell(), blake2b=checksum, rows=rows)


def describe_part(path: Location, rows: int) -> FileInfo:
    """Read a Parquet file once, whose pages were written with checksums, and its footer again."""
    return msgspec.structs.replace(describe_file(path, rows), footer=footer_checksum(path))


def footer_checksum(path: Location) -> str:
    """Return the checksum of a Parquet file's footer, read from the end of the file; invalid footers also have one."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _FOOTER_END_BYTES))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - _FOOTER_END_BYTES - length))
        return _checksum_of_rest(file)  # a length that was changed may be the whole file's


def describe_text(text: bytes) -> FileInfo:
    """Return the size and checksum of a small file with this content."""
    return FileInfo(bytes=len(text), blake2b=_checksum(text))


def _checksum_of_rest(file: IO[bytes]) -> str:
    # The type of a remote file is not one of Python's files, but it reads into a buffer like one.
    return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=CHECKSUM_BYTES)).hexdigest()  # type: ignore[arg-type]


def _checksum(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=CHECKSUM_BYTES).hexdigest()


def fingerprint_of(files: Mapping[str, FileInfo]) -> str:
    """Return one hash over the names and checksums of the Parquet files, in the order of the names."""
    listing = "".join(f"{path} {file.blake2b}\n" for path, file in sorted(files.items()) if path.endswith(".parquet"))
    return _checksum(listing.encode())


def part_folder(folder: Location, table: str, replication: int) -> Location:
    """Return the folder for the parts of a table and replication: `messages/replication=0`."""
    return folder / table / f"replication={replication}"
