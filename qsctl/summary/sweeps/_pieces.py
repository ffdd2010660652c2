"""Pieces of a sweep or a search: repetitions that one worker simulates one after the other, and their results.

A piece of a sweep is written to the sweep's folder by its worker, as a part named by its content, so that a retry or a
speculative copy adds nothing. A worker without access to the folder returns the part, and the driver writes it. A piece
of a search returns its figures.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import msgspec

from qsctl.errors import QsctlError
from qsctl.eventlog.location import Location, location
from qsctl.sim.figures import Figures
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sweep import Point, Task, run_task
from qsctl.summary.sweeps.sweep_folder import (
    POINTS_FOLDER,
    PointResult,
    encode_part,
    store_part,
    sweep_identity,
    written,
)

_MARK: Final = ".run-"
"""Prefix of the name of the file that exists while a driver works on a sweep."""


class PartPlace(msgspec.Struct, frozen=True):
    """The sweep folder to which parts are written."""

    folder: str
    identity: str
    """The identity of the sweep."""
    mark: str
    """Name of a file that this driver made in the folder: a process that finds it has access to the same folder."""

    def is_seen(self) -> bool:
        """Return whether this process has access to the driver's folder, rather than to another one of the same
        name.
        """
        return (location(self.folder) / POINTS_FOLDER / self.mark).is_file()


@contextmanager
def part_place(folder: Location) -> Iterator[PartPlace]:
    """Yield the place for the parts of an opened sweep; other processes recognize the folder during the block.

    Raises:
        InvalidInput: the folder cannot be written.
    """
    points = folder / POINTS_FOLDER
    mark = points / f"{_MARK}{secrets.token_hex(8)}"
    with written(folder):
        for left in points.iterdir():  # files of a killed driver and its workers, since the caller holds the lock
            if left.name.startswith(_MARK) or (left.name.startswith(".") and left.name.endswith(".tmp")):
                left.unlink(missing_ok=True)
        mark.touch()
    try:
        yield PartPlace(str(folder), sweep_identity(folder), mark.name)
    finally:
        mark.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class TaskPiece:
    """Repetitions for one worker; `kept` is the folder for their part, None: their figures are returned."""

    tasks: tuple[Task, ...]
    kept: PartPlace | None = None


class PieceAnswer(msgspec.Struct, frozen=True):
    """The answer of a worker to a piece."""

    seconds: float = 0.0
    """The duration of the simulation in seconds."""
    is_warm: bool = False
    """Whether the worker had simulated before; the first piece includes loading or compiling kernels."""
    content: bytes = b""
    """The figures, or a part that the worker could not write because it has no access to the folder."""
    problem: str = ""
    """The error message for a point that cannot be simulated; a retry would not help."""
    error_number: int = 0
    """The error number (errno) with which writing the part failed."""


@dataclass(frozen=True, slots=True)
class DonePiece:
    """A completed piece; `results` is empty if they are in the folder."""

    piece: TaskPiece
    results: tuple[PointResult, ...]
    seconds: float
    is_warm: bool


_has_worked = False
"""Whether this process has simulated a piece."""


def work(
    scenario: Scenario,
    piece: TaskPiece,
    check: Callable[[], None] = lambda: None,
    placed: Callable[[Scenario], Scenario] = lambda scenario: scenario,
) -> PieceAnswer:
    """Simulate a piece.

    Args:
        scenario: the scenario to simulate.
        piece: the repetitions.
        check: called before each repetition; an exception that it raises ends the piece, and keeps its results so far.
        placed: as for `run_task`.
    """
    global _has_worked
    is_warm, _has_worked = _has_worked, True
    began = time.perf_counter()
    results: list[PointResult] = []
    try:
        for task in piece.tasks:
            check()
            try:
                figures = run_task(scenario, task, placed)
            except QsctlError as error:
                return PieceAnswer(problem=f"{task.point}: {error.message}")
            results.append(PointResult(task.point, task.replication, task.seed, tuple(figures)))
    except BaseException:
        if piece.kept is not None and results:
            _keep(piece.kept, results)
        raise
    seconds = time.perf_counter() - began
    if piece.kept is None:
        content = msgspec.msgpack.encode([result.figures for result in results])
        return PieceAnswer(seconds, is_warm, content)
    try:
        return PieceAnswer(seconds, is_warm, _keep(piece.kept, results))
    except OSError as error:
        return PieceAnswer(seconds, is_warm, error_number=error.errno or 0, problem=error.strerror or str(error))


def _keep(place: PartPlace, results: Sequence[PointResult]) -> bytes:
    """Write results as a part; return the part instead if this process has no access to the folder."""
    content = encode_part(results, place.identity)
    if not place.is_seen():
        return content
    store_part(location(place.folder), content)
    return b""


def ended(piece: TaskPiece, answer: PieceAnswer) -> DonePiece:
    """Return a completed piece, and write its part if the worker could not.

    Raises:
        InvalidInput: a point cannot be simulated, or the folder cannot be written.
    """
    from qsctl.errors import InvalidInput

    folder = None if piece.kept is None else location(piece.kept.folder)
    if answer.error_number and folder is not None:
        with written(folder):
            raise OSError(answer.error_number, os.strerror(answer.error_number))
    if answer.problem:
        raise InvalidInput(answer.problem)
    results: tuple[PointResult, ...] = ()
    if folder is None:
        figures = msgspec.msgpack.decode(answer.content, type=list[tuple[Figures, ...]])
        results = tuple(
            PointResult(task.point, task.replication, task.seed, each)
            for task, each in zip(piece.tasks, figures, strict=True)
        )
    elif answer.content:
        with written(folder):
            store_part(folder, answer.content)
    return DonePiece(piece, results, answer.seconds, answer.is_warm)


class _Repetitions(msgspec.Struct):
    """Consecutive tasks of one point."""

    values: tuple[tuple[str, str], ...]
    seed: int
    numbers: list[int]


class _Written(msgspec.Struct):
    """A piece in its text form, for a worker on another machine."""

    points: list[_Repetitions]
    kept: PartPlace | None = None


def piece_text(piece: TaskPiece) -> str:
    """Serialize a piece to one line of text."""
    points = [
        _Repetitions(point.values, seed, [task.replication for task in tasks])
        for (point, seed), tasks in groupby(piece.tasks, lambda task: (task.point, task.seed))
    ]
    return msgspec.json.encode(_Written(points, piece.kept)).decode()


def piece_of(text: str) -> TaskPiece:
    """Parse a text of `piece_text`."""
    read = msgspec.json.decode(text, type=_Written)
    return TaskPiece(
        tuple(Task(Point(each.values), number, each.seed) for each in read.points for number in each.numbers),
        read.kept,
    )
