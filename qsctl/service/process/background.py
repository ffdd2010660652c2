"""A service in the background, as a daemon process or as a unit of systemd [QS 4.2 and 4.3].

Decides: how a start is reported to the starting process. The daemon reports its start or its error through a pipe, so
that a script gets the same exit status as in the foreground. No DDS entity exists before the fork.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from qsctl.errors import ExitStatus, InvalidInput, QsctlError

_STARTED: Final = b"started"

UNIT: Final = """\
[Unit]
Description=Queuing service ({description})
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
WatchdogSec=30
# A backlog of millions of samples is read before the service is ready.
TimeoutStartSec=15min
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory={directory}
KillSignal=SIGTERM
TimeoutStopSec=30
Restart=on-failure
RestartPreventExitStatus=1 2 7 9

# Only what the service needs. Its files are in the working directory; name other directories in ReadWritePaths.
User={user}
UMask=0077
ReadWritePaths={directory}
ProtectSystem=strict
ProtectHome={home}
PrivateTmp=true
PrivateDevices=true
ProtectClock=true
ProtectControlGroups=true
ProtectHostname=true
ProtectKernelLogs=true
ProtectKernelModules=true
ProtectKernelTunables=true
ProtectProc=invisible
NoNewPrivileges=true
CapabilityBoundingSet=
RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
RemoveIPC=true
LockPersonality=true
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""


_HOMES: Final = (Path("/home"), Path("/root"), Path("/run/user"))


class _Failure(msgspec.Struct):
    message: str
    remedy: str
    exit_status: int


class StartFailed(QsctlError):
    """A daemon that failed to start, with the daemon's own message and exit status."""

    def __init__(self, message: str, *, remedy: str, exit_status: ExitStatus) -> None:
        super().__init__(message, remedy=remedy)
        self.exit_status = exit_status


def in_background(run: Callable[[Callable[[], None]], object]) -> int:
    """Run a function in a daemon process; return the process id once it reports that it has started.

    Args:
        run: called in the daemon with a function to call when it has started; the daemon ends when it returns.

    Raises:
        StartFailed: the daemon ended before it reported its start.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        # Forked twice, so that the daemon is not a session leader and never gets a terminal.
        if os.fork():
            os._exit(0)
        _be_daemon(run, writing)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as stream:
        report = stream.read()
    if report.startswith(_STARTED):
        return int(report.removeprefix(_STARTED))
    if not report:
        raise StartFailed("the daemon ended before it had started", remedy="", exit_status=ExitStatus.NO)
    failure = msgspec.msgpack.decode(report, type=_Failure)
    raise StartFailed(failure.message, remedy=failure.remedy, exit_status=ExitStatus(failure.exit_status))


def _be_daemon(run: Callable[[Callable[[], None]], object], writing: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    empty = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(empty, descriptor)

    def started() -> None:
        os.write(writing, _STARTED + str(os.getpid()).encode())
        os.close(writing)

    status = 0
    try:
        run(started)
    except QsctlError as error:
        status = int(error.exit_status)
        with contextlib.suppress(OSError):
            os.write(writing, msgspec.msgpack.encode(_Failure(error.message, error.remedy, status)))
    except BaseException:
        status = 70
        raise
    finally:
        os._exit(status)


def systemd_unit(arguments: Sequence[str]) -> str:
    """Return a unit file that runs `qsctl` with these arguments in the foreground, with least privileges.

    The user is the current one, or `qsctl` where that is root. Home directories are hidden from the service unless it
    or its files are in one.
    """
    kept = [each for each in arguments if each not in ("--print-unit", "--daemon", "-daemon")]
    command = [str(Path(sys.executable)), "-m", "qsctl", *kept]
    description = next((each for each in kept if each.endswith(".xml")), "qsctl")
    places = [Path.cwd(), Path(sys.executable), Path(sys.prefix), Path(__file__)]
    needs_home = any(path.is_relative_to(home) for path in places for home in _HOMES)
    return UNIT.format(
        description=description,
        command=shlex.join(command),
        directory=Path.cwd(),
        user=getpass.getuser() if os.getuid() else "qsctl",
        home="read-only" if needs_home else "true",
    )


@contextmanager
def written_pid(path: Path | None) -> Iterator[None]:
    """Keep the process id in a file during the context.

    Raises:
        InvalidInput: the file cannot be written.
    """
    if path is None:
        yield
        return
    try:
        path.write_text(f"{os.getpid()}\n", encoding="ascii")
    except OSError as error:
        raise InvalidInput(
            f"the file of the process id {path} cannot be written: {error.strerror}",
            remedy="Name another with --pid-file.",
        ) from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
