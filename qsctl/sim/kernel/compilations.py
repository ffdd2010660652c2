"""Compilations of kernels as they begin and end, for those who report or time them.

Apart from the compiler, which is imported only where there is something to compile.
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
        """Note the beginning; kernels compile others, and only the outermost is timed."""
        while self._notify:
            self._notify.pop()()
        if not self._depth:
            self._began_s = time.perf_counter()
        self._depth += 1

    def end(self) -> None:
        """Note the end; one that began before the `with` statement is not counted."""
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
    """Within the `with` statement, call `notify` before the first kernel that the cache lacks is compiled, if any."""
    with _listening(notify):
        yield


@contextmanager
def compilation_timed() -> Iterator[Callable[[], float]]:
    """Within the `with` statement, count the seconds that compiling takes: the function given returns them."""
    with _listening(lambda: None) as listener:
        yield lambda: listener.spent_s
