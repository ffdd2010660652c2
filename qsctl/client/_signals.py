"""Graceful end of consumers at a signal: samples in progress are finished, the others returned to the queue."""

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
        """End the iterations and `process`."""
        ...


@contextmanager
def stopped_by_signals(*wrappers: Stoppable) -> Iterator[None]:
    """Stop wrappers at SIGTERM or SIGINT within the block, and restore the former handlers after it.

    A second signal is handled by the former handler: Ctrl-C twice interrupts a handler that does not return. Only the
    main thread of a program may handle signals.

    Raises:
        ValueError: the call is not in the main thread.
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
