"""A source of looks for all browsers: polled once an interval, with its history.

Decides: when it is polled, and what is seen while it cannot be. The source blocks, so each look is made in a thread;
all state belongs to the event loop. A source that fails keeps its last rows, marked as old, and is asked again.
"""

from __future__ import annotations

import time
from typing import Final

import anyio
from anyio import to_thread

from qsctl.cli.top.look import Look, LookSource
from qsctl.errors import QsctlError
from qsctl.web.history import History

_QUIET_S: Final = 15.0
"""Longest time without news for a stream."""


class PolledSource:
    """A source that is polled.

    Args:
        name: what the address of the page calls it: `service`, `broker`, `engine`.
        title: where it is, as the user gave it.
        source: gives the looks.
        interval_s: the time between two.
    """

    def __init__(self, name: str, title: str, source: LookSource, interval_s: float) -> None:
        self.name = name
        self.title = title
        self.source = source
        self.interval_s = interval_s
        self.history = History()
        self.look = Look("Queue", (), (), note="Not looked at yet.")
        self.error = ""
        """Why the last look failed; empty: it did not."""
        self.seen_at_s = 0.0
        """When the last look succeeded, in seconds since 1970; 0: never."""
        self.number = 0
        """Number of polls that have ended."""
        self._changed = anyio.Event()
        self.asking = anyio.Lock()
        """Held while the source is asked."""

    async def poll(self) -> None:
        """Look at the source until cancelled."""
        while True:
            began = time.monotonic()
            await self.look_once()
            await anyio.sleep(max(0.05, self.interval_s - (time.monotonic() - began)))

    async def look_once(self) -> None:
        """Look at the source, and wake the streams."""
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
        """Wait for a poll after `number`; return whether there was one before the stream has to send something."""
        with anyio.move_on_after(_QUIET_S):
            while self.number <= number:
                await self._changed.wait()
        return self.number > number


def _explained(error: QsctlError) -> str:
    """Return an error with its remedy, as sentences."""
    is_sentence = not error.remedy or error.message.endswith((".", "!", "?"))
    return f"{error.message}{'' if is_sentence else '.'} {error.remedy}".strip()
