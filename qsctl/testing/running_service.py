"""The service of tests: a daemon in a thread, and the moments in which it has nothing to do.

The daemon is the one of `qsctl serve`, engine, stores and DDS; only its clock is another. It rests, waiting for
something to come, when everything that has come is processed and sent; what it rests with is noted under a lock, so
that no other thread reads the engine while it works.
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
from qsctl.testing.direct_commands import DirectCommands
from qsctl.testing.virtual_clock import VirtualClock
from qsctl.transport.dds.participant import DomainSettings

NAME: Final = "QueuingServiceOfTests"
PARTICIPANT: Final = "DomainParticipant"
SUBSCRIBER: Final = "SharedSubscriber"
SESSION: Final = "Session"

COMMAND_TIMEOUT_S: Final = 10.0
"""Longest wait for the reply to a command, of real time."""

_STEP_S: Final = 0.005
_START_TIMEOUT_S: Final = 30.0


class Rest(NamedTuple):
    """A moment in which the service had nothing to do.

    `unanswered_count` are the samples that consumers hold; `deadline` is when time gives it something to do.
    """

    number: int = 0
    unanswered_count: int = 0
    deadline: Nanoseconds | None = None


class RunningService:
    """A daemon in a thread of this process, from its start to `close`.

    Args:
        domain_id: the domain of its queues and of administration.
        directory: where its files are: a second one in the directory goes on with the queues of the first.
        clock: the time that it follows.

    Raises:
        Unavailable: DDS does not start here.
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
        self._changed = threading.Condition()
        self._rest = Rest()
        self._waits = False
        """True while its thread waits: what it does next begins after this was read, under the lock."""
        self._failure: BaseException | None = None
        self._commands = DirectCommands()
        log = ServiceLog(NAME, stream=self._log)
        self._daemon = Daemon(configuration, options, log, commands=self._commands)
        # No peer is to be held back: a consumer that joins behind a sample is noticed at once, not 50 ms later.
        self._daemon.transport.boundary.time.busy_ns = 0
        self._commands.wake = self._daemon.transport.wake
        self._wait = self._daemon.transport.wait
        self._daemon.transport.wait = self._rest_until  # type: ignore[method-assign]
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="qsctl-service-of-tests", daemon=True)
        self._thread.start()
        if not started.wait(_START_TIMEOUT_S) or not self._thread.is_alive():
            raise Unavailable(f"the service of tests did not start: {self._why_ended()}")

    def _run(self, started: threading.Event) -> None:
        try:
            self._daemon.run(started.set)
        except BaseException as error:
            self._failure = error
        finally:
            started.set()
            with self._changed:
                self._changed.notify_all()

    def _rest_until(self, timeout_ns: Nanoseconds) -> None:
        """Note the moment, then wait as the transport does: the daemon's thread calls this between two passes."""
        daemon = self._daemon
        if daemon.transport.is_in_a_hurry:
            self._wait(timeout_ns)
            return
        with self._changed:
            self._rest = Rest(self._rest.number + 1, daemon.unanswered_count, daemon.next_deadline())
            self._waits = True
            self._changed.notify_all()
        self._wait(timeout_ns)
        with self._changed:
            self._waits = False

    def _why_ended(self) -> str:
        return str(self._failure or self._daemon.stop_cause or "it takes too long")

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        """Send an administration command; return its replies.

        Raises:
            Unavailable: the service ended by an error.
            NoAnswer: it did not answer.
        """
        if not self._thread.is_alive():
            raise Unavailable(f"the service of tests has ended: {self._why_ended()}")
        return self._commands.request(command, target, COMMAND_TIMEOUT_S)

    def rest(self, timeout_s: float = 10.0) -> Rest:
        """Wait until everything that has come is processed; return what the service rests with.

        Raises:
            Unavailable: the service ended by an error.
            NoAnswer: it does not rest in time.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            # A pass that is in progress may have begun before what is waited for came: the one behind it counts.
            wanted = self._rest.number + (1 if self._waits else 2)
            while self._rest.number < wanted:
                if not self._thread.is_alive():
                    raise Unavailable(f"the service of tests has ended: {self._why_ended()}")
                if time.monotonic() >= deadline:
                    raise NoAnswer(f"the service of tests is busy for {timeout_s:g} s", remedy="Do producers end?")
                self._daemon.transport.wake()
                self._changed.wait(_STEP_S)
            return self._rest

    def await_answers(self, timeout_s: float) -> None:
        """Wait until consumers have answered every sample that they were sent, and nothing is to be sent.

        Raises:
            Unavailable: the service ended by an error.
            NoAnswer: some are unanswered when the time is over.
        """
        deadline = time.monotonic() + timeout_s
        while (rest := self.rest(max(0.1, deadline - time.monotonic()))).unanswered_count:
            if time.monotonic() >= deadline:
                raise NoAnswer(
                    f"{rest.unanswered_count} samples are with consumers that have not answered in {timeout_s:g} s",
                    remedy="A consumer that is to answer must run in another thread or task, and call flush or wait.",
                )
            with self._changed:
                self._changed.wait_for(lambda: self._rest.number > rest.number, _STEP_S * 4)

    @property
    def log(self) -> str:
        """Lines that the service has logged: errors alone."""
        return self._log.getvalue()

    def close(self) -> None:
        """Let the service leave the domain; what it stored stays in the directory."""
        self._daemon.stop("closed by the test")
        self._thread.join(_START_TIMEOUT_S)

    def __repr__(self) -> str:
        return f"<RunningService at rest {self._rest.number}>"
