"""Resources that a process releases however it ends: temporary folders, and processes that it started.

A block cleans up when it is left. A process that is interrupted may never leave its blocks: the interrupt arrives while
another thread starts Java, while the block itself cleans up, or in a callback of a library, where an exception is lost.
So what outlives a process is registered here before it exists, and `leave` releases all of it and ends the process
itself, without the interpreter's own end, in which libraries written in C have aborted after the work was done.

Invariants: a folder is registered before it is made; a process is started and registered in one step, which an
interrupt cannot divide; nothing is started once the process leaves.
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
"""Signals that ask a command to end."""

_STEP_S: Final = 10.0
"""The longest wait, as the process leaves, for a step of another thread."""


class _State:
    """The register of this process."""

    def __init__(self) -> None:
        self.held: dict[int, Release] = {}
        self.last_number = 0
        self.steps = threading.RLock()
        """Held during a step of any thread."""
        self.main_depth = 0
        """Nested steps of the main thread, in which an interrupt waits."""
        self.is_noted = False
        """An interrupt waits for the end of a step."""
        self.is_leaving = False
        self.leaves = False
        """The process ends by `leave`, whatever happens: `will_leave` was called."""


_state: Final = _State()


def hold(release: Release) -> Release:
    """Register what must happen before the process ends; return the function that does it now, once.

    Args:
        release: removes or ends something; it must be quick, and right also where the thing does not exist (yet).
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
    """Let an interrupt wait for the end of the block, and the end of the process for that of other threads' blocks.

    Raises:
        KeyboardInterrupt: at the end of the block: one arrived.
        SystemExit: the process leaves.
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
    """Note an interrupt, in a signal's handler; return whether a step of the main thread raises it at its end."""
    _state.is_noted = _state.main_depth > 0
    return _state.is_noted


class TemporaryFolder:
    """A new folder for temporary files, which goes with its block, with `remove`, or with the process.

    Args:
        prefix: how its name begins.

    Raises:
        OSError: the folder for temporary files cannot be written.
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
        """Return the folder."""
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it with all that it holds."""
        self.remove()


class TemporaryFile:
    """An empty new file beside the one whose place it takes, gone with its block unless it was renamed.

    Args:
        target: the file that it is to become.

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
        """Return the file's name."""
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what has not been renamed."""
        self.remove()


@contextmanager
def children_without_signals() -> Iterator[None]:
    """Start processes of `multiprocessing`, in one step, whose interrupts wait from the first instruction on.

    A terminal sends them to all processes of a command: until the child ignores them they would end it with a trace.
    """
    from multiprocessing import resource_tracker

    with one_step():
        resource_tracker.ensure_running()  # it lets the signals through again when it is started
        before = signal.pthread_sigmask(signal.SIG_BLOCK, set(INTERRUPTS))
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Have this process of `multiprocessing` ignore interrupts, which its parent obeys, and end when the parent does.

    Call it first: a process of a pool waits for work on a pipe of which it holds both ends.
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
    """Start a process that leads a group of its own; return it, and the function that kills the group and waits."""
    with one_step():
        process = start()

        def kill() -> None:
            if process.poll() is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

        return process, hold(kill)


def will_leave() -> None:
    """State that this process ends by `leave` or `leave_in_order`, without the interpreter's own end."""
    _state.leaves = True


def leaves() -> bool:
    """Return whether `will_leave` was called: what a library keeps then need not be given back to it."""
    return _state.leaves


@contextmanager
def whole_process() -> Iterator[None]:
    """Be all that a process does: it leaves in order at the end of the block, with status 0."""
    will_leave()
    yield
    leave_in_order(0)


def leave(status: int) -> None:
    """Release all that is held, write what is buffered, and end this process at once with an exit status."""
    _state.is_leaving = True
    is_alone = _state.steps.acquire(timeout=_STEP_S)
    with suppress(Exception):
        _kill_children()
    for number in sorted(_state.held, reverse=True):  # the last one first: a process, then the folder that it writes to
        with suppress(Exception):
            _state.held.pop(number)()
    if is_alone:
        _state.steps.release()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)


def leave_in_order(status: int) -> None:
    """Wait for threads, call what is registered for the interpreter's end, and leave."""
    import atexit

    threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter calls first at its own end
    atexit._run_exitfuncs()
    leave(status)


def _kill_children() -> None:
    """Kill the processes of `multiprocessing` that are still there."""
    if "multiprocessing.process" not in sys.modules:
        return
    from multiprocessing import active_children

    for child in active_children():
        child.kill()
    for child in active_children():
        child.join(_STEP_S)
