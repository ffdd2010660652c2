"""Graceful end of consumers at a signal: what is being processed is finished, what is not is returned."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Protocol

STOPPING_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stoppable(Protocol):
    """A wrapper whose iterations and `process` end when it is stopped."""

    def stop(self) -> None:
        """Let them end."""
        ...


@contextmanager
def stopped_by_signals(*wrappers: Stoppable) -> Iterator[None]:
    """Stop wrappers at SIGTERM or SIGINT within the block; the former handlers come back behind it.

    A second signal is for the former handler: Ctrl-C twice interrupts a handler that does not return. Only the main
    thread of a program may handle signals.

    Raises:
        ValueError: called in another thread than the main one.
    """
    former: dict[int, Any] = {}

    def restore() -> None:
        while former:
            number, handler = former.popitem()
            signal.signal(number, handler)

    def stop(_number: int, _frame: FrameType | None) -> None:
        restore()
        for each in wrappers:
            each.stop()

    for number in STOPPING_SIGNALS:
        # None: a handler that was not set by Python cannot be set again by it.
        before = signal.signal(number, stop)
        former[number] = signal.SIG_DFL if before is None else before
    try:
        yield
    finally:
        restore()
