"""A reading of `qsctl top` formatted as lines for a terminal of a given size.

Decides which columns fit, and the lines above and below them. Names are shown whole as long as anything else can be
shortened: a common path of all names is shown once above them, and figures are left out by their rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rich.cells import cell_len, set_cell_size

from qsctl.cli.output.fitting import short_figure
from qsctl.cli.output.results import Plain, Row
from qsctl.cli.output.shown_text import shown_in_line
from qsctl.cli.top._display import HELP, NAME, Display
from qsctl.cli.top.look import Figure, Look

KEYS: Final = "q quit  enter look into  / filter  < > r sort  space stop  h help"
RUN_KEYS: Final = "q quit  / filter  < > r sort  space stop  + - speed  [ ] seek  h help"
_NARROW: Final = 5
_WIDE: Final = 10
_SHORTEST_NAME: Final = 12
_ABOVE: Final = 4
"""Lines above the rows: the title, the totals, the state, the headings."""


class Style(Enum):
    """The style of a line."""

    PLAIN = "plain"
    BOLD = "bold"
    FAINT = "faint"
    CHOSEN = "chosen"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the screen, no wider than the terminal."""

    text: str
    style: Style = Style.PLAIN


def rows_seen(height: int) -> int:
    """Return the number of rows that a terminal of this height shows at once."""
    return max(1, height - _ABOVE - 1)


def screen(title: str, look: Look, display: Display, width: int, height: int, *, is_run: bool = False) -> list[Line]:
    """Return the lines of the whole screen, at most `height` of them, none wider than `width`."""
    lines = [Line(title, Style.BOLD), Line(look.summary)]
    if display.shows_help:
        lines += [Line(""), *(Line(each) for each in HELP)]
    else:
        rows = display.shown(look)
        common = common_path([str(row[NAME]) for row in look.rows])
        layout = _layout(look, rows, common, width, display.sort)
        lines.append(Line(_state(look, display, layout.common), Style.WARNING if display.is_typing else Style.FAINT))
        lines.append(Line(layout.heading(display), Style.BOLD))
        lines += _listed(layout, rows, display, rows_seen(height))
        if look.note:
            lines.append(Line(look.note, Style.WARNING))
        if not rows and look.rows:
            lines.append(Line("No name fits the filter; escape clears it.", Style.FAINT))
    lines = lines[: max(0, height - 1)]
    lines += [Line("")] * (height - 1 - len(lines))
    keys = "enter ends the filter   escape clears it" if display.is_typing else RUN_KEYS if is_run else KEYS
    lines.append(Line(keys, Style.FAINT))
    return [Line(_ended(shown_in_line(line.text), width), line.style) for line in lines[:height]]


def common_path(names: Sequence[str]) -> str:
    """Return the common beginning of all names up to a slash; empty if there is none."""
    if not names:
        return ""
    head = names[0].rpartition("/")[0]
    while head and not all(name.startswith(f"{head}/") for name in names):
        head = head.rpartition("/")[0]
    return f"{head}/" if head else ""


def _listed(layout: _Layout, rows: Sequence[Row], display: Display, most: int) -> list[Line]:
    """Return the lines of at most `most` rows around the selected one."""
    place = display.place(rows)
    first = max(0, min(place - most // 2, len(rows) - most))
    return [
        Line(layout.line(row), Style.CHOSEN if at == place else Style.PLAIN)
        for at, row in enumerate(rows[first : first + most], first)
    ]


def _state(look: Look, display: Display, common: str) -> str:
    heading = next((each.heading for each in look.figures if each.field == display.sort), "")
    parts = []
    if display.of:
        parts.append(f"consumers of {display.of}")
    if common:
        parts.append(f"in {common}")
    if display.is_typing:
        parts.append(f"filter: {display.filter}_")
    elif display.filter:
        parts.append(f"filter: {display.filter}")
    if display.is_paused:
        parts.append("stopped: space goes on")
    if heading and not display.is_typing:
        parts.append(f"by {heading}, the {'largest' if display.is_descending else 'smallest'} first")
    return "   ".join(parts)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns of the screen, and their widths."""

    name_heading: str
    name_width: int
    common: str
    figures: Sequence[tuple[Figure, int]]
    is_wide: bool

    def heading(self, display: Display) -> str:
        parts = [set_cell_size(self.name_heading, self.name_width)]
        for figure, width in self.figures:
            text = figure.heading if self.is_wide and len(figure.heading) <= width else figure.short.strip()
            text = text.upper() if figure.field == display.sort else text
            parts.append(text.ljust(width) if figure.is_text else text.rjust(width))
        return self._between.join(parts).rstrip()

    def line(self, row: Row) -> str:
        name = shown_in_line(str(row[NAME])).removeprefix(self.common)
        parts = [set_cell_size(_cut(name, self.name_width), self.name_width)]
        for figure, width in self.figures:
            text = _figure_text(row.get(figure.field), is_wide=self.is_wide)
            parts.append(set_cell_size(text, width) if figure.is_text else text.rjust(width))
        return self._between.join(parts).rstrip()

    @property
    def _between(self) -> str:
        return "  " if self.is_wide else " "


def _layout(look: Look, rows: Sequence[Row], common: str, width: int, sort: str) -> _Layout:
    names = [shown_in_line(str(row[NAME])) for row in look.rows]
    longest = max(map(cell_len, names), default=0)

    def widths(least: int, *, has_headings: bool = False) -> list[tuple[Figure, int]]:
        return [
            (figure, max(_text_width(figure, rows) if figure.is_text else least, has_headings * len(figure.heading)))
            for figure in look.figures
        ]

    def needed(name_width: int, figures: Sequence[tuple[Figure, int]], gap: int) -> int:
        return name_width + sum(gap + size for _, size in figures)

    for prefix in ("", common):
        name_width = max(longest - len(prefix), len(look.heading))
        for figures in (widths(_WIDE, has_headings=True), widths(_WIDE)):
            if needed(name_width, figures, 2) <= width:
                return _Layout(look.heading, name_width, prefix, figures, is_wide=True)
        figures = widths(_NARROW)
        if needed(name_width, figures, 1) <= width:
            return _Layout(look.heading, name_width, prefix, figures, is_wide=False)
    # The column that rows are sorted by is left out last.
    while figures and needed(name_width, figures, 1) > width and (len(figures) > 2 or name_width <= _SHORTEST_NAME):
        worst = max(range(len(figures)), key=lambda at: (figures[at][0].field != sort, figures[at][0].rank, at))
        figures = [each for at, each in enumerate(figures) if at != worst]
    name_width = max(1, min(name_width, width - needed(0, figures, 1)))
    return _Layout(look.heading, name_width, common, figures, is_wide=False)


def _text_width(figure: Figure, rows: Sequence[Row]) -> int:
    return max([len(figure.short.strip()), *(min(32, len(str(row.get(figure.field) or ""))) for row in rows)])


def _figure_text(value: Plain, *, is_wide: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        value = round(value) if value >= 10 or value == 0 else round(value, 1)
    text = str(value)
    return text if is_wide and len(text) <= _WIDE else short_figure(value, shown_in_line(text))


def _ended(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width)).rstrip()


def _cut(text: str, width: int) -> str:
    """Return a text cut to a width; names lose their middle, since they differ in their ends."""
    if cell_len(text) <= width:
        return text
    if width < 8:
        return _ended(text, width)
    head = width // 3
    tail = text[-(width - head - 1) :] if text.isascii() else ""
    cut = f"{text[:head]}~{tail}" if tail else set_cell_size(text, width)
    return set_cell_size(cut, width).rstrip()
