"""The call of a command's function by a program: progress, cancellation and notes as the program's own functions."""

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
    """Progress of a call: `done` of `total` in the unit of the work, the time it took and the time expected to be left.

    `remaining_s` is None until something is done.
    """

    done: float
    total: float
    elapsed_s: float
    remaining_s: float | None


class SettableEvent(Protocol):
    """An event as `threading.Event` is one."""

    def is_set(self) -> bool:
        """Return whether it was set."""


ProgressCallback: TypeAlias = Callable[[WorkDone], None]
ShouldStop: TypeAlias = Callable[[], bool] | SettableEvent


def called(
    command: Callable[[], ContentT],
    *,
    progress: ProgressCallback | None = None,
    should_stop: ShouldStop | None = None,
    on_replication: Callable[[ReplicationProgress], None] | None = None,
) -> CommandResult[ContentT]:
    """Call a command's function for a program.

    Args:
        command: the call.
        progress: called in the calling thread as the work goes on; an exception of its own ends the work.
        should_stop: an event or a function; asked as often as progress is reported.
        on_replication: called before `progress` where a run of a scenario goes on.

    Raises:
        QsctlError: what the command refuses; `Interrupted` where the program stopped it and nothing is left to return.
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
    """Return a mapping as the options `--set` and `--var` are given."""
    return [f"{name}={value}" for name, value in (values or {}).items()]
