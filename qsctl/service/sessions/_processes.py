"""The coordinator's handles to the sessions' processes: start, messages, end by their own process ids.

Decides: how the unexpected end of a process is detected (its pipe ends) and reported (`PipeEnded`).
"""

from __future__ import annotations

import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from qsctl.config.settings import ServiceConfiguration
from qsctl.endings import children_without_signals
from qsctl.errors import NoAnswer
from qsctl.service.run.open_service import DaemonOptions
from qsctl.service.sessions._link import (
    Ask,
    Obey,
    ReportTo,
    SessionAnswers,
    SessionCounted,
    SessionFailed,
    SessionLeft,
    SessionStarted,
    StopSession,
)
from qsctl.service.sessions.worker import WorkerSurroundings, session_process

TERMINATE_AFTER_S: Final = 15.0
"""Time after its deadline that a process is waited for which was asked to leave and does not."""


class PipeEnded(NamedTuple):
    """The notice that the pipe of a session's process has ended, so that no message follows."""


FromSession: TypeAlias = SessionStarted | SessionAnswers | SessionCounted | SessionLeft | SessionFailed | PipeEnded


class SessionProcess:
    """One process with its group of sessions.

    Args:
        name: the sessions' names, for people.
        configuration, options, around: passed to the process.
        report: called with each message of the process, in a separate thread.
    """

    def __init__(
        self,
        name: str,
        configuration: ServiceConfiguration,
        options: DaemonOptions,
        around: WorkerSurroundings,
        report: Callable[[SessionProcess, FromSession], None],
    ) -> None:
        self.name = name
        self.has_ended = False
        """Set by the reader of its messages, after the last one."""
        self._report = report
        # Never forked: the library of DDS does not survive it.
        context = multiprocessing.get_context("spawn")
        self._link, theirs = context.Pipe()
        self._process = context.Process(
            target=session_process,
            args=(theirs, name, configuration, options, around),
            name=f"qsctl {name}",
            daemon=True,
        )
        with children_without_signals():
            self._process.start()
        theirs.close()
        self._listener = threading.Thread(target=self._listen, name=f"session {name}", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    def send(self, message: Ask | StopSession | ReportTo | Obey) -> None:
        """Send a message to the process.

        Raises:
            NoAnswer: the process has ended.
        """
        try:
            self._link.send(message)
        except OSError:
            raise self.loss() from None

    def loss(self) -> NoAnswer:
        """Return the error for a process that ended without a report."""
        self._process.join(TERMINATE_AFTER_S)
        code = self._process.exitcode
        how = (
            "does not answer" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        )
        return NoAnswer(
            f"the process of session {self.name} {how}",
            remedy="Start the service again: persistent queues are restored.",
        )

    def close(self) -> None:
        """Wait for the process to end; terminate it if it does not end by itself."""
        self._process.join(TERMINATE_AFTER_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._listener.join()
        self._link.close()

    def _listen(self) -> None:
        while True:
            try:
                message: FromSession = self._link.recv()
            except (EOFError, OSError):
                self._report(self, PipeEnded())
                return
            self._report(self, message)


class Mail:
    """The received messages of the sessions' processes, in the order of arrival."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._waiting: deque[tuple[SessionProcess, FromSession]] = deque()

    def put(self, process: SessionProcess, message: FromSession) -> None:
        """Add a message for the coordinator; called by the listening threads."""
        self._waiting.append((process, message))
        self._wake()

    def take(self) -> Iterable[tuple[SessionProcess, FromSession]]:
        """Return and remove all messages."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]
