"""Processes of `qsctl` that are forked from one that has imported it, instead of interpreters that import it anew.

Hundreds of tests start commands and services, and most of what each start computes is imports. Here a server, one for
each process of tests and each environment, imports the program once; for each start it forks a process that becomes
what `python -m MODULE` is: its arguments, environment, working directory, descriptors, standard streams, `__main__`,
session and interpreter's end. The process is a child of the test's process, as every other one that a test starts.

What always holds: the server has one thread, no domain of DDS and no file of a service when it forks. It ends with the
test's process, however that ends.

Decides: which starts are forked (`ForkServers.find`). One that is about the start itself asks `tests.processes` for a
fresh interpreter. What modules read of the environment when they are imported is as in a fresh interpreter, since a
server forks for one environment only, but for variables that are read when a command runs (`READ_LATE`).
`QSCTL_TEST_REAL_STARTS=1 pytest …` starts everything as a fresh interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import importlib.util
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

READ_LATE = ("QSCTL_", "COLUMNS", "LINES", "NDDSHOME", "NDDS_QOS_PROFILES", "PYTEST_")
"""How names of variables begin that nothing reads while it is imported; a server looks that this is so."""

STARTS_BEFORE_SERVER = 2
"""Fresh interpreters of an environment before it gets a server: most environments are one test's own."""

OPTIONS = frozenset({"stdin", "stdout", "stderr", "cwd", "env", "pass_fds", "text", "encoding", "errors", "bufsize"})
"""Options of a process that a forked one has, too."""

PACKAGES = ("core", "config", "storage", "transport", "client", "service", "dumps", "profiles", "cli")
NOT_IMPORTED = frozenset(
    {"qsctl.service.recording._recorder", "qsctl.cli.top.recorded", "qsctl.cli.simulation.results.figures"}
)
"""What imports libraries that begin threads when they are imported."""

LIBRARIES = ("pydantic", "rich.console", "rich.table", "typer._adapters", "multiprocessing.connection")
"""Modules that most commands import when they run, where the installed version of the library has them."""

