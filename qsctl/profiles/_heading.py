"""The heading of a table in CSV: its cells and their separator, for profiles and listings."""

from __future__ import annotations

import csv
from typing import Final

_COLUMNS_MAX: Final = 500
_DELIMITERS: Final = ",;\t"
_HEADING_CHARACTERS: Final = 20_000


def heading_of(text: str) -> tuple[list[str], str]:
    """Return the cells of the first line that is not blank, and their separator."""
    line = text.lstrip()[:_HEADING_CHARACTERS].split("\n", 1)[0].rstrip("\r")
    delimiter = max(_DELIMITERS, key=line.count)
    try:
        cells = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return [], delimiter
    return [cell.strip() for cell in cells[:_COLUMNS_MAX]], delimiter
