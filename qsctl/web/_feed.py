"""A source that is polled once an interval for all browsers, with the history of its figures.

Decides when a source is polled, and what is shown while it fails. A poll blocks, so it runs in a thread; all state
belongs to the event loop. A source that fails keeps its last rows, marked as old, and is polled again.
"""

from __future__ import annotations

import time
from typing import Final

import anyio
from anyio import to_thread

from qsctl.cli.top.look import Look, LookSource
from qsctl.errors import QsctlError
from qsctl.web._history import History

_QUIET_S: Final = 15.0
"""Longest time without an event of a stream, in seconds; then a keep-alive is sent."""


class PolledSource:
    """A polled source of rows.

    Args:
        name: name in the page's address: `service`, `broker` or `engine`.
        title: location of the source, as the user gave it.
        source: the source that is polled.
        interval_s: seconds between two polls.
    """

    def __init__(self, name: str, title: str, source: LookSource, interval_s: float) -> None:
        self.name = name
        self.title = title
        self.source = source
        self.interval_s = interval_s
        self.history = History()
        self.look = Look("Queue", (), (), note="Not looked at yet.")
        self.error = ""
        """The error message of the last poll; empty if it succeeded."""
        self.seen_at_s = 0.0
        """Unix time of the last successful poll, in seconds; 0: none."""
        self.number = 0
        """Number of completed polls."""
        self._changed = anyio.Event()
        self.asking = anyio.Lock()
        """A lock held while the source is polled or queried."""

    async def poll(self) -> None:
        """Poll the source once an interval, until cancelled."""
        while True:
            began = time.monotonic()
            await self.look_once()
            await anyio.sleep(max(0.05, self.interval_s - (time.monotonic() - began)))

    async def look_once(self) -> None:
        """Poll the source once, and wake the streams."""
        try:
            async with self.asking:
                look = await to_thread.run_sync(self.source.look, abandon_on_cancel=True)
        except QsctlError as error:
            self.error = _explained(error)
            self.history.interrupt()
        else:
            self.error = ""
            self.look = look
            self.seen_at_s = time.time()
            self.history.add(look.rows)
        self.number += 1
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def news(self, number: int) -> bool:
        """Wait for a poll after number `number`; return False if the stream must send a keep-alive first."""
        with anyio.move_on_after(_QUIET_S):
            while self.number <= number:
                await self._changed.wait()
        return self.number > number


def _explained(error: QsctlError) -> str:
    """Return the message of an error and its remedy, as sentences."""
    is_sentence = not error.remedy or error.message.endswith((".", "!", "?"))
    return f"{error.message}{'' if is_sentence else '.'} {error.remedy}".strip()
