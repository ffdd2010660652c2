"""The messages between the coordinator and a session's process, through a pipe of the operating system.

Decides: the messages. Commands are sent with an identity of the coordinator's own, since peers may send none; replies
are returned as the engine made them.
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
    """To a session: answer this command."""

    request: CommandRequest


class ReportTo(NamedTuple):
    """To a session: report to the recorder at this address what happens; empty: no more."""

    address: str


class Obey(NamedTuple):
    """To a session: these limits are in force from now on."""

    limits: ServiceLimits


class StopSession(NamedTuple):
    """To a session: leave in order."""

    cause: str


class SessionStarted(NamedTuple):
    """From a session: its queues can be reached."""


class SessionAnswers(NamedTuple):
    """From a session: replies, in order; the last to a request is not intermediate."""

    replies: tuple[CommandReply, ...]


class SessionCounted(NamedTuple):
    """From a session: its figures for Prometheus, since the start."""

    figures: ServiceFigures


class SessionLeft(NamedTuple):
    """From a session: it has left in order; with the number of samples that had no answer."""

    unanswered_count: int


class SessionFailed(NamedTuple):
    """From a session: it has failed, with the error."""

    kind: type[QsctlError]
    message: str
    remedy: str

    def error(self) -> QsctlError:
        """Return the error again, for the coordinator to raise."""
        return self.kind(self.message, remedy=self.remedy)


class PipedCommands:
    """The commands of a session's process: they come from the coordinator, not from DDS.

    A `CommandSource` of the transport. A coordinator that is gone is a reason to stop: no command would come any more.
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
        """Receive what comes, in a thread of its own, from now on."""
        threading.Thread(target=self._listen, args=(wake, stop, report_to, obey), name="commands", daemon=True).start()

    def poll(self, *, one: bool = False) -> list[CommandRequest]:
        """Return the commands that have come, or one of them."""
        return [self._inbox.popleft() for _ in range(min(len(self._inbox), 1) if one else len(self._inbox))]

    @property
    def is_waiting(self) -> bool:
        """Return whether commands have come and are not given yet."""
        return bool(self._inbox)

    def receive(self, _ready: Collection[object]) -> None:
        """Do nothing: `listen` puts commands in line."""

    def reply(self, message: CommandReply, _domain_ids: Mapping[str, int]) -> None:
        """Answer a command, with this turn's flush."""
        self._replies.append(message)

    def flush(self) -> bool:
        """Send the turn's replies."""
        if self._replies:
            self.report(SessionAnswers(tuple(self._replies)))
            self._replies.clear()
        return True

    def report(self, message: SessionStarted | SessionAnswers | SessionCounted | SessionLeft | SessionFailed) -> None:
        """Send a message; where the coordinator is gone, `listen` has the service stopped."""
        with contextlib.suppress(OSError):
            self._link.send(message)

    def close(self) -> None:
        """Leave the pipe open for the last words."""

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
