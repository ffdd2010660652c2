"""CSV: a profile a row with its settings in columns, or a setting a row as `client-profile show -o csv` prints them.

Decides: which columns are settings: their heading is the setting's name in any format's spelling. The two levels of a
threshold are one cell, `80%/60%` or `900/700`; an empty cell states nothing. Cells are separated by commas, semicolons
or tabs, whichever the heading has most of.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Final

from qsctl.declared.problems import refusal
from qsctl.profiles._heading import heading_of
from qsctl.profiles.client_profile import Threshold
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.names import find_setting
from qsctl.profiles.ranges import BY_SEMP_V2, DEFAULT_NAME, SETTINGS, value_of
from qsctl.profiles.setting import ProfileSetting, Value

BYTES_MAX: Final = 4 * 1024 * 1024
_NAMES: Final = frozenset({"clientprofilename", "clientprofile", "profile", "profilename", "name"})
_MESSAGE_VPNS: Final = frozenset({"msgvpnname", "messagevpn", "messagevpnname", "msgvpn", "vpn"})
_SETTING, _VALUE = "setting", "value"


def _flat(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def looks_like_csv(text: str) -> bool:
    """Return whether the first line is a heading of CSV: a profile's name and a setting, or a setting and a value."""
    cells, _ = heading_of(text)
    flat = {_flat(cell) for cell in cells}
    if {_SETTING, _VALUE} <= flat:
        return True
    return len(cells) > 1 and bool(flat & _NAMES) and any(find_setting(cell, SETTINGS) for cell in cells)


def read(text: str, drafts: Drafts) -> None:
    """Add the profiles of a table.

    Raises:
        InvalidFile: it is not CSV.
    """
    cells, delimiter = heading_of(text)
    flat = [_flat(cell) for cell in cells]
    before = len(text) - len(text.lstrip())
    reader = csv.reader(io.StringIO(text[before:], newline=""), delimiter=delimiter)
    first = text.count("\n", 0, before)
    try:
        next(reader, None)
        rows = ((row, first + reader.line_num) for row in reader if any(cell.strip() for cell in row))
        if {_SETTING, _VALUE} <= set(flat):
            _read_settings(rows, flat, drafts)
        else:
            _read_profiles(rows, cells, flat, drafts)
    except csv.Error as error:
        raise refusal(drafts.file, f"this is not CSV: {error}", line=first + reader.line_num) from None


def _column(flat: Sequence[str], names: frozenset[str]) -> int | None:
    return next((number for number, name in enumerate(flat) if name in names), None)


def _read_profiles(
    rows: Iterator[tuple[list[str], int]], cells: Sequence[str], flat: Sequence[str], drafts: Drafts
) -> None:
    name_at, vpn_at = _column(flat, _NAMES), _column(flat, _MESSAGE_VPNS)
    settings = [
        None if number in {name_at, vpn_at} else find_setting(cell, SETTINGS) for number, cell in enumerate(cells)
    ]
    has_unknown = True
    for row, line in rows:
        name = row[name_at].strip() if name_at is not None and name_at < len(row) else DEFAULT_NAME
        vpn = row[vpn_at].strip() if vpn_at is not None and vpn_at < len(row) else ""
        draft = drafts.begin(name, vpn or None, line=line)
        if draft is None:
            continue
        for number, text in enumerate(row[: len(cells)]):
            setting = settings[number]
            if setting is not None and text.strip():
                _put(drafts, draft, setting, text, line, cells[number])
            elif setting is None and has_unknown and number not in {name_at, vpn_at}:
                drafts.unknown(draft, cells[number], BY_SEMP_V2, line=line, found=text)
        has_unknown = False  # a heading is not known once for all rows


def _read_settings(rows: Iterator[tuple[list[str], int]], flat: Sequence[str], drafts: Drafts) -> None:
    """Read one profile from rows with a setting and a value each; without a column for its name it is `default`."""
    setting_at, value_at = flat.index(_SETTING), flat.index(_VALUE)
    name_at, vpn_at = _column(flat, _NAMES), _column(flat, _MESSAGE_VPNS)
    for row, line in rows:
        cells = [*row, *[""] * (len(flat) - len(row))]
        name = cells[name_at].strip() if name_at is not None else DEFAULT_NAME
        vpn = cells[vpn_at].strip() if vpn_at is not None else ""
        draft = drafts.begin(name, vpn or None, line=line, again=True)
        if draft is None:
            continue
        spelled = cells[setting_at].strip()
        setting = find_setting(spelled, SETTINGS)
        if setting is None:
            drafts.unknown(draft, spelled, BY_SEMP_V2, line=line, found=cells[value_at])
        elif cells[value_at].strip():
            _put(drafts, draft, setting, cells[value_at], line, spelled)


def _put(drafts: Drafts, draft: Draft, setting: ProfileSetting, text: str, line: int, name: str) -> None:
    raw = setting.levels_of(text)
    drafts.put(draft, setting, text.strip() if raw is None else raw, line=line, name=name)


def write(profiles: Selected) -> str:
    """Return a table with a profile a row, and a column for each field that any of them has."""
    fields = [setting for setting in SETTINGS if any(setting.field in chosen for _, chosen in profiles)]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["clientProfileName", "msgVpnName", *(setting.semp_v2 for setting in fields)])
    for profile, chosen in profiles:
        cells = [_cell(value_of(profile, setting)) if setting.field in chosen else "" for setting in fields]
        writer.writerow([profile.name, profile.message_vpn, *cells])
    return stream.getvalue()


def _cell(value: Value) -> str:
    if isinstance(value, Threshold):
        sign = "%" if value.is_percent else ""
        return f"{value.set_at}{sign}/{value.clear_at}{sign}"
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
