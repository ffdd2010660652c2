"""Begin and end of kernel compilations, for callers that report or time them.

A module of its own, since the compiler is imported only where a kernel has to be compiled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_LISTENERS: Final[list[_Listener]] = []


class _Listener:
    """A `with` statement that reports and times the compilations within it."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = [notify]
        self._depth = 0
        self._began_s = 0.0
        self.spent_s = 0.0

    def begin(self) -> None:
        """Record the begin of a compilation; of nested ones only the outermost is timed."""
        while self._notify:
            self._notify.pop()()
        if not self._depth:
            self._began_s = time.perf_counter()
        self._depth += 1

    def end(self) -> None:
        """Record the end of a compilation; one that began before the `with` statement is not counted."""
        if self._depth:
            self._depth -= 1
            if not self._depth:
                self.spent_s += time.perf_counter() - self._began_s


def started() -> None:
    """Report that a compilation has begun."""
    for each in _LISTENERS:
        each.begin()


def ended() -> None:
    """Report that a compilation has ended."""
    for each in _LISTENERS:
        each.end()


@contextmanager
def _listening(notify: Callable[[], None]) -> Iterator[_Listener]:
    listener = _Listener(notify)
    _LISTENERS.append(listener)
    try:
        yield listener
    finally:
        _LISTENERS.remove(listener)


@contextmanager
def compilation_reported(notify: Callable[[], None]) -> Iterator[None]:
    """Call `notify` before the first kernel is compiled within the `with` statement, if any is."""
    with _listening(notify):
        yield


@contextmanager
def compilation_timed() -> Iterator[Callable[[], float]]:
    """Measure compile time within the `with` statement; the yielded function returns the seconds so far."""
    with _listening(lambda: None) as listener:
        yield lambda: listener.spent_s
