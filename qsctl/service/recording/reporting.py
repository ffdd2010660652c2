"""The reports of an engine's process to a recorder: its state at the beginning, its events, the end.

Decides: the first instant reported. All earlier events are released first, so that no event is reported twice, as part
of the beginning and by itself.
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
        engine: the reporting engine.
        clock: returns Unix nanoseconds.
        release: waits for all begun turns and sends their messages and events.
        reports_each_step: whether the service needs an event for each step even without a recorder.
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
        """Report to the recorder at this address from now on; do nothing where it does not exist, as its owner logs
        that.
        """
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
        """Report the events of a turn."""
        feed = self._feed
        if feed is None or not (released.events or released.inputs):
            return
        if feed.is_over:
            self._rest()
            return
        feed.put(Happened(released.events, list(released.inputs)), self._clock())

    def go_on(self) -> None:
        """Send buffered events at intervals; to be called more often than these."""
        feed = self._feed
        if feed is not None and (now := self._clock()) >= self._sends_at_ns:
            self._sends_at_ns = now + SEND_EVERY_NS
            feed.push()
            if feed.is_over:
                self._rest()

    def end(self) -> None:
        """Report the end, and stop reporting."""
        if self._feed is not None and not self._feed.is_over:
            self._release()
            self._feed.end(self._clock())
            self._rest()

    def close(self) -> None:
        """Wait until the recorder has received the end; without an end, close the socket."""
        feed, self._feed = self._feed, None
        if feed is not None and feed.is_over:
            feed.wait(_LEAVE_S)
        elif feed is not None:
            feed.close()

    def _rest(self) -> None:
        """Stop the events that only a recorder needs; the feed stays until everything is sent."""
        hosted = self._engine.hosted
        hosted.reports_each_step, hosted.reports_inputs = self._reports_each_step, False
        if self._feed is not None and self._feed.is_closed:
            self._feed = None
