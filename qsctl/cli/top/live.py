"""The source of `qsctl top` for a running service, over DDS or embedded.

Decides when the service is closed. The state directory of an embedded service is locked while it is open, and other
commands wait for it; so it is closed between readings.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING

from qsctl.cli.caller import notes_go_to
from qsctl.cli.top.look import Look, Rates, consumers_seen, queues_seen
from qsctl.errors import QsctlError

if TYPE_CHECKING:
    from qsctl.client.administration import Administration


class LiveSource:
    """A running service as a `LookSource`.

    Args:
        open_service: connects to the service.
        where: its location, as the user gave it.
        keeps_open: whether one connection is kept for all readings.
    """

    def __init__(
        self, open_service: Callable[[], AbstractContextManager[Administration]], where: str, *, keeps_open: bool
    ) -> None:
        self._open = open_service
        self._where = where
        self._keeps_open = keeps_open
        self._rates = Rates()
        self._opened = contextlib.ExitStack()
        self._service: Administration | None = None
        self._notice = ""

    def title(self) -> str:
        """Return the service's location and the instant of the reading."""
        return f"qsctl top   {self._where}   {datetime.now().astimezone():%H:%M:%S}"

    def look(self, of: str = "") -> Look:
        """Return the present state of every queue, or of the consumers of the named one."""
        self._notice = ""
        try:
            service = self._opened_service()
            statuses = service.statuses(service.queue_named(of)) if of else service.statuses()
        except QsctlError:
            self.close()
            raise
        finally:
            if not self._keeps_open:
                self.close()
        now_ns = time.monotonic_ns()
        seen = consumers_seen(statuses) if of else queues_seen(statuses, self._rates.of(statuses, now_ns))
        return Look(seen.heading, seen.figures, seen.rows, seen.summary, seen.note or self._notice)

    def steer(self, speed_steps: int, seek_steps: int, *, is_stopped: bool) -> None:
        """Do nothing: only a replayed run can be steered."""

    def close(self) -> None:
        """Close the connection."""
        self._service = None
        with notes_go_to():  # they would be written over the screen
            self._opened.close()

    def _opened_service(self) -> Administration:
        if self._service is None:
            notes: list[str] = []
            with notes_go_to(notes.append):
                self._service = self._opened.enter_context(self._open())
            self._service.on_notice = self._heed
            self._notice = " ".join(" ".join(notes).split())
        return self._service

    def _heed(self, notice: str) -> None:
        self._notice = notice
