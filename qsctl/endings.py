"""Resources that a process must release however it ends: temporary folders and child processes.

A context manager cleans up when its block is left. An interrupted process may never leave its blocks: the interrupt
arrives while another thread starts Java, while the block itself cleans up, or in a callback of a library, which
swallows the exception. Therefore every resource that would survive the process is registered here before it exists.
`leave` releases all of them and ends the process with `os._exit`, since libraries written in C have aborted in the
interpreter's regular exit after the work was done.

Invariants: a folder is registered before it is made; an interrupt cannot separate the start of a process from its
registration; nothing is started once the process has begun to exit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import subprocess
    from types import TracebackType

Release: TypeAlias = Callable[[], None]

INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that request the end of a command."""

_STEP_S: Final = 10.0
"""Longest wait, when the process exits, for the end of another thread's step, in seconds."""


class _State:
    """The registered resources of this process, and the steps that an interrupt must not divide."""

    def __init__(self) -> None:
        self.held: dict[int, Release] = {}
        self.last_number = 0
        self.steps = threading.RLock()
        """Held during a step of any thread."""
        self.main_depth = 0
        """Depth of nested steps of the main thread, which defer interrupts."""
        self.is_noted = False
        """Whether an interrupt is deferred to the end of a step."""
        self.is_leaving = False
        self.leaves = False
        """Whether `will_leave` was called: the process ends by `leave` in every case."""


_state: Final = _State()


def hold(release: Release) -> Release:
    """Register a function that releases a resource at the end of the process; return a function that releases it now,
    once.

    Args:
        release: removes a file or ends a process; it must be quick, and correct also where the resource does not exist.
    """
    _state.last_number += 1
    number = _state.last_number
    _state.held[number] = release

    def released() -> None:
        if number in _state.held:
            release()
            _state.held.pop(number, None)

    return released


@contextmanager
def one_step() -> Iterator[None]:
    """Defer interrupts until the block ends, and the exit of the process until the blocks of other threads end.

    Raises:
        KeyboardInterrupt: an interrupt arrived during the block; raised at its end.
        SystemExit: the process has begun to exit.
    """
    is_main = threading.current_thread() is threading.main_thread()
    with _state.steps:
        if _state.is_leaving:
            raise SystemExit
        _state.main_depth += is_main
        try:
            yield
        finally:
            _state.main_depth -= is_main
    if is_main and not _state.main_depth and _state.is_noted:
        _state.is_noted = False
        raise KeyboardInterrupt


def waits_for_step() -> bool:
    """Defer an interrupt if the main thread is in a step; return whether it was deferred. For the signal handler."""
    _state.is_noted = _state.main_depth > 0
    return _state.is_noted


class TemporaryFolder:
    """A new temporary folder, removed at the end of its block, by `remove`, or at the end of the process.

    Args:
        prefix: beginning of the folder's name.

    Raises:
        OSError: the system's folder for temporary files cannot be written.
    """

    def __init__(self, prefix: str = "qsctl-") -> None:
        import secrets
        import shutil
        import tempfile

        self.path = Path(tempfile.gettempdir()) / f"{prefix}{secrets.token_hex(8)}"
        self.remove: Final = hold(lambda: shutil.rmtree(self.path, ignore_errors=True))
        try:
            self.path.mkdir(0o700)
        except OSError:
            self.remove()
            raise

    def __enter__(self) -> Path:
        """Return the path of the folder."""
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the folder with its content."""
        self.remove()


class TemporaryFile:
    """An empty new file in the folder of its target, removed at the end of its block unless it was renamed to the
    target.

    Args:
        target: the file that the new one will replace.

    Raises:
        OSError: the folder cannot be written.
    """

    def __init__(self, target: Path) -> None:
        import secrets

        self.path = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        self.remove: Final = hold(lambda: self.path.unlink(missing_ok=True))
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600))
        except OSError:
            self.remove()
            raise

    def __enter__(self) -> Path:
        """Return the path of the file."""
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the file if it was not renamed."""
        self.remove()


@contextmanager
def children_without_signals() -> Iterator[None]:
    """Start `multiprocessing` children in the block with interrupts blocked, until each child sets its own handling.

    A terminal sends the signals to every process of a command; without the block, a starting child would print a
    traceback.
    """
    from multiprocessing import resource_tracker

    with one_step():
        resource_tracker.ensure_running()  # its start would unblock the signals again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, set(INTERRUPTS))
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Make this `multiprocessing` child ignore interrupts, which its parent handles, and end when the parent ends.

    Call it first in the child: a worker of a pool holds both ends of the pipe on which it waits for work, so the pipe
    does not close at the parent's end.
    """
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def start_held(start: Callable[[], subprocess.Popen[Any]]) -> tuple[subprocess.Popen[Any], Release]:
    """Start a process that leads its own process group; return it, and a function that kills the group and waits."""
    with one_step():
        process = start()

        def kill() -> None:
            if process.poll() is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

        return process, hold(kill)


def will_leave() -> None:
    """Declare that this process ends by `leave` or `leave_in_order`, without the interpreter's regular exit."""
    _state.leaves = True


def leaves() -> bool:
    """Return whether `will_leave` was called; if so, memory of libraries need not be freed at the end."""
    return _state.leaves


@contextmanager
def whole_process() -> Iterator[None]:
    """Run the block as the whole work of this process, and end the process after it with status 0."""
    will_leave()
    yield
    leave_in_order(0)


def leave(status: int) -> None:
    """Release every registered resource, flush the standard streams, and end this process at once with a status."""
    _state.is_leaving = True
    is_alone = _state.steps.acquire(timeout=_STEP_S)
    with suppress(Exception):
        _kill_children()
    for number in sorted(_state.held, reverse=True):  # newest first: a process ends before its folder is removed
        with suppress(Exception):
            _state.held.pop(number)()
    if is_alone:
        _state.steps.release()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)


def leave_in_order(status: int) -> None:
    """Wait for threads, call the functions registered with `atexit`, and leave with an exit status."""
    import atexit

    threading._shutdown()  # type: ignore[attr-defined]  # the first step of the interpreter's regular exit
    atexit._run_exitfuncs()
    leave(status)


def _kill_children() -> None:
    """Kill the `multiprocessing` children that still run."""
    if "multiprocessing.process" not in sys.modules:
        return
    from multiprocessing import active_children

    for child in active_children():
        child.kill()
    for child in active_children():
        child.join(_STEP_S)
