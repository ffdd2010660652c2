"""The folder of a sweep: what was asked (`sweep.json`), and one small Parquet file a finished batch.

A batch is written under a hidden name and renamed, so a driver that is killed loses at most the batch in hand; the next
call reads what is there and does the rest.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from qsctl.errors import Damaged, InvalidInput, NotFound
from qsctl.sim.figures import Figures
from qsctl.sim.scenario_text import scenario_digest, scenario_text
from qsctl.sim.sweep import Point, SweepPlan, plan_document

SWEEP_FILE: Final = "sweep.json"
SCENARIO_FILE: Final = "scenario.xml"
POINTS_FOLDER: Final = "points"

_TEXT: Final = {"queue"}
_NULLABLE: Final = {"first_discard_ns", "wait_p50_ns", "wait_p90_ns", "wait_p99_ns", "wait_p999_ns"}

POINTS: Final = pa.schema(
    [
        pa.field("point", pa.string(), nullable=False),
        pa.field("values", pa.string(), nullable=False),
        pa.field("replication", pa.int32(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        *(
            pa.field(each.name, pa.string() if each.name in _TEXT else pa.int64(), nullable=each.name in _NULLABLE)
            for each in dataclasses.fields(Figures)
        ),
    ]
)
"""One row a point, replication and queue. `point` is the key of its values, `values` are they as a JSON object."""


@dataclass(frozen=True, slots=True)
class PointResult:
    """One replication at one point: the figures of each queue."""

    point: Point
    replication: int
    seed: int
    figures: tuple[Figures, ...]


def open_sweep(folder: Path, plan: SweepPlan) -> None:
    """Make the folder of a sweep, or check that it holds an earlier part of the same one.

    Raises:
        InvalidInput: it holds a sweep of another scenario or seed, or something else.
    """
    digest = scenario_digest(dataclasses.replace(plan.scenario, replications=1, seed=0))
    wanted = dict(plan_document(plan, digest))
    file = folder / SWEEP_FILE
    if file.exists():
        have = read_sweep(folder)
        for name in ("scenario_digest", "seed", "common_random_numbers"):
            if have.get(name) != wanted[name]:
                raise InvalidInput(
                    f"{folder} holds a sweep with another {name.replace('_digest', '').replace('_', ' ')}",
                    remedy="Name another folder with --out.",
                )
    elif folder.exists() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty and holds no sweep", remedy="Name a new folder with --out.")
    try:
        (folder / POINTS_FOLDER).mkdir(parents=True, exist_ok=True)
        (folder / SCENARIO_FILE).write_text(scenario_text(plan.scenario), encoding="utf-8")
        temporary = folder / f".{SWEEP_FILE}.tmp"
        temporary.write_text(json.dumps(wanted, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}", remedy="Choose another --out.") from None


def read_sweep(folder: Path) -> Mapping[str, Any]:
    """What a sweep's folder says of itself.

    Raises:
        NotFound: it is no sweep's folder.
        Damaged: its `sweep.json` cannot be read.
    """
    file = folder / SWEEP_FILE
    if not file.is_file():
        raise NotFound(f"{folder} is no sweep's folder: it has no {SWEEP_FILE}")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Damaged(f"{file} cannot be read: {error}", remedy="Run the sweep into another folder.") from None
    if not isinstance(document, dict):
        raise Damaged(f"{file} holds no object", remedy="Run the sweep into another folder.")
    return document


def write_results(folder: Path, results: Sequence[PointResult]) -> None:
    """Add a finished batch; it is there whole or not at all."""
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
    name = f"part-{uuid.uuid4().hex}.parquet"
    hidden = folder / POINTS_FOLDER / f".{name}.tmp"
    pq.write_table(pa.Table.from_pylist(rows, schema=POINTS), hidden)
    hidden.replace(folder / POINTS_FOLDER / name)


def read_results(folder: Path) -> list[PointResult]:
    """Every finished replication, in the order of points and replications.

    Raises:
        Damaged: a file of the sweep cannot be read.
    """
    found: dict[tuple[str, int], tuple[Point, int, list[Figures]]] = {}
    for part in sorted((folder / POINTS_FOLDER).glob("part-*.parquet")):
        try:
            rows = pq.read_table(part, schema=POINTS).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise Damaged(f"{part} cannot be read: {error}", remedy="Remove it and run the sweep again.") from None
        batch: dict[tuple[str, int], tuple[Point, int, list[Figures]]] = {}
        for row in rows:
            place = (row.pop("point"), row.pop("replication"))
            point = Point(tuple(json.loads(row.pop("values")).items()))
            seed = row.pop("seed")
            batch.setdefault(place, (point, seed, []))[2].append(Figures(**row))
        found.update(batch)
    return [
        PointResult(point, replication, seed, tuple(figures))
        for (_, replication), (point, seed, figures) in sorted(found.items())
    ]


def finished(results: Iterable[PointResult]) -> set[tuple[str, int]]:
    """The points' keys and replications that need not be done again."""
    return {(result.point.key, result.replication) for result in results}
