"""The folder of a sweep: its description (`sweep.json`), and small Parquet files of finished replications.

A part is written by the process that has simulated it, under a hidden name, and renamed; the next call reads the
existing parts and simulates the rest. A part is named by its checksum and contains its sweep's identity, so that an
unlisted part is known to be complete, and a part written twice exists once. `sweep.json` lists the parts when a call
has ended, and has a checksum: a missing, changed or foreign part is an error, and is never part of a result.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from qsctl.errors import UNREADABLE, Damaged, InvalidInput, NotFound
from qsctl.eventlog.location import Location, move
from qsctl.eventlog.run_folder import describe_text
from qsctl.sim.figures import Figures
from qsctl.sim.scenario.forms.text import scenario_digest, scenario_text
from qsctl.sim.sweep import SWEEP_FORMAT, Point, SweepPlan, plan_document
from qsctl.summary._folder_lock import LOCK_FILE

SWEEP_FILE: Final = "sweep.json"
SCENARIO_FILE: Final = "scenario.xml"
POINTS_FOLDER: Final = "points"
_PART: Final = "part-"
_SUFFIX: Final = ".parquet"
_NAMED_BY_CONTENT: Final = re.compile(rf"{_PART}[0-9a-f]{{32}}{re.escape(_SUFFIX)}")
_IDENTITY: Final = ("scenario_digest", "seed", "common_random_numbers")
_SWEEP_KEY: Final = b"qsctl.sweep"
_SILENT_KEY: Final = b"qsctl.silent"
"""Metadata key of a part for its replications in which no queue had a message, since rows are of queues."""
_RESTORE: Final = "Restore the folder from a copy, or run the sweep into another one."

_OF_BROKERS: Final = ("backlog_mean", "utilization", "within_objective", "worker_hours", "cost")
_KIND: Final = {"queue": pa.string(), "done_mean_ns": pa.float64(), **dict.fromkeys(_OF_BROKERS, pa.float64())}
"""Types of the figures that are not integers."""
_NULLABLE: Final = {
    "done_messages", "unfinished_messages", "done_mean_ns", "done_p50_ns", "done_p90_ns", "done_p99_ns",
    "done_p999_ns", "done_max_ns", "first_discard_ns", "wait_p50_ns", "wait_p90_ns", "wait_p99_ns", "wait_p999_ns",
    "time_to_master_ns",
    "time_without_master_ns", "refused_before_master", "elections", "broken_rules", *_OF_BROKERS,
    "duplicates", "parallel_duplicates", "backlog_max", "ready_max", "oldest_ns", "drain_ns", "requests",
}  # fmt: skip

POINTS: Final = pa.schema(
    [
        pa.field("point", pa.string(), nullable=False),
        pa.field("values", pa.string(), nullable=False),
        pa.field("replication", pa.int32(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        *(
            pa.field(each.name, _KIND.get(each.name, pa.int64()), nullable=each.name in _NULLABLE)
            for each in dataclasses.fields(Figures)
        ),
    ]
)
"""Schema with a row for each point, replication and queue: `point` is the key of its values, `values` the same as
JSON.
"""


@dataclass(frozen=True, slots=True)
class PointResult:
    """The figures of each queue in one replication at one point."""

    point: Point
    replication: int
    seed: int
    figures: tuple[Figures, ...]


def refuse_foreign_folder(folder: Location) -> None:
    """Check that a folder is missing, empty, or a sweep folder.

    Raises:
        InvalidInput: it holds other files.
    """
    if (folder / SWEEP_FILE).exists() or not folder.is_dir():
        return
    if any(path.name != LOCK_FILE for path in folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty and holds no sweep", remedy="Name a new folder with --out.")


def open_sweep(folder: Location, plan: SweepPlan) -> None:
    """Create the folder of a sweep, or check that it holds earlier results of the same sweep.

    Raises:
        InvalidInput: it holds a sweep of another scenario or seed, or other files.
        Damaged: its `sweep.json` was changed since it was written, or another version of qsctl wrote it.
    """
    digest = scenario_digest(dataclasses.replace(plan.scenario, replications=1, seed=0))
    text = scenario_text(plan.scenario).encode("utf-8")
    wanted = {**plan_document(plan, digest), "scenario_file": _listing(text), "parts": {}}
    file = folder / SWEEP_FILE
    if file.exists():
        have = read_sweep(folder)
        for name in _IDENTITY:
            if have.get(name) != wanted[name]:
                raise InvalidInput(
                    f"{folder} holds a sweep with another {name.replace('_digest', '').replace('_', ' ')}",
                    remedy="Name another folder with --out.",
                )
        wanted["parts"] = have["parts"]
    refuse_foreign_folder(folder)
    with written(folder):
        (folder / POINTS_FOLDER).mkdir(parents=True, exist_ok=True)
        (folder / SCENARIO_FILE).write_bytes(text)
        _write_document(folder, wanted)


def read_sweep(folder: Location) -> Mapping[str, Any]:
    """Return the verified content of a sweep's `sweep.json`.

    Raises:
        NotFound: the folder is not a sweep folder.
        Damaged: its `sweep.json` cannot be read, was changed since it was written, or has another format.
    """
    file = folder / SWEEP_FILE
    if not file.is_file():
        raise NotFound(f"{folder} is not a sweep's folder: it has no {SWEEP_FILE}")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"{file} cannot be read: {error}", remedy="Run the sweep into another folder.") from None
    if not isinstance(document, dict):
        raise Damaged(f"{file} is not a JSON object", remedy="Run the sweep into another folder.")
    if document.get("format") != SWEEP_FORMAT:
        raise Damaged(
            f"{file} has format {document.get('format')!r}; this qsctl reads {SWEEP_FORMAT}",
            remedy="Run the sweep into another folder.",
        )
    seal = _seal(document)
    found = document.get("seal")
    if found != seal:
        raise Damaged(
            f"{file} was changed after it was written: its seal is {found!r}, its content gives {seal!r}",
            remedy="Restore it from a copy, or run the sweep into another folder.",
        )
    try:
        msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise Damaged(
            f"{file} is not a sweep's document: {error}", remedy="Run the sweep into another folder."
        ) from None
    return document


class _Axis(msgspec.Struct):
    path: str
    values: list[str]


class _Listing(msgspec.Struct):
    bytes: int
    blake2b: str


class _Silent(msgspec.Struct):
    """A replication in which no message occurred."""

    values: dict[str, str]
    replication: int
    seed: int


class _Document(msgspec.Struct):
    """The content of `sweep.json`."""

    scenario: str
    scenario_digest: str
    seed: int
    common_random_numbers: bool
    replications: int
    axes: list[_Axis]
    scenario_file: _Listing
    parts: dict[str, _Listing]


def sweep_scenario(folder: Location, document: Mapping[str, Any]) -> str:
    """Return the text of the sweep's scenario.

    Raises:
        Damaged: the file is missing or was changed.
    """
    path = folder / SCENARIO_FILE
    text = _content(path)
    _compare(path, document["scenario_file"], _listing(text))
    return text.decode("utf-8")


def sweep_identity(folder: Location) -> str:
    """Return the identity of a sweep, which its parts contain.

    Raises:
        Damaged: as for `read_sweep`.
    """
    return _identity(read_sweep(folder))


def encode_part(results: Sequence[PointResult], identity: str) -> bytes:
    """Serialize results to a part of a sweep; equal results yield equal octets in any process.

    Args:
        results: finished replications.
        identity: identity of the sweep.
    """
    rows = [
        {
            "point": result.point.key,
            "values": json.dumps(dict(result.point.values), ensure_ascii=False),
            "replication": result.replication,
            "seed": result.seed,
            **{each.name: getattr(figures, each.name) for each in dataclasses.fields(Figures)},
        }
        for result in results
        for figures in result.figures
    ]
    silent = [
        _Silent(dict(result.point.values), result.replication, result.seed) for result in results if not result.figures
    ]
    schema = POINTS.with_metadata({_SWEEP_KEY: identity.encode(), _SILENT_KEY: msgspec.json.encode(silent)})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink)
    return bytes(sink.getvalue().to_pybytes())


def store_part(folder: Location, content: bytes) -> None:
    """Write a part under a name derived from its content, unless it exists.

    Raises:
        OSError: it cannot be written; nothing remains of it.
    """
    place = folder / POINTS_FOLDER / _part_name(_listing(content)["blake2b"])
    if not place.is_file():
        _write_whole(place, content)


def list_parts(folder: Location) -> None:
    """List every part in `sweep.json`, so that a missing part is detected as damage from then on.

    Raises:
        Damaged: as for `read_sweep`.
        InvalidInput: the folder cannot be written.
    """
    document = dict(read_sweep(folder))
    listed = document["parts"]
    found = {
        path.name: {"bytes": path.stat().st_size, "blake2b": path.name[len(_PART) : -len(_SUFFIX)]}
        for path in _parts_in(folder)
        if path.name not in listed and _NAMED_BY_CONTENT.fullmatch(path.name)
    }
    if found:
        with written(folder):
            _write_document(folder, document | {"parts": listed | found})


def _parts_in(folder: Location) -> list[Location]:
    return [path for path in (folder / POINTS_FOLDER).glob(f"*{_SUFFIX}") if path.name[0] not in "._"]


def _part_name(digest: str) -> str:
    return f"{_PART}{digest}{_SUFFIX}"


@contextmanager
def written(folder: Location) -> Iterator[None]:
    """Convert an OSError inside the block to one error about the sweep's folder.

    Raises:
        InvalidInput: a file of the sweep cannot be written.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise InvalidInput(
            f"{folder} cannot be written: {reason}",
            remedy="Free some space and run the same command again: it continues after the finished replications. "
            "Or choose another --out."
            if error.errno in _NO_SPACE
            else "Choose another --out.",
        ) from None


