"""The messages between the coordinator and a session's process, through a pipe of the operating system.

Decides: the messages. Commands are sent with an identity made by the coordinator, since peers may omit it; replies are
returned as the engine made them.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from multiprocessing.connection import Connection
from typing import NamedTuple

from qsctl.config.budgets import ServiceLimits
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.errors import QsctlError
from qsctl.service.process.metrics import ServiceFigures


class Ask(NamedTuple):
    """Message to a session: execute this command."""

    request: CommandRequest


class ReportTo(NamedTuple):
    """Message to a session: report events to the recorder at this address; empty: stop reporting."""

    address: str


class Obey(NamedTuple):
    """Message to a session: apply these limits from now on."""

    limits: ServiceLimits


class StopSession(NamedTuple):
    """Message to a session: stop in an orderly way."""

    cause: str


class SessionStarted(NamedTuple):
    """Message from a session: clients can reach its queues."""


class SessionAnswers(NamedTuple):
    """Message from a session: replies, in order; the last one to a request is not marked as intermediate."""

    replies: tuple[CommandReply, ...]


class SessionCounted(NamedTuple):
    """Message from a session: its figures for Prometheus, since the start."""

    figures: ServiceFigures


class SessionLeft(NamedTuple):
    """Message from a session: it has stopped, with the number of samples left unacknowledged."""

    unanswered_count: int


class SessionFailed(NamedTuple):
    """Message from a session: it has failed, with the error."""

    kind: type[QsctlError]
    message: str
    remedy: str

    def error(self) -> QsctlError:
        """Return the error, for the coordinator to raise."""
        return self.kind(self.message, remedy=self.remedy)


class PipedCommands:
    """The source of commands in a session's process: they arrive from the coordinator, not over DDS.

    It is a `CommandSource` of the transport. If the coordinator ends, the process stops, since no command could arrive.
    """

    def __init__(self, link: Connection) -> None:
        self._link = link
        self._inbox: deque[CommandRequest] = deque()
        self._replies: list[CommandReply] = []

    def listen(
        self,
        wake: Callable[[], None],
        stop: Callable[[str], None],
        report_to: Callable[[str], None],
        obey: Callable[[ServiceLimits], None],
    ) -> None:
        """Receive messages of the coordinator from now on, in a separate thread."""
        threading.Thread(target=self._listen, args=(wake, stop, report_to, obey), name="commands", daemon=True).start()

    def poll(self, *, one: bool = False) -> list[CommandRequest]:
        """Return the commands that have arrived, or only one of them."""
        return [self._inbox.popleft() for _ in range(min(len(self._inbox), 1) if one else len(self._inbox))]

    @property
    def is_waiting(self) -> bool:
        """Return whether commands have arrived that `poll` has not returned."""
        return bool(self._inbox)

    def receive(self, _ready: Collection[object]) -> None:
        """Do nothing: `listen` queues the commands."""

    def reply(self, message: CommandReply, _domain_ids: Mapping[str, int]) -> None:
        """Buffer the reply to a command until this turn's flush."""
        self._replies.append(message)

    def flush(self) -> bool:
        """Send the buffered replies."""
        if self._replies:
            self.report(SessionAnswers(tuple(self._replies)))
            self._replies.clear()
        return True

    def report(self, message: SessionStarted | SessionAnswers | SessionCounted | SessionLeft | SessionFailed) -> None:
        """Send a message to the coordinator; if that has ended, `listen` stops the service."""
        with contextlib.suppress(OSError):
            self._link.send(message)

    def close(self) -> None:
        """Keep the pipe open, for the final messages."""

    def _listen(
        self,
        wake: Callable[[], None],
        stop: Callable[[str], None],
        report_to: Callable[[str], None],
        obey: Callable[[ServiceLimits], None],
    ) -> None:
        while True:
            try:
                message: Ask | StopSession | ReportTo | Obey = self._link.recv()
            except (EOFError, OSError):
                stop("the coordinator is gone")
                return
            if isinstance(message, StopSession):
                stop(message.cause)
                return
            if isinstance(message, ReportTo):
                report_to(message.address)
                continue
            if isinstance(message, Obey):
                obey(message.limits)
                continue
            self._inbox.append(message.request)
            wake()
