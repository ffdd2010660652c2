"""A scenario on its way to machines that do not have the files that it names: the traces travel with it.

On the other machine a trace is a file again, in a folder for temporary files, under the name of its content: processes
of one host share it, and a file that was changed there is written anew.
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from qsctl.errors import NotFound
from qsctl.own_folder import own_folder
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.traffic import TraceArrivals

FOLDER_NAME: Final = "qsctl-traces"


@dataclasses.dataclass(frozen=True, slots=True)
class CarriedScenario:
    """A scenario with the content of the traces that it names, by their paths; without, where workers see the files."""

    _scenario: Scenario
    _traces: Mapping[str, bytes]

    @classmethod
    def here(cls, scenario: Scenario) -> CarriedScenario:
        """Return the scenario for workers of this machine."""
        return cls(scenario, {})

    @classmethod
    def elsewhere(cls, scenario: Scenario) -> CarriedScenario:
        """Return the scenario for workers of any machine.

        Raises:
            NotFound: a trace does not exist.
        """
        paths: set[str] = set()

        def note(trace: TraceArrivals) -> TraceArrivals:
            paths.add(trace.path)
            return trace

        with_traces(scenario, note)
        traces = {}
        for path in sorted(paths):
            try:
                traces[path] = Path(path).read_bytes()
            except OSError as error:
                raise NotFound(
                    f"{path}: there is no such trace file ({error.strerror})", remedy="Give a CSV or Parquet file."
                ) from None
        return cls(scenario, traces)

    def scenario(self) -> Scenario:
        """Return the scenario with the paths of this machine."""
        if not self._traces:
            return self._scenario
        changed: Scenario = with_traces(
            self._scenario, lambda trace: TraceArrivals(file_of(self._traces[trace.path], Path(trace.path).suffix))
        )
        return changed


def with_traces(value: Any, change: Callable[[TraceArrivals], TraceArrivals]) -> Any:
    """Return a scenario, or a part of one, with each of its traces changed."""
    if isinstance(value, TraceArrivals):
        return change(value)
    if isinstance(value, tuple) and type(value) is tuple:
        made = tuple(with_traces(each, change) for each in value)
        return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        changed = {name: new for name, old in held.items() if (new := with_traces(old, change)) is not old}
        return dataclasses.replace(value, **changed) if changed else value
    return value


@cache
def file_of(content: bytes, suffix: str) -> str:
    """Return the path of a file of this machine with this content.

    Args:
        content: of the file.
        suffix: of its name, which names its format.

    Raises:
        Refused: the folder of these files is not this user's.
    """
    folder = own_folder(FOLDER_NAME)
    file = folder / f"{hashlib.blake2b(content, digest_size=16).hexdigest()}{suffix}"
    if not file.is_file() or file.read_bytes() != content:
        hidden = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        hidden.write_bytes(content)
        hidden.replace(file)
    return str(file)