_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


def _write_whole(place: Location, content: bytes) -> None:
    """Write a file under a hidden name and rename it; remove it if it cannot be written completely."""
    hidden = place.parent / f".{place.name}.{secrets.token_hex(4)}.tmp"  # a copy of the task may also write it
    try:
        hidden.write_bytes(content)
        move(hidden, place)
    except OSError:
        with suppress(OSError):
            hidden.unlink(missing_ok=True)
        raise


def grid_order(document: Mapping[str, Any]) -> Callable[[Point], tuple[int, ...]]:
    """Return a sort key that orders points as in a sweep's grid, and points of other grids after them.

    Args:
        document: result of `read_sweep`.
    """
    places = {axis["path"]: {value: place for place, value in enumerate(axis["values"])} for axis in document["axes"]}
    beyond = max((len(each) for each in places.values()), default=0)

    def key(point: Point) -> tuple[int, ...]:
        values = dict(point.values)
        return tuple(of_path.get(values.get(path, ""), beyond) for path, of_path in places.items())

    return key


def read_results(folder: Location) -> list[PointResult]:
    """Return every finished replication, in the order of points and replications.

    Raises:
        NotFound: the folder is not a sweep folder.
        Damaged: a file of the sweep is missing, was changed, belongs to another sweep, or cannot be read.
    """
    document = read_sweep(folder)
    present = {path.name for path in _parts_in(folder)}
    found: dict[tuple[str, int], PointResult] = {}
    for name in sorted(document["parts"].keys() | present):
        path = folder / POINTS_FOLDER / name
        content = _content(path)
        listing = _listing(content)
        _compare(path, document["parts"].get(name), listing)
        if name != _part_name(listing["blake2b"]):
            raise Damaged(
                f"{path} does not belong to this sweep: its name is not that of its content",
                remedy="Move it out of the folder.",
            )
        for result in _results_of(path, content, _identity(document)):
            place = (result.point.key, result.replication)
            if found.setdefault(place, result) != result:
                raise Damaged(
                    f"{path} has other figures of replication {result.replication} at {result.point} than another part",
                    remedy="Run the sweep into another folder.",
                )
    return [result for _, result in sorted(found.items())]


