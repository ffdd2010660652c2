"""The common base of the wrappers: a participant, the processing of messages, and timed waits.

Decides: how a blocking call waits, and that a call of a session of tasks does not (see `aio.awaitable`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Final, Self

from qsctl.errors import NoAnswer, Refused
from qsctl.identity import Guid
from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds
from qsctl.transport.dds.clients.spare_participants import client_domain
from qsctl.transport.dds.participant import DomainSettings

TURN_NS: Final[Nanoseconds] = 50 * MILLISECOND_NS
"""The longest wait of one turn: signals of the process are seen in between."""

FOREVER_S: Final = float("inf")


class ClientSession:
    """One participant for any number of wrappers: blocking ones of one thread, or awaitable ones of one task group.

    Args:
        domain_id: the DDS domain of the queue's domain participant.
        settings: interface, peers, lease; loopback by default.
    """

    def __init__(self, domain_id: int, settings: DomainSettings | None = None) -> None:
        self.domain = client_domain(domain_id, settings)
        self.is_open = True
        self._process_id = os.getpid()
        self.may_wait = True
        """True: a blocking call may wait. Of tasks none does: what it waits for is awaited before it is made."""

    @property
    def is_usable(self) -> bool:
        """Return whether the session is open, in the process that opened it: a child of `os.fork` lacks its threads."""
        return self.is_open and os.getpid() == self._process_id

    def require_usable(self) -> None:
        """Raise an error where the session is not usable.

        Raises:
            Refused: the session is closed, or was opened by the parent of this process.
        """
        if not self.is_usable:
            raise Refused(
                "the session of this producer or consumer is closed, or belongs to the parent of this process",
                remedy="Open another one; a child of os.fork must open its own.",
            )

    def run_until(self, is_done: Callable[[], bool], timeout_s: float, turn: Callable[[], None]) -> bool:
        """Process messages until `is_done` returns True or the time limit has passed; return the last result of
        `is_done`.

        `turn` processes the wrapper's received messages and puts messages to be sent into its ports.

        Raises:
            Refused: the session is closed, or was opened by the parent of this process.
        """
        self.require_usable()
        deadline = time.monotonic() + timeout_s
        self.domain.turn(0)
        turn()
        while not is_done():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.domain.turn(min(TURN_NS, int(min(left, 1.0) * SECOND_NS) + 1))
            turn()
        return True

    def close(self) -> None:
        """Leave the domain; in a child of the process that opened the session, do nothing."""
        is_left = self.is_usable
        self.is_open = False
        if is_left:
            self.domain.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Wrapper:
    """Base class of the blocking wrappers: a context manager with a session of its own, or a given one."""

    def __init__(self, domain_id: int, settings: DomainSettings | None, session: ClientSession | None) -> None:
        if session is not None:
            session.require_usable()
        self._owns_session = session is None
        self._session = session if session is not None else ClientSession(domain_id, settings)
        self._is_stopping = False

    def stop(self) -> None:
        """End the iterations, `process` and waits for samples; may be called in any thread or signal handler.

        The sample in progress is finished first. Acknowledgments are sent with the next call that waits, or by `close`,
        which also returns unprocessed samples to the queue.
        """
        self._is_stopping = True
        if self._session.is_usable:
            self._session.domain.wake()

    @property
    def is_stopping(self) -> bool:
        """Return whether `stop` was called."""
        return self._is_stopping

    def _making(self) -> AbstractContextManager[None]:
        """Complete a wrapper's construction within this block; if it fails, close a session of its own."""
        return self._session.domain.left_on_failure() if self._owns_session else nullcontext()

    @property
    def session(self) -> ClientSession:
        """The session; give it to another wrapper to use one participant for both."""
        return self._session

    def wait_for_queue(self, timeout_s: float = 10.0) -> object:
        """Wait until the queues are matched, at most `timeout_s`."""
        raise AssertionError(f"every wrapper waits for its own queues, {timeout_s:g} s")

    def turn(self) -> None:
        """Process received messages and put messages to be sent into the DDS ports; do not wait."""
        raise AssertionError("every wrapper turns its own ports")

    def _run_until(self, is_done: Callable[[], bool], timeout_s: float) -> bool:
        return self._session.run_until(is_done, timeout_s if self._session.may_wait else 0.0, self.turn)

    def pauses(self, pause_s: float) -> bool:
        """Wait between two attempts of a handler; return whether `stop` was called."""
        return self._run_until(lambda: self._is_stopping, pause_s)

    def _require(self, is_done: Callable[[], bool], timeout_s: float, what: str) -> None:
        if not self._run_until(is_done, timeout_s):
            raise no_answer(what, timeout_s)

    def close(self) -> None:
        """Send pending messages, then leave the domain; a session that was given stays open."""
        if self._session.is_usable:
            self.turn()
        if self._owns_session:
            self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def no_answer(what: str, timeout_s: float) -> NoAnswer:
    """Return the error for an answer that did not arrive in time."""
    return NoAnswer(
        f"{what} did not arrive in {timeout_s:g} s",
        remedy="Check that the service runs in this domain and hosts the queue: `qsctl get data`.",
    )


def new_guid() -> Guid:
    """Return a GUID that is used nowhere else."""
    return Guid(os.urandom(16))
