"""Calls of a command's function by a program, with the program's functions for progress and cancellation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from qsctl.cli.caller import ProgramCaller, called_by
from qsctl.cli.output.results import Result
from qsctl.programs.command_result import CommandResult

if TYPE_CHECKING:
    from qsctl.sim.replication import ReplicationProgress

ContentT = TypeVar("ContentT", bound=Result)


@dataclass(frozen=True, slots=True)
class WorkDone:
    """Progress of a call: `done` of `total` work units, the elapsed seconds, and the estimated remaining seconds.

    `remaining_s` is None while `done` is 0.
    """

    done: float
    total: float
    elapsed_s: float
    remaining_s: float | None


class SettableEvent(Protocol):
    """An event with the interface of `threading.Event`."""

    def is_set(self) -> bool:
        """Return whether the event is set."""


ProgressCallback: TypeAlias = Callable[[WorkDone], None]
ShouldStop: TypeAlias = Callable[[], bool] | SettableEvent


def called(
    command: Callable[[], ContentT],
    *,
    progress: ProgressCallback | None = None,
    should_stop: ShouldStop | None = None,
    on_replication: Callable[[ReplicationProgress], None] | None = None,
) -> CommandResult[ContentT]:
    """Call a command's function for a program, and collect its notes.

    Args:
        command: calls the function.
        progress: called in the calling thread during the work; an exception that it raises ends the work.
        should_stop: an event or a function that requests the end; checked whenever progress is reported.
        on_replication: called before `progress` while a scenario is simulated.

    Raises:
        QsctlError: the command failed; `Interrupted` if the program stopped it before it had a result.
    """
    notes: list[str] = []
    begun_s = time.monotonic()

    def report(done: float, total: float) -> None:
        if progress is None:
            return
        elapsed_s = time.monotonic() - begun_s
        remaining_s = elapsed_s * (total - done) / done if done > 0 else None
        progress(WorkDone(done, total, elapsed_s, remaining_s))

    caller = ProgramCaller(notes.append, report, _asked(should_stop))
    if on_replication is not None:
        caller = replace(caller, on_replication=on_replication)
    with called_by(caller):
        content = command()
    return CommandResult(content, notes)


def _asked(should_stop: ShouldStop | None) -> Callable[[], bool]:
    if should_stop is None:
        return lambda: False
    return should_stop if callable(should_stop) else should_stop.is_set


def assignments(values: Mapping[str, object] | None) -> list[str]:
    """Return a mapping as `NAME=VALUE` texts, the values of `--set` and `--var`."""
    return [f"{name}={value}" for name, value in (values or {}).items()]
