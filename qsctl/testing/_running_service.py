"""The service of tests: the daemon of `qsctl serve` in a thread of the test process, under a virtual clock.

Engine, stores and DDS are the daemon's; only the clock differs. The thread that runs the daemon holds a lock, which the
daemon's own thread releases while it waits for input. A caller that needs the reply to a command, or all input
processed, acquires the lock and runs the daemon itself, since waking another thread takes longer than the work.
"""

from __future__ import annotations

import io
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

from qsctl.config.settings import ServiceConfiguration, ServicePersistenceSettings, ServiceQosSettings
from qsctl.core.admin.command import Command
from qsctl.core.messages import CommandReply
from qsctl.core.queue.settings import PersistenceKind, SessionSettings
from qsctl.core.settings import (
    DomainParticipantSettings,
    ServiceSettings,
    SharedSubscriberSettings,
)
from qsctl.errors import NoAnswer, Unavailable
from qsctl.instant import Nanoseconds
from qsctl.service.process.daemon import Daemon
from qsctl.service.process.logger import ServiceLog
from qsctl.service.run.domains import places_of_configuration
from qsctl.service.run.open_service import DaemonOptions
from qsctl.testing._direct_commands import DirectCommands
from qsctl.testing._virtual_clock import VirtualClock
from qsctl.transport.dds.participant import DomainSettings

NAME: Final = "QueuingServiceOfTests"
PARTICIPANT: Final = "DomainParticipant"
SUBSCRIBER: Final = "SharedSubscriber"
SESSION: Final = "Session"

COMMAND_TIMEOUT_S: Final = 10.0
"""Longest wait for the reply to a command, of real time."""

_STEP_S: Final = 0.02
"""Longest wait between two checks whether consumers have acknowledged, in seconds."""

_START_TIMEOUT_S: Final = 30.0


class Rest(NamedTuple):
    """The state of a service that has nothing to do.

    `unanswered_count` is the number of samples that consumers have received and not acknowledged; `deadline` is the
    instant of the next timer, or None.
    """

    unanswered_count: int
    deadline: Nanoseconds | None


