"""The state of the screen that keys change: sorting, filter, the selected row, the opened queue.

Decides the action of each key. A key is one character, or the name that `_terminal` gives it, such as `up`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from qsctl.cli.output.results import Row
from qsctl.cli.top.look import Look

NAME: Final = "name"
HELP: Final = (
    "up down j k        choose a row; also page up, page down, home, end",
    "enter              look into the chosen queue: its consumers",
    "escape backspace   go back to the queues",
    "< >                sort by the figure to the left, to the right; n: by name",
    "r                  the other way round",
    "/                  show names that have a text, or fit a pattern like *Orders*",
    "space              stop, and go on",
    "+ -                of a run: twice as fast, half as fast",
    "[ ]                of a run: back and forth by a twentieth of it",
    "h ?                this help",
    "q                  quit",
)


@dataclass(frozen=True, slots=True)
class Display:
    """The state of the screen; `press` returns the next one."""

    sort: str = "depth"
    is_descending: bool = True
    filter: str = ""
    is_typing: bool = False
    """Whether the user is typing the filter."""
    chosen: str = ""
    """The key of the selected row; empty for the first."""
    of: str = ""
    """The queue whose consumers are shown; empty to show all queues."""
    is_paused: bool = False
    shows_help: bool = False
    is_over: bool = False
    speed_steps: int = 0
    """Number of doublings of a run's speed, minus halvings, since they were last applied."""
    seek_steps: int = 0
    """Number of twentieths of a run to move forward."""

    def shown(self, look: Look) -> list[Row]:
        """Return the rows that match the filter, sorted."""
        fitting = [row for row in look.rows if self._fits(str(row[NAME]))]
        is_known = self.sort == NAME or any(figure.field == self.sort for figure in look.figures)
        field = self.sort if is_known else look.figures[0].field if look.figures else NAME
        by_name = sorted(fitting, key=lambda row: str(row[NAME]).casefold())
        if field == NAME:
            return by_name[::-1] if self.is_descending and self.sort == NAME else by_name
        return sorted(by_name, key=lambda row: _order(row.get(field)), reverse=self.is_descending)

    def press(self, key: str, look: Look, page: int) -> Display:
        """Return the display after a key.

        Args:
            key: the pressed key.
            look: the reading on the screen.
            page: number of rows on the screen.
        """
        if self.is_typing:
            return self._typed(key)
        if self.shows_help:
            return replace(self, shows_help=False, is_over=key == "q")
        moved = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page,
                 "home": -(2**31), "end": 2**31}.get(key)  # fmt: skip
        if moved is not None:
            return self._moved(moved, look)
        match key:
            case "q":
                return replace(self, is_over=True)
            case "h" | "?":
                return replace(self, shows_help=True)
            case "/":
                return replace(self, is_typing=True)
            case "enter" | "right" if not self.of:
                rows = self.shown(look)
                name = str(rows[self.place(rows)][NAME]) if rows else ""
                return replace(self, of=name, filter="", chosen="")
            case "escape" | "backspace" | "left":
                return replace(self, of="", filter="", chosen=self.of)
            case "<" | ">":
                return self._sorted_beside(look, 1 if key == ">" else -1)
            case "n":
                return replace(self, sort=NAME, is_descending=False)
            case "r":
                return replace(self, is_descending=not self.is_descending)
            case " ":
                return replace(self, is_paused=not self.is_paused)
            case "+" | "-":
                return replace(self, speed_steps=self.speed_steps + (1 if key == "+" else -1))
            case "]" | "[":
                return replace(self, seek_steps=self.seek_steps + (1 if key == "]" else -1))
            case _:
                return self

    def place(self, rows: Sequence[Row]) -> int:
        """Return the index of the selected row among those shown; 0 if it is not among them."""
        return next((at for at, row in enumerate(rows) if key_of(row) == self.chosen), 0)

    def _typed(self, key: str) -> Display:
        if key == "enter":
            return replace(self, is_typing=False)
        if key == "escape":
            return replace(self, is_typing=False, filter="")
        if key == "backspace":
            return replace(self, filter=self.filter[:-1])
        return replace(self, filter=self.filter + key) if len(key) == 1 and key.isprintable() else self

    def _moved(self, by: int, look: Look) -> Display:
        rows = self.shown(look)
        if not rows:
            return self
        place = min(max(0, self.place(rows) + by), len(rows) - 1)
        return replace(self, chosen=key_of(rows[place]))

    def _sorted_beside(self, look: Look, by: int) -> Display:
        fields = [NAME, *(figure.field for figure in look.figures)]
        at = fields.index(self.sort) if self.sort in fields else 1 % len(fields)
        sort = fields[min(max(0, at + by), len(fields) - 1)]
        return replace(self, sort=sort, is_descending=sort != NAME)

    def _fits(self, name: str) -> bool:
        wanted, name = self.filter.casefold(), name.casefold()
        return fnmatch.fnmatchcase(name, wanted) if set("*?[") & set(wanted) else wanted in name


def key_of(row: Row) -> str:
    """Return the key that identifies a row: two services may have queues of the same name."""
    return f"{row[NAME]}\0{row.get('service', '')}"


def _order(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 1, float(value), ""
    return 0, 0.0, str(value)
