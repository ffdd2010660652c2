"""Reports of an engine's process to a recorder: its beginning, its events, its end.

Decides: the first instant reported. All earlier events are released first, so that no event is both in the beginning
and among the later ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qsctl.core.engine import ServiceEngine
from qsctl.core.turn import Released
from qsctl.eventlog.recording.story import Happened
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.service.recording._beginning import beginning
from qsctl.service.recording._feed import Feed

SEND_EVERY_NS: Final[Nanoseconds] = 50 * MILLISECOND_NS
"""Longest interval between two sends: events of that time are lost where a service is killed."""

_LEAVE_S: Final = 5.0
"""Time that a leaving service waits for a recorder that is behind."""


class Reporting:
    """The reports of one engine to a recorder.

    Args:
        engine: whose it is.
        clock: Unix nanoseconds.
        release: hands on everything that happened so far, so that nothing is pending.
        reports_each_step: whether the service wants each step as an event when no recorder wants reports.
    """

    def __init__(
        self,
        engine: ServiceEngine,
        clock: Callable[[], Nanoseconds],
        release: Callable[[], None],
        *,
        reports_each_step: bool,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._release = release
        self._reports_each_step = reports_each_step
        self._feed: Feed | None = None
        self._sends_at_ns: Nanoseconds = 0
        engine.hosted.reports_each_step = reports_each_step

    def begin(self, address: str) -> None:
        """Report to the recorder at this address from now on; one that is not there gets none, and logs that itself."""
        self.end()
        self._release()
        try:
            feed = Feed(address)
        except OSError:
            return
        now = self._clock()
        feed.put_beginning(beginning(self._engine, now))
        hosted = self._engine.hosted
        hosted.reports_each_step = hosted.reports_inputs = True
        self._feed = feed

    def report(self, released: Released) -> None:
        """Report what happened in a turn."""
        feed = self._feed
        if feed is None or not (released.events or released.inputs):
            return
        if feed.is_over:
            self._rest()
            return
        feed.put(Happened(released.events, list(released.inputs)), self._clock())

    def go_on(self) -> None:
        """Send what waits, some times a second; to be called more often."""
        feed = self._feed
        if feed is not None and (now := self._clock()) >= self._sends_at_ns:
            self._sends_at_ns = now + SEND_EVERY_NS
            feed.push()
            if feed.is_over:
                self._rest()

    def end(self) -> None:
        """Report the end, and nothing more."""
        if self._feed is not None and not self._feed.is_over:
            self._release()
            self._feed.end(self._clock())
            self._rest()

    def close(self) -> None:
        """Wait for the recorder to have received the end; without one it finds that the service is gone."""
        feed, self._feed = self._feed, None
        if feed is not None and feed.is_over:
            feed.wait(_LEAVE_S)
        elif feed is not None:
            feed.close()

    def _rest(self) -> None:
        """Stop reporting what only a recorder wants; the feed stays until everything has left."""
        hosted = self._engine.hosted
        hosted.reports_each_step, hosted.reports_inputs = self._reports_each_step, False
        if self._feed is not None and self._feed.is_closed:
            self._feed = None
