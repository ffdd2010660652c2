"""Workers of pytest-xdist that are forked from one process that has imported the tests, instead of importing them each.

To import the tests and what they use takes seconds of processor time, and far more where they were never compiled. Here
a server collects the tests that are asked for, and keeps their modules; each worker is forked from it and collects them
again, which is quick then. pytest-xdist starts the interpreters of its workers by a command of our choice, which is
`worker_launcher`.

What always holds: the server and its workers end with the process that started them, however that ends. The server ends
after its workers, so that their processor time is part of what a run took.

Decides: whether workers are forked (`IS_SUPPORTED`). Elsewhere each imports the tests itself: a run is slower, and no
less right.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

IS_SUPPORTED = sys.platform == "linux" and os.environ.get("QSCTL_TEST_REAL_STARTS", "") != "1"

_LAUNCHER = Path(__file__).parent / "worker_launcher.py"
_PR_SET_PDEATHSIG = 1
_END_S = 60.0


class WorkerServer:
    """The controller's end of a server.

    Args:
        start: starts the server's process, given its command and options of `subprocess.Popen`.
        arguments: those of the run.
        prepared: a module whose `prepare` the server calls before it forks workers, or nothing.
    """

    def __init__(
        self, start: Callable[..., subprocess.Popen[Any]], arguments: Sequence[str], prepared: str = ""
    ) -> None:
        self._folder = tempfile.mkdtemp()  # which no other user may enter
        address = os.path.join(self._folder, "server")
        self._control, other = socket.socketpair()
        with other, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen()
            descriptors = [listener.fileno(), other.fileno()]
            self.process = start(
                [sys.executable, "-u", os.fspath(Path(__file__)), *map(str, descriptors), prepared, *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=descriptors,
            )  # fmt: skip
        self.interpreter = shlex.join([sys.executable, "-I", "-S", os.fspath(_LAUNCHER), address])
        """The command line that stands for an interpreter: the server forks its processes."""

    def close(self) -> None:
        """Wait until all that was forked has ended, and end the server."""
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_S)
        shutil.rmtree(self._folder)


def _serve(listener: socket.socket, control: socket.socket, prepared: str, arguments: Sequence[str]) -> str | None:
    """Import the tests and fork processes; return, in each of them, its program, and None at the end of the server."""
    _import(arguments)
    if prepared:
        importlib.import_module(prepared).prepare()
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # no collection copies pages only to mark what is shared
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    waiting.register(control, select.POLLIN)
    while control.fileno() not in [descriptor for descriptor, _ in waiting.poll()]:
        connection = listener.accept()[0]
        if not os.fork():
            listener.close()
            control.close()
            return _become(connection)
        connection.close()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    return None


class _Unfinished:
    """The files whose import fails, or is skipped as a whole."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if not report.passed:
            self.files.add(os.fspath(collector.path))
        return report


def _import(arguments: Sequence[str]) -> None:
    """Import the tests; forget the unfinished ones, so that each worker finds the reason and reports it."""
    unfinished = _Unfinished()
    pytest.main([*arguments, "--numprocesses", "0", "--collect-only", "--quiet"], plugins=[unfinished])
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) in unfinished.files:
            del sys.modules[name]


def _become(connection: socket.socket) -> str:
    """Make this process what the launcher is, and leave the connection open to its end; return its program."""
    server = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    message, streams, _, _ = socket.recv_fds(connection, 8, 3)
    rest = int.from_bytes(message, "little")
    request = bytearray()
    while len(request) < rest:
        request += connection.recv(rest - len(request))
    if os.getppid() != server:
        os._exit(1)
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    arguments, environment, directory = json.loads(request)
    connection.detach()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.orig_argv[:] = [sys.executable, *arguments]
    sys.argv[:] = ["-c"]
    program: str = arguments[arguments.index("-c") + 1]
    return program


if __name__ == "__main__":
    sys.path[0] = ""  # as where a program is given by `-c`, and not this file's folder
    _program = _serve(*(socket.socket(fileno=int(each)) for each in sys.argv[1:3]), sys.argv[3], sys.argv[4:])
    if _program is not None:
        # The interpreter ends it as it ends every other.
        _main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(_program, vars(_main))