class RunningService:
    """A daemon in a thread of this process, from its start to `close`.

    Args:
        domain_id: DDS domain of the queues and of administration.
        directory: directory of the stores; a later service in the same directory restores the queues.
        clock: clock of the service.

    Raises:
        Unavailable: DDS cannot be started on this machine.
    """

    def __init__(self, domain_id: int, directory: Path, clock: VirtualClock) -> None:
        subscriber = SharedSubscriberSettings(SUBSCRIBER, sessions=(SessionSettings(SESSION),))
        participant = DomainParticipantSettings(PARTICIPANT, domain_id, (subscriber,))
        configuration = ServiceConfiguration(
            NAME,
            ServiceSettings(NAME, (participant,)),
            service_qos=ServiceQosSettings(ServicePersistenceSettings(PersistenceKind.PERSISTENT)),
        )
        self._log = io.StringIO()
        options = DaemonOptions(
            places=places_of_configuration(configuration, DomainSettings()),
            storage_directory=directory,
            runs_in_background=True,
            grace_ns=0,
            now=clock,
            owns_process=False,
        )
        self._lock = threading.Condition(threading.RLock())
        """Held by the thread that runs the daemon; notified when the daemon's own thread has nothing to do."""
        self._failure: BaseException | None = None
        self._has_ended = False
        self._commands = DirectCommands()
        log = ServiceLog(NAME, stream=self._log)
        self._daemon = Daemon(configuration, options, log, commands=self._commands, is_whole=True)
        # Do not delay discovery: a consumer that joins after a sample was written is matched at once, not 50 ms later.
        self._daemon.transport.boundary.time.busy_ns = 0
        self._wait = self._daemon.transport.wait
        self._daemon.transport.wait = self._let_others_work  # type: ignore[method-assign]
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="qsctl-service-of-tests", daemon=True)
        self._thread.start()
        if not started.wait(_START_TIMEOUT_S) or not self._thread.is_alive():
            raise Unavailable(f"the service of tests did not start: {self._why_ended()}")

    def _run(self, started: threading.Event) -> None:
        with self._lock:
            try:
                self._daemon.run(started.set)
            except BaseException as error:
                self._failure = error
            finally:
                self._has_ended = True
                started.set()
                self._lock.notify_all()

    def _let_others_work(self, timeout_ns: Nanoseconds) -> None:
        """Wait for input as the transport does, with the lock released; the daemon's thread calls this between two
        passes.
        """
        self._lock.notify_all()
        self._lock.release()
        try:
            self._wait(timeout_ns)
        finally:
            self._lock.acquire()

    def _work(self) -> None:
        """Process all pending input in the calling thread, which holds the lock.

        Raises:
            Unavailable: the service has ended.
        """
        try:
            while not self._daemon.is_ending and self._daemon.serve_once():
                pass
        except BaseException as error:
            # The daemon was left in the middle of a pass, by an error of its own or an interruption of the test.
            self._failure = self._failure or error
            self._daemon.stop("failed in a test")
            raise
        if self._has_ended or self._daemon.is_ending:
            self._daemon.transport.wake()
            raise Unavailable(f"the service of tests has ended: {self._why_ended()}")

    def _wait_for_thread(self, deadline_s: float, step_s: float = 1.0) -> bool:
        """Let the daemon's thread run until it waits for input; return False if the deadline passed instead.

        Args:
            deadline_s: end of the wait, in seconds of the monotonic clock.
            step_s: longest single wait, in seconds.
        """
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        self._lock.wait(min(left_s, step_s))
        return True

    def _why_ended(self) -> str:
        return str(self._failure or self._daemon.stop_cause or "it takes too long")

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        """Send an administration command and return its replies.

        Raises:
            Unavailable: the service has ended.
            NoAnswer: the service did not reply in time.
        """
        deadline_s = time.monotonic() + COMMAND_TIMEOUT_S
        with self._lock:
            identity = self._commands.put(command, target)
            try:
                self._work()
                while not self._commands.is_answered(identity):
                    # The records on which the reply rests are being stored.
                    if not self._wait_for_thread(deadline_s):
                        raise NoAnswer(f"the service of tests did not answer a command in {COMMAND_TIMEOUT_S:g} s")
                    self._work()
            finally:
                replies = self._commands.pop_replies(identity)
        return replies

    def rest(self, timeout_s: float = 10.0) -> Rest:
        """Process all pending input, wait until its effects are stored and sent, and return the resulting state.

        Raises:
            Unavailable: the service has ended.
            NoAnswer: the service is still busy after `timeout_s`.
        """
        deadline_s = time.monotonic() + timeout_s
        with self._lock:
            self._work()
            while self._daemon.transport.is_in_a_hurry or not self._daemon.is_idle:
                if not self._wait_for_thread(deadline_s):
                    raise NoAnswer(
                        f"the service of tests is busy for {timeout_s:g} s",
                        remedy="A producer or a consumer works without end in another thread.",
                    )
                self._work()
            return Rest(self._daemon.unanswered_count, self._daemon.next_deadline())

    def await_answers(self, timeout_s: float) -> None:
        """Wait until consumers have acknowledged or rejected every sample sent to them, and no sample is to be sent.

        Raises:
            Unavailable: the service has ended.
            NoAnswer: samples are unacknowledged at the timeout.
        """
        deadline_s = time.monotonic() + timeout_s
        with self._lock:
            while (rest := self.rest(max(0.1, deadline_s - time.monotonic()))).unanswered_count:
                if not self._wait_for_thread(deadline_s, _STEP_S):
                    raise NoAnswer(
                        f"{rest.unanswered_count} samples are with consumers that have not answered in {timeout_s:g} s",
                        remedy="A consumer that is to answer must run in another thread or task, and call flush or "
                        "wait.",
                    )

    @property
    def log(self) -> str:
        """Return the lines that the service has logged, which are errors alone."""
        return self._log.getvalue()

    def close(self) -> None:
        """Stop the service, which leaves the domain; its stored state stays in the directory."""
        self._daemon.stop("closed by the test")
        self._thread.join(_START_TIMEOUT_S)

    def __repr__(self) -> str:
        return f"<RunningService{', ended' * self._has_ended}>"
