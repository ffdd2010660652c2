"""The folder of one run: its name, its `run.json`, its parts. Never overwrites, and says itself whether it is whole.

`run.json` is written anew in one step (a temporary file, renamed), so that whoever reads it sees a whole document:
`running` while the run goes on or was killed, `partial` when it was stopped, `complete` at the end. A part that is
being written has a hidden name (`.part-…`), which Spark and the reader pass over.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from qsctl.errors import Damaged, InvalidInput, NotFound

RUN_FILE: Final = "run.json"
SCENARIO_FILE: Final = "scenario.xml"
DEFAULT_PARENT: Final = Path("qsctl-runs")
FORMAT: Final = 1
"""The version of this layout; a reader refuses a later one."""


class RunStatus(StrEnum):
    """How far a run came."""

    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"


class ReplicationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One replication: how far it came and what it wrote."""

    replication: int
    complete: bool
    simulated_ns: int
    messages: int
    """Arrivals, warm-up included."""
    message_rows: int = 0
    event_rows: int = 0


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What `run.json` holds. Nothing in it depends on the clock: the same run writes the same document."""

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
    """The command that makes this run again."""
    fingerprint: str = ""
    """BLAKE2b of every part's name and bytes, in the order of their names; empty until the run has ended."""
    overrides: dict[str, str] = {}

    @property
    def complete(self) -> bool:
        """Whether every replication came to its horizon."""
        return self.status is RunStatus.COMPLETE


def new_folder(name: str, parent: Path = DEFAULT_PARENT) -> Path:
    """Make the next free `parent/name-N`; two runs at once get two folders.

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
                f"{parent}: no folder can be made there: {error.strerror}", remedy="Choose another with --out."
            ) from None
        return folder


def claim_folder(folder: Path) -> Path:
    """Make `folder`, or take it when it is empty.

    Raises:
        InvalidInput: something is in it already, or it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise InvalidInput(f"{folder}: no folder can be made there: {error.strerror}") from None
    if taken:
        raise InvalidInput(
            f"{folder} is not empty", remedy="A run never overwrites: name a new folder, or leave --out away."
        )
    return folder


def write_run_info(folder: Path, info: RunInfo) -> None:
    """Replace `run.json` in one step."""
    temporary = folder / f".{RUN_FILE}.tmp"
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n")
    temporary.replace(folder / RUN_FILE)


def read_run_info(folder: Path) -> RunInfo:
    """Read `run.json`.

    Raises:
        NotFound: the folder, or its `run.json`, does not exist.
        Damaged: it is not what a run writes, or a later qsctl wrote it.
    """
    path = folder / RUN_FILE
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        missing = "is no folder" if not folder.is_dir() else f"has no {RUN_FILE}: it is not a run folder"
        raise NotFound(f"{folder} {missing}", remedy="Name the folder that `qsctl simulate` printed.") from None
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror}") from None
    try:
        info = msgspec.json.decode(text, type=RunInfo)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"{path} is damaged: {error}", remedy="Run the scenario again.") from None
    if info.format > FORMAT:
        raise Damaged(
            f"{path} has format {info.format}, this qsctl reads up to {FORMAT}", remedy="Use the qsctl that wrote it."
        )
    return info


def part_folder(folder: Path, table: str, replication: int) -> Path:
    """Where the parts of a table and replication are: `messages/replication=0`."""
    return folder / table / f"replication={replication}"


def parts_of(folder: Path, table: str) -> list[Path]:
    """The finished parts of a table, replications in numerical order."""

    def place(path: Path) -> tuple[int, str]:
        _, _, number = path.parent.name.partition("=")
        return (int(number) if number.isdigit() else -1, path.name)

    return sorted((folder / table).glob("replication=*/part-*.parquet"), key=place)
