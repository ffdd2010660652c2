"""The program that calls a command's function instead of the command line: `qsctl.programs`.

Decides how a command interacts with it. A program is never asked for confirmation; notes, progress and Ctrl-C become
three functions that it provides. The command's work is the same in both cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qsctl.sim.replication import ReplicationProgress


def _nothing(*_of: object) -> None: ...


@dataclass(frozen=True, slots=True)
class ProgramCaller:
    """The functions that a calling program provides in place of a terminal.

    `on_note` is called with the text of each note, `on_progress` with the amount done and the total, in the unit of the
    work: replications, candidates, runs. Where a scenario is simulated, `on_replication` is called before
    `on_progress`. `should_stop` returns whether the program requests the end of the work.
    """

    on_note: Callable[[str], None] = _nothing
    on_progress: Callable[[float, float], None] = _nothing
    should_stop: Callable[[], bool] = lambda: False
    on_replication: Callable[[ReplicationProgress], None] = _nothing


_CALLER: ContextVar[ProgramCaller | None] = ContextVar("caller", default=None)


def program_caller() -> ProgramCaller | None:
    """Return the functions of the calling program; None if the command was called by the command line."""
    return _CALLER.get()


@contextmanager
def called_by(caller: ProgramCaller) -> Iterator[None]:
    """Let the commands that this thread calls within the block use a calling program's functions."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)


@contextmanager
def notes_go_to(receive: Callable[[str], None] = _nothing) -> Iterator[None]:
    """Pass the notes of this block, in this thread, to a function, for example to show them on a page.

    `contextlib.redirect_stderr` would replace the stream of all threads, including those that report an error; where
    two blocks overlap, it would leave the stream of one of them behind for good.
    """
    with called_by(replace(program_caller() or ProgramCaller(), on_note=receive)):
        yield
