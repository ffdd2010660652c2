"""A service that a program starts as a child process.

It is a process and not a thread, since a daemon handles signals, has its own clock and garbage collector, and may be
killed by a test, none of which may affect the program. It ends with the program (`served_process`).
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import filelock

from qsctl.core.admin.command import GetData
from qsctl.errors import ExitStatus, NoAnswer, QsctlError, Refused, UsageError
from qsctl.own_folder import own_folder
from qsctl.resource import ResourceIdentifier, ResourceKind

if TYPE_CHECKING:
    from qsctl.client.connection import Connection

LITTLE_CONFIGURATION: Final = (
    'str://"<dds><queuing_service name="qsctl"><domain_participant name="DomainParticipant"><domain_id>0</domain_id>'
    '<shared_subscriber name="SharedSubscriber"><session_settings><session name="Session"/></session_settings>'
    "</shared_subscriber></domain_participant>"
    '</queuing_service></dds>"'
)
"""The default configuration of a started service: one shared subscriber without queues."""

_FREE_DOMAINS: Final = range(1, 101)
"""Domain ids whose ports are below the range from which the operating system assigns ports."""

_PORT_BASE: Final = 7400
_PORTS_OF_DOMAIN: Final = 250
_LOOK_S: Final = 0.2
_STOP_S: Final = 10.0
_KEPT_LINES: Final = 30


class ServiceNotStarted(QsctlError):
    """The child process ended before it was ready; the error has the child's message and exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.exit_status = ExitStatus(status) if status in tuple(ExitStatus) else ExitStatus.INTERNAL


@contextmanager
def free_domain() -> Iterator[int]:
    """Yield a domain id that no DDS participant of this machine uses, and reserve it against other programs.

    Raises:
        Refused: all domains are in use, or the folder of the locks does not belong to this user.
    """
    folder = own_folder("qsctl-domains")
    for domain_id in secrets.SystemRandom().sample(_FREE_DOMAINS, len(_FREE_DOMAINS)):
        lock = filelock.FileLock(folder / str(domain_id))
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            continue
        try:
            if _is_quiet(domain_id):
                yield domain_id
                return
        finally:
            lock.release()
    raise Refused(f"each of the {len(_FREE_DOMAINS)} domains is in use", remedy="Name one with domain=, or stop some.")


def _is_quiet(domain_id: int) -> bool:
    """Return whether no process of this machine has bound the discovery port of a domain [RTPS 9.6.1.1]."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", _PORT_BASE + _PORTS_OF_DOMAIN * domain_id))
        except OSError:
            return False
    return True


def first_domain(source: str, config_name: str | None, variables: Mapping[str, str], directory: Path) -> int:
    """Return the domain id of the first participant in a configuration.

    Raises:
        InvalidFile: the configuration is invalid; it lists every problem.
        UsageError: the configuration has no participant.
    """
    from qsctl.config.load import load_configuration

    loaded = load_configuration(
        [source],
        configuration_name=config_name,
        variables=variables,
        environment=os.environ,
        working_directory=directory,
    )
    participants = loaded.configuration.service.participants
    if not participants:
        raise UsageError("the configuration has no domain participant", remedy="Add a <domain_participant>.")
    return participants[0].domain_id


@contextmanager
def started_service(
    source: str, options: Sequence[str], domain_id: int, directory: Path, timeout_s: float
) -> Iterator[Connection]:
    """Start a service, yield a connection to it when it is ready, and stop it at the end.

    Args:
        source: the configuration, a file or a literal.
        options: further options of `qsctl serve`.
        domain_id: domain of administration.
        directory: working directory of the service.
        timeout_s: longest wait for the service's first reply, in seconds.

    Raises:
        ServiceNotStarted: the service ended; it has the service's output.
        NoAnswer: the service did not reply in time, and was stopped.
    """
    from qsctl.client.dds_connection import DdsConnection

    command = [sys.executable, "-m", "qsctl.programs._served_process", "serve", source]
    command += ["--remote-administration-domain-id", str(domain_id), *options]
    process = subprocess.Popen(
        command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    lines: deque[bytes] = deque(maxlen=_KEPT_LINES)
    reader = threading.Thread(target=_kept, args=(process, lines), daemon=True)
    reader.start()
    try:
        with closing(DdsConnection(domain_id, _LOOK_S)) as looking:
            _wait_until_it_answers(process, looking, reader, lines, timeout_s)
        with closing(DdsConnection(domain_id, timeout_s)) as connection:
            yield connection
    finally:
        _stop(process)
        reader.join(_STOP_S)


def _kept(process: subprocess.Popen[bytes], lines: deque[bytes]) -> None:
    assert process.stderr is not None
    with process.stderr:
        lines.extend(process.stderr)


def _wait_until_it_answers(
    process: subprocess.Popen[bytes],
    looking: Connection,
    reader: threading.Thread,
    lines: deque[bytes],
    timeout_s: float,
) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not looking.request(GetData(ResourceIdentifier().at(ResourceKind.DATA))):
        if (status := process.poll()) is not None:
            reader.join(_STOP_S)
            printed = b"".join(lines).decode(errors="replace").strip()
            raise ServiceNotStarted(printed or f"the service ended with status {status}", status)
        if time.monotonic() > deadline_s:
            raise NoAnswer(f"the service did not answer within {timeout_s:g} s", remedy="Give it more time: timeout=.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the child by closing its standard input, which it handles as SIGTERM; kill it if it does not end."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
