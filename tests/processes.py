"""Processes that tests start: each ends with what started it, however that ends, and takes its own children along.

A process leads a group of its own, which is killed as a whole at the end of the fixture or call that started it. Where
the test run itself is killed, or the thread that started the process ends, the system kills the process (Linux:
PR_SET_PDEATHSIG), and what it has started notices that the pipe to it is closed.

A process of `qsctl` or of these tests is forked from one that has imported it (`fork_server`), unless a test is about
the start itself: it asks for a fresh interpreter.

Each can be interrupted, also where the test run cannot: a shell without job control ignores SIGINT for what it runs in
the background, and what is ignored would be inherited.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.fork_server import ForkedProcess, ForkServers
from tests.patience import PATIENCE_S

_PR_SET_PDEATHSIG = 1
_LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None


def start(
    command: Sequence[str | os.PathLike[str]], *, is_fresh: bool = False, **options: Any
) -> subprocess.Popen[Any]:
    """Start a process; give it to `end` when its work is over, or use `running`.

    Args:
        command: the program and its arguments.
        is_fresh: whether the program is loaded anew, where it could be forked.
        options: those of `subprocess.Popen`.
    """
    words = [*map(os.fspath, command)]
    server = None if is_fresh else _SERVERS.find(words, options)
    return _start_fresh(words, **options) if server is None else ForkedProcess(server, words, **options)


def _start_fresh(words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    return subprocess.Popen(
        words,
        start_new_session=True,
        preexec_fn=functools.partial(_prepare, os.getpid()),  # noqa: PLW1509 - it does nothing that needs a lock
        **options,
    )


def _prepare(parent: int) -> None:
    """In the child, before its program: nothing but calls of the system, for other threads may hold locks."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _LIBRARY is None:
        return
    _LIBRARY.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _start_server(words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a server of forked processes, which ends when the test's end of its socket is closed.

    It is not killed by the system as other processes are: that is done when the thread that started it ends, which is
    any thread that was the first to want it.
    """
    default = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(words, start_new_session=True, preexec_fn=default, **options)  # noqa: PLW1509 - as above


_SERVERS = ForkServers(_start_server)
atexit.register(_SERVERS.close)


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a process and what it has started, wait for it, close its pipes. A second call does nothing."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@contextlib.contextmanager
def running(command: Sequence[str | os.PathLike[str]], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process for the time of a block."""
    process = start(command, **options)
    try:
        yield process
    finally:
        end(process)


def run(
    command: Sequence[str | os.PathLike[str]], *, input: str | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end with a text as its input, its output as text; `check=True` raises where it fails.

    Raises:
        subprocess.TimeoutExpired: it has not ended after `PATIENCE_S`; nothing of it is left.
        subprocess.CalledProcessError: it failed, and `check` is set.
    """
    stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
    options = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    check = options.pop("check", False)
    with running(command, text=True, **options) as process:
        out, error = process.communicate(input, timeout=PATIENCE_S)
    done = subprocess.CompletedProcess(process.args, process.returncode, out, error)
    if check:
        done.check_returncode()
    return done


def is_alive(pid: int) -> bool:
    """Whether it runs; a zombie, which its parent has not waited for, does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" not in status.read_text()