def _results_of(path: Location, content: bytes, identity: str) -> list[PointResult]:
    try:
        # A thread of the library may release the octets while the interpreter ends, which aborts the process
        # (apache/arrow#34314); without `pre_buffer`, which `read_table` uses, it starts no threads.
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            table = file.read(use_threads=False)
        metadata = table.schema.metadata or {}
        if metadata.get(_SWEEP_KEY) != identity.encode() or not table.schema.equals(POINTS):
            raise Damaged(f"{path} belongs to another sweep", remedy="Move it out of the folder.")
        batch: dict[tuple[str, int], tuple[Point, int, list[Figures]]] = {}
        for row in table.to_pylist():
            place = (row.pop("point"), row.pop("replication"))
            point = Point(tuple(msgspec.json.decode(row.pop("values"), type=dict[str, str]).items()))
            seed = row.pop("seed")
            batch.setdefault(place, (point, seed, []))[2].append(Figures(**row))
        for each in msgspec.json.decode(metadata.get(_SILENT_KEY, b"[]"), type=list[_Silent]):
            point = Point(tuple(each.values.items()))
            batch[point.key, each.replication] = (point, each.seed, [])
    except (OSError, pa.ArrowException, *UNREADABLE) as error:
        raise Damaged(f"{path} cannot be read: {error}", remedy="Remove it and run the sweep again.") from None
    return [
        PointResult(point, replication, seed, tuple(figures))
        for (_, replication), (point, seed, figures) in batch.items()
    ]


def _write_document(folder: Location, document: Mapping[str, Any]) -> None:
    """Replace `sweep.json` atomically, with its checksum."""
    sealed = {**document, "seal": _seal(document)}
    text = json.dumps(sealed, indent=2, ensure_ascii=False) + "\n"
    _write_whole(folder / SWEEP_FILE, text.encode("utf-8"))


def _seal(document: Mapping[str, Any]) -> str:
    """Return the checksum of the document's content, which does not depend on its layout."""
    rest = {name: value for name, value in document.items() if name != "seal"}
    return describe_text(json.dumps(rest, sort_keys=True).encode()).blake2b


def _identity(document: Mapping[str, Any]) -> str:
    """Return the identity of the sweep, which its parts contain."""
    return describe_text(json.dumps([document[name] for name in _IDENTITY]).encode()).blake2b


def _listing(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "blake2b": describe_text(content).blake2b}


def _content(path: Location) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise Damaged(f"{path} is missing: {SWEEP_FILE} lists it", remedy=_RESTORE) from None
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror}", remedy=_RESTORE) from None


def _compare(path: Location, listed: Mapping[str, Any] | None, found: Mapping[str, Any]) -> None:
    if listed is not None and dict(listed) != dict(found):
        raise Damaged(
            f"{path} was changed after it was written: {found['bytes']} bytes with BLAKE2b {found['blake2b']}; "
            f"{SWEEP_FILE} lists {listed['bytes']} bytes with {listed['blake2b']}",
            remedy=_RESTORE,
        )


def finished(results: Iterable[PointResult]) -> set[tuple[str, int]]:
    """Return the key of the point and the number of the replication for each finished result."""
    return {(result.point.key, result.replication) for result in results}