SERVICE = Path(__file__).parents[1] / "fixtures" / "scenarios" / "cluster.xml"
"""Any service, whose configuration is read before the first fork."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_FIRST_FREE = 512
"""Descriptors from here on are the server's; a process's own are below."""

_START_S = 180.0


class ForkServer:
    """The test's end of a server.

    Args:
        start: starts the server's process, given its command and options of `subprocess.Popen`.
        environment: the environment that it forks for.
        packages: those of `qsctl` that it imports; without any it imports nothing.
    """

    def __init__(
        self, start: Callable[..., subprocess.Popen[Any]], environment: Mapping[str, str], packages: Sequence[str]
    ) -> None:
        self._control, other = socket.socketpair()
        self._control.settimeout(_START_S)
        self._turn = threading.Lock()
        with other:
            self.process = start(
                [sys.executable, os.fspath(Path(__file__)), str(other.fileno()), *packages],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment, pass_fds=[other.fileno()],
            )  # fmt: skip

    def fork(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        descriptors: Mapping[int, int],
    ) -> int:
        """Fork a process; return its number once it is a child of this process.

        Args:
            command: `python -m MODULE` and its arguments.
            environment: its environment.
            directory: its working directory.
            descriptors: those of this process that it inherits, by their numbers there.

        Raises:
            ChildProcessError: the server or the process ended first.
        """
        request = json.dumps([command, dict(environment), directory, os.getpid(), list(descriptors)]).encode()
        told, tell = os.pipe()
        try:
            with self._turn, _Subreaper():
                message = len(request).to_bytes(8, "little")
                socket.send_fds(self._control, [message], [tell, *descriptors.values()])
                self._control.sendall(request)
                os.close(tell)
                tell = -1
                number = os.read(told, 32)
        except OSError as error:
            raise ChildProcessError(f"the server of forked processes: {error}") from error
        finally:
            for descriptor in (told, tell):
                if descriptor >= 0:
                    os.close(descriptor)
        if not number:
            raise ChildProcessError(f"no process was forked for {' '.join(command)}; its error is above")
        return int(number)

    def close(self) -> None:
        """End the server; what it has forked stays."""
        self._control.close()
        self.process.wait(_START_S)


class _Subreaper:
    """While it lasts, a process whose parent ends becomes a child of this process (prctl(2), Linux).

    A server's child forks the process and ends: that is how the process becomes the test's, which can wait for it.
    """

    def __enter__(self) -> None:
        self._set(1)

    def __exit__(self, *_: object) -> None:
        self._set(0)

    def _set(self, value: int) -> None:
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class ForkedProcess(subprocess.Popen[Any]):
    """A process that a server forked; everything but its start is that of any other process."""

    def __init__(self, server: ForkServer, command: Sequence[str], **options: Any) -> None:
        self._server = server
        super().__init__(command, **options)

    def _execute_child(self, *arguments: Any) -> None:
        """Fork the process, where the class of all processes would fork and execute a program."""
        given = dict(zip(_ARGUMENTS, arguments, strict=False))
        ends = (given["p2cread"], given["c2pwrite"], given["errwrite"])
        descriptors = {at: end if end >= 0 else at for at, end in enumerate(ends)}
        descriptors |= {each: each for each in given["pass_fds"]}
        try:
            self.pid = self._server.fork(
                given["args"],
                os.environ if given["env"] is None else given["env"],
                os.path.abspath(os.getcwd() if given["cwd"] is None else given["cwd"]),
                descriptors,
            )
            self._child_created = True
        finally:
            self._close_pipe_fds(  # type: ignore[attr-defined]
                *(given[each] for each in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite"))
            )


_METHOD = subprocess.Popen._execute_child.__code__  # type: ignore[attr-defined]
_ARGUMENTS = _METHOD.co_varnames[1 : _METHOD.co_argcount]
"""The arguments of the private method, which the class calls by position."""

_IS_SUPPORTED = (
    sys.platform == "linux"
    and {"args", "env", "cwd", "pass_fds", "p2cread", "c2pwrite", "errwrite"} <= set(_ARGUMENTS)
    and hasattr(subprocess.Popen, "_close_pipe_fds")
    and os.environ.get("QSCTL_TEST_REAL_STARTS", "") != "1"
)
"""Elsewhere every start is that of a fresh interpreter: tests are slower, and no less right."""


class _Setting(NamedTuple):
    """What a process inherits by itself: a server forks for one of them."""

    variables: frozenset[tuple[str, str]]
    ignored_signals: frozenset[int]
    blocked_signals: frozenset[int]


class ForkServers:
    """The servers of this process, by environment.

    Args:
        start: starts a server's process.
        packages: those of `qsctl` that servers import.
    """

    def __init__(self, start: Callable[..., subprocess.Popen[Any]], packages: Sequence[str] = PACKAGES) -> None:
        self._start = start
        self._packages = packages
        self._owner: int | None = None  # the first process to want one: a process may be forked before that
        self._seen: Counter[_Setting] = Counter()
        self._servers: dict[_Setting, ForkServer] = {}
        self._turn = threading.Lock()

    def find(self, command: Sequence[str], options: Mapping[str, Any]) -> ForkServer | None:
        """Return the server that forks this command, or None: it is to be a fresh interpreter.

        Forked are the modules of `qsctl` and of these tests that an interpreter without options runs.
        """
        if self._owner is None:
            self._owner = os.getpid()
        if not _IS_SUPPORTED or self._owner != os.getpid() or not options.keys() <= OPTIONS:
            return None
        if command[:2] != [sys.executable, "-m"] or command[2].partition(".")[0] not in ("qsctl", "tests"):
            return None
        environment = os.environ if options.get("env") is None else options["env"]
        setting = _Setting(
            frozenset((name, value) for name, value in environment.items() if not name.startswith(READ_LATE)),
            frozenset(each for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN),
            frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        )
        with self._turn:
            self._seen[setting] += 1
            if setting not in self._servers:
                if self._seen[setting] <= STARTS_BEFORE_SERVER:
                    return None
                self._servers[setting] = ForkServer(self._start, dict(setting.variables), self._packages)
            return self._servers[setting]

    def close(self) -> None:
        """End all servers."""
        if self._owner == os.getpid():
            for server in self._servers.values():
                server.close()
            self._servers.clear()


@contextlib.contextmanager
def _noted_variables() -> Iterator[set[str]]:
    """Within the block, note the names of variables that Python code reads one by one."""
    kind: Any = type(os.environ)
    read, usual = set[str](), kind.__getitem__

    def note(environment: Any, name: str) -> str:
        read.add(name)
        value: str = usual(environment, name)
        return value

    kind.__getitem__ = note
    try:
        yield read
    finally:
        kind.__getitem__ = usual


def _import(packages: Sequence[str]) -> None:
    """Import what commands and services do, and prepare what they share.

    Args:
        packages: those of `qsctl`.

    Raises:
        RuntimeError: a module begins threads when it is imported, which would be missing in what is forked, or reads a
            variable then that what is forked may have otherwise.
    """
    with _noted_variables() as read:
        for name in packages:
            package = importlib.import_module(f"qsctl.{name}")
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if module.name not in NOT_IMPORTED:
                    importlib.import_module(module.name)
        for name in LIBRARIES:
            if importlib.util.find_spec(name) is not None:
                importlib.import_module(name)
        _prepare()
    if early := sorted(name for name in read if name.startswith(READ_LATE)):
        raise RuntimeError(f"a module reads {', '.join(early)} when it is imported: READ_LATE of {__file__} is wrong")
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError(f"a module begins threads when it is imported: name it in NOT_IMPORTED of {__file__}")


def _prepare() -> None:
    """Make the descriptions of types and settings that each service and client needs, which take it 0.3 s."""
    from cyclonedds.idl import IdlStruct

    from qsctl.config.load import load_configuration

    for each in IdlStruct.__subclasses__():
        if each.__module__.startswith("qsctl."):
            each.__idl__.fill_type_data()
    load_configuration(
        [SERVICE], configuration_name=None, variables={}, environment={}, working_directory=SERVICE.parent
    )


def _serve(control: socket.socket) -> str:
    """Fork processes; return, in each of them, the module that it is to run. In the server, end with the test."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 8, 64)
        if not message:
            raise SystemExit
        rest = int.from_bytes(message, "little")
        request = bytearray()
        while len(request) < rest:
            request += control.recv(rest - len(request))
        between = os.fork()
        if between == 0:
            if os.fork():
                os._exit(0)
            return _become(json.loads(request), descriptors)
        for each in descriptors:
            os.close(each)
        os.waitpid(between, 0)


