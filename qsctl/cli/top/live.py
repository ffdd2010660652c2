"""Looks at a service that runs: over DDS by one connection, at an embedded one by opening it for each look.

Decides: when the service is let go of. The state directory of an embedded service is locked while it is open, and other
commands wait for it; so it is closed between looks.
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
    """A service.

    Args:
        open_service: opens it.
        where: its location, as the user gave it.
        keeps_open: whether one connection serves all looks.
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
        """Return what is looked at, and when, in a few words."""
        return f"qsctl top   {self._where}   {datetime.now().astimezone():%H:%M:%S}"

    def look(self, of: str = "") -> Look:
        """Return what is seen now: every queue, or with a name the consumers of that one."""
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
        """Ignore the key: a service has its own time."""

    def close(self) -> None:
        """Let go of what is looked at."""
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
