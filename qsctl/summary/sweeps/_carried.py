"""A scenario together with the content of its trace and recording files, for machines that lack these files.

On the other machine the files are written to a folder for temporary files, under names derived from their content, so
that processes of one host share them, and a changed file is written again. A recording given by a URI is not copied,
since every machine can access it there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from qsctl.errors import InvalidInput, NotFound
from qsctl.eventlog.location import location
from qsctl.eventlog.run_folder import RUN_FILE, read_run_info
from qsctl.own_folder import own_folder
from qsctl.sim.replay.recording import files_of_replay
from qsctl.sim.scenario.parts.replay import AnotherRecording, Replay
from qsctl.sim.scenario.parts.traffic import TraceArrivals
from qsctl.sim.scenario.scenario import Scenario

FOLDER_NAME: Final = "qsctl-traces"
MOST_BYTES: Final = 1 << 30
"""Largest total size of the files that are sent: Spark broadcasts at most 2 GiB, and each worker holds them in
memory.
"""

Named = TraceArrivals | Replay | AnotherRecording
"""The parts of a scenario that name a file or a folder."""
_Files = tuple[tuple[str, bytes], ...]
"""Files of a folder: names relative to it, and contents."""


@dataclasses.dataclass(frozen=True, slots=True)
class CarriedScenario:
    """A scenario with the content of the files that it or its variants name; without content for workers of this
    machine.
    """

    scenario: Scenario
    """The scenario with the paths of the sending machine."""
    _traces: Mapping[str, bytes]
    _recordings: Mapping[str, _Files]

    @classmethod
    def here(cls, scenario: Scenario) -> CarriedScenario:
        """Return the scenario for workers on this machine."""
        return cls(scenario, {}, {})

    @classmethod
    def elsewhere(cls, scenario: Scenario, variants: Iterable[Scenario] = ()) -> CarriedScenario:
        """Return the scenario for workers on any machine.

        Args:
            scenario: the scenario to simulate.
            variants: scenarios of its points, which together name every file of any point.

        Raises:
            NotFound: a trace or a recording does not exist.
            InvalidInput: the files are too large to be sent.
        """
        found: dict[str, Named] = {}

        def note(named: Named) -> Named:
            found[_name(named)] = named
            return named

        for each in (scenario, *variants):
            with_files(each, note)
        traces: dict[str, bytes] = {}
        recordings: dict[str, _Files] = {}
        for name, named in sorted(found.items()):
            if isinstance(named, TraceArrivals):
                traces[name] = _trace(name)
            elif "://" not in name:
                recordings[name] = _recording(name)
            sizes = [len(content) for files in recordings.values() for _, content in files]
            if sum(sizes) + sum(map(len, traces.values())) > MOST_BYTES:
                raise InvalidInput(
                    f"{name} and what else the scenario names has more than {MOST_BYTES >> 20} MiB: it is too large to "
                    "be sent to executors",
                    remedy="Put a recording where every executor reaches it and name it by its URI, as in "
                    "s3a://bucket/run, or simulate in processes of this machine, without --master.",
                )
        return cls(scenario, traces, recordings)

    def placed(self, scenario: Scenario) -> Scenario:
        """Return the scenario or a variant of it with the paths of this machine.

        Raises:
            Refused: the folder for these files does not belong to this user.
        """
        if not self._traces and not self._recordings:
            return scenario
        changed: Scenario = with_files(scenario, self._placed)
        return changed

    def _placed(self, named: Named) -> Named:
        if isinstance(named, TraceArrivals):
            content = self._traces.get(named.path)
            return named if content is None else TraceArrivals(file_of(content, Path(named.path).suffix))
        files = self._recordings.get(named.recording)
        return named if files is None else dataclasses.replace(named, recording=folder_of(files))


def _name(named: Named) -> str:
    return named.path if isinstance(named, TraceArrivals) else named.recording


def _trace(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotFound(
            f"{path}: there is no such trace file ({error.strerror})", remedy="Give a CSV or Parquet file."
        ) from None


def _recording(path: str) -> _Files:
    """Return the files of a recording that a replay reads; the replay verifies them."""
    folder = location(path)
    names = [RUN_FILE, *files_of_replay(read_run_info(folder))]
    try:
        return tuple((name, (folder / name).read_bytes()) for name in names)
    except OSError as error:
        raise NotFound(
            f"{path} lacks a file that a replay reads: {error.filename} ({error.strerror})",
            remedy="Restore it from a copy.",
        ) from None


def with_files(value: Any, change: Callable[[Named], Named]) -> Any:
    """Return a scenario, or a part of one, in which `change` was applied to each part that names a file or a folder."""
    if isinstance(value, Replay):
        value = dataclasses.replace(value, others=with_files(value.others, change)) if value.others else value
        return change(value)
    if isinstance(value, TraceArrivals | AnotherRecording):
        return change(value)
    if isinstance(value, tuple) and type(value) is tuple:
        made = tuple(with_files(each, change) for each in value)
        return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        changed = {name: new for name, old in held.items() if (new := with_files(old, change)) is not old}
        return dataclasses.replace(value, **changed) if changed else value
    return value


@cache
def file_of(content: bytes, suffix: str) -> str:
    """Return the path of a local file with this content; write it if it does not exist.

    Args:
        content: content of the file.
        suffix: suffix of its name, which determines its format.

    Raises:
        Refused: the folder for these files does not belong to this user.
    """
    file = own_folder(FOLDER_NAME) / f"{hashlib.blake2b(content, digest_size=16).hexdigest()}{suffix}"
    _write(file, content)
    return str(file)


@cache
def folder_of(files: _Files) -> str:
    """Return the path of a local folder with these files; write it if it does not exist.

    Args:
        files: their content, by their names below the folder.

    Raises:
        Refused: the folder for these folders does not belong to this user.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, content in files:
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    folder = own_folder(FOLDER_NAME) / digest.hexdigest()
    for name, content in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _write(folder / name, content)
    return str(folder)


def _write(file: Path, content: bytes) -> None:
    """Write a file atomically, unless it has this content already, since other processes may write it too."""
    if not file.is_file() or file.read_bytes() != content:
        hidden = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        hidden.write_bytes(content)
        hidden.replace(file)