def _become(request: Sequence[Any], received: Sequence[int]) -> str:
    """Make this process what `python -m MODULE` is before its first line; return the module."""
    command, environment, directory, parent, numbers = request
    os.setsid()
    deadline = time.monotonic() + _START_S
    while os.getppid() != parent:
        if time.monotonic() > deadline:
            os._exit(1)
        time.sleep(0.0002)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)

    tell, *inherited = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for each in received)
    os.closerange(0, _FIRST_FREE)
    for number, descriptor in zip(numbers, inherited, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.write(tell, str(os.getpid()).encode())
    os.close(tell)

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    importlib.invalidate_caches()
    sys.path.insert(0, os.getcwd())
    sys.orig_argv[:] = command
    sys.argv[:] = command[1:2] + command[3:]
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.stdin)
    sys.stdout = sys.__stdout__ = _stream(1, "w", sys.stdout)
    sys.stderr = sys.__stderr__ = _stream(2, "w", sys.stderr)
    module: str = command[2]
    return module


def _stream(descriptor: int, mode: str, like: Any) -> io.TextIOWrapper:
    """Return a standard stream as the interpreter makes it at its start; encoding and errors are those of `like`."""
    is_unbuffered = mode == "w" and like.write_through
    binary: Any = open(descriptor, f"{mode}b", buffering=0 if is_unbuffered else -1, closefd=False)  # noqa: SIM115
    (binary if is_unbuffered else binary.raw).name = like.name
    is_by_line = not like.write_through and (descriptor == 2 or binary.isatty())
    stream = io.TextIOWrapper(binary, like.encoding, like.errors, "\n", is_by_line, like.write_through)
    stream.mode = mode  # type: ignore[misc]
    return stream


if __name__ == "__main__":
    # Where modules are found is the process's affair, as of any that `python -m` starts: this file's folder is not.
    del sys.path[0]
    if sys.argv[2:]:
        _import(sys.argv[2:])
    gc.collect()
    gc.freeze()  # no collection copies pages only to mark what is shared
    _control = socket.socket(fileno=fcntl.fcntl(int(sys.argv[1]), fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE))
    os.close(int(sys.argv[1]))
    _module = _serve(_control)
    # Only what is forked arrives here. The interpreter ends it as it ends every other.
    _control.close()
    runpy._run_module_as_main(_module)  # type: ignore[attr-defined]
