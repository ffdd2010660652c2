"""The terminal, by curses, which knows its abilities, starts at once, and sends only changes over a slow line.

Decides the names of keys, the appearance of styles, and that the terminal is always restored to its former state.
"""

from __future__ import annotations

import curses
import locale
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from qsctl.cli.top._display import Display
from qsctl.cli.top._screen import Line, Style, rows_seen, screen
from qsctl.cli.top.look import Look, LookSource
from qsctl.errors import QsctlError, Unavailable

_KEYS: Final = {
    curses.KEY_UP: "up",
    curses.KEY_DOWN: "down",
    curses.KEY_LEFT: "left",
    curses.KEY_RIGHT: "right",
    curses.KEY_PPAGE: "page up",
    curses.KEY_NPAGE: "page down",
    curses.KEY_HOME: "home",
    curses.KEY_END: "end",
    curses.KEY_ENTER: "enter",
    curses.KEY_BACKSPACE: "backspace",
    10: "enter",
    13: "enter",
    27: "escape",
    8: "backspace",
    127: "backspace",
}
_WAIT_FOR_KEY_MS: Final = 100
_ESCAPE_MS: Final = 50
"""Milliseconds after which a lone escape is the key itself; the library's default is a second."""


def show(looker: Looker, *, is_run: bool) -> None:
    """Show readings until the user quits.

    Raises:
        Unavailable: the type of the terminal is not known.
        QsctlError: the first reading failed.
    """
    with suppress(locale.Error):  # names that are not ASCII; without the locale, curses shows bytes
        locale.setlocale(locale.LC_ALL, "")
    curses.set_escdelay(_ESCAPE_MS)
    try:
        with looker:
            look = looker.first()
            curses.wrapper(_loop, looker, look, is_run)
    except curses.error as error:
        raise Unavailable(
            f"this terminal cannot be used: {error}", remedy="Set TERM to its type, for example xterm-256color."
        ) from None
    except KeyboardInterrupt:
        return


class Looker:
    """A thread that reads a source at an interval, so that keys are handled while a service does not answer.

    Args:
        source: the source of readings.
        interval_s: the time between two readings.
    """

    def __init__(self, source: LookSource, interval_s: float) -> None:
        self._source = source
        self._interval_s = interval_s
        self._changed = threading.Condition()
        self._look: Look | None = None
        self._error: QsctlError | None = None
        self._of = ""
        self._is_paused = False
        self._is_over = False
        self._is_due = True
        self._thread = threading.Thread(target=self._look_on, name="look", daemon=True)

    def __enter__(self) -> Looker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self._thread.join(timeout=1.0)

    def first(self) -> Look:
        """Wait for the first reading and return it.

        Raises:
            QsctlError: it failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._look is not None or self._error is not None)
            if self._look is None:
                assert self._error is not None
                raise self._error
            return self._look

    def latest(self) -> tuple[str, Look]:
        """Return the title and the latest successful reading; with a note if later ones failed."""
        with self._changed:
            assert self._look is not None
            look, error = self._look, self._error
        if error is not None:
            look = Look(look.heading, look.figures, look.rows, look.summary, f"Error: {error.message}")
        return self._source.title(), look

    def heed(self, display: Display) -> Display:
        """Let the following readings match the display; return the display without the applied steps."""
        self._source.steer(display.speed_steps, display.seek_steps, is_stopped=display.is_paused)
        with self._changed:
            if display.of != self._of or display.is_paused < self._is_paused or display.seek_steps:
                self._is_due = True
            self._of, self._is_paused = display.of, display.is_paused
            self._changed.notify_all()
        return replace(display, speed_steps=0, seek_steps=0)

    def _look_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_due or self._is_over, timeout=self._interval_s)
                if self._is_over:
                    break
                of, is_skipped = self._of, self._is_paused and not self._is_due
                self._is_due = False
            if is_skipped:
                continue
            error: QsctlError | None = None
            look: Look | None = None
            try:
                look = self._source.look(of)
            except QsctlError as caught:
                error = caught
            except OSError as caught:
                error = Unavailable(str(caught))
            with self._changed:
                if of == self._of:  # else the user has left that view
                    self._look = look or self._look
                    self._error = error
                self._changed.notify_all()
        self._source.close()


def _loop(window: curses.window, looker: Looker, look: Look, is_run: bool) -> None:
    with suppress(curses.error):  # a terminal that cannot hide its cursor
        curses.curs_set(0)
    styles = _styles()
    window.timeout(_WAIT_FOR_KEY_MS)
    display = Display()
    while not display.is_over:
        title, look = looker.latest()
        height, width = window.getmaxyx()
        _draw(window, screen(title, look, display, width, height, is_run=is_run), styles)
        key = _key(window)
        if key:
            display = looker.heed(display.press(key, look, rows_seen(height)))


def _key(window: curses.window) -> str:
    try:
        pressed = window.get_wch()
    except curses.error:  # none in time
        return ""
    if isinstance(pressed, str):
        return _KEYS.get(ord(pressed), pressed)
    return _KEYS.get(pressed, "")


def _styles() -> dict[Style, int]:
    return {
        Style.PLAIN: curses.A_NORMAL,
        Style.BOLD: curses.A_BOLD,
        Style.FAINT: curses.A_DIM,
        Style.CHOSEN: curses.A_REVERSE,
        Style.WARNING: curses.A_BOLD,
    }


def _draw(window: curses.window, lines: Sequence[Line], styles: dict[Style, int]) -> None:
    window.erase()
    for at, line in enumerate(lines):
        # The last cell of a terminal cannot be written without scrolling it, which is an error after it is written.
        with suppress(curses.error):
            window.addstr(at, 0, line.text, styles[line.style])
    window.refresh()
