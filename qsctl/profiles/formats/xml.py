"""Our own XML: `<profile>` as scenarios have it, in `<profiles>` or in a scenario (`schemas/qsctl_simulation.xsd`).

Decides: which settings of a profile a scenario has: queues, TCP windows, eliding. Settings of the simulator alone
(weights, the transmit queue, admission) are left out here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from html import escape
from typing import Final

from lxml import etree

from qsctl.config.files.document import DocumentLimits, attributes_of, parse_document
from qsctl.declared.problems import line_of
from qsctl.errors import UsageError
from qsctl.instant import MILLISECOND_NS, parse_duration
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.ranges import SETTINGS, value_of
from qsctl.profiles.setting import ProfileSetting

LIMITS: Final = DocumentLimits(size_bytes=16 * 1024 * 1024, elements=500_000)
ROOTS: Final = frozenset({"profiles", "profile", "scenario"})
_BY_PATH: Final = {setting.scenario: setting for setting in SETTINGS if setting.scenario}
_SIMULATOR_ONLY: Final = {"queue": {"weight"}, "tcp": {"transmit-queue"}, "eliding": set[str]()}
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(B|KB|KiB|MB|MiB|GB|GiB)?")
_SCALE: Final = {"B": Decimal(1) / 1024, "K": Decimal(1), "M": Decimal(1024), "G": Decimal(1024**2)}


def read(data: bytes, drafts: Drafts) -> None:
    """Add the profiles of a file.

    Raises:
        InvalidFile: it is not XML, or XML of another kind.
    """
    root = parse_document(data, drafts.file, LIMITS).root
    for profile in [root] if root.tag == "profile" else root.iterchildren("profile"):
        _read_profile(profile, drafts)


def _read_profile(profile: etree._Element, drafts: Drafts) -> None:
    draft = drafts.begin(profile.get("name"), line=line_of(profile))
    if draft is None:
        return
    file = profile.get("file")
    if file is not None:
        drafts.error("the profile is in another file", line=line_of(profile), place=draft.place, found=file,
                     hint=f"Read {file} itself.")  # fmt: skip
        return
    for element in profile.iterchildren("{*}*"):
        tag = str(element.tag)
        if tag not in _SIMULATOR_ONLY:
            drafts.unknown(draft, tag, _SIMULATOR_ONLY, line=line_of(element))
            continue
        key = f"{tag}[{element.get('name')}]" if tag == "queue" else tag
        for name, text in attributes_of(element).items():
            if (tag == "queue" and name == "name") or name in _SIMULATOR_ONLY[tag]:
                continue
            setting = _BY_PATH.get(f"{key}/{name}")
            if setting is not None:
                _put(drafts, draft, setting, text, line_of(element))
            else:
                known = [each.scenario.partition("/")[2] for each in _BY_PATH.values() if each.scenario.startswith(tag)]
                drafts.unknown(draft, f"{key}/@{name}", [f"{key}/@{each}" for each in known], line=line_of(element),
                               found=text)  # fmt: skip


def _put(drafts: Drafts, draft: Draft, setting: ProfileSetting, text: str, line: int) -> None:
    convert = _CONVERT.get(setting.field)
    raw = text if convert is None else convert(text)
    if raw is None:
        place = f"{draft.place}/{setting.scenario}"
        allowed = f"{setting.allowed}, with its unit"
        drafts.error(f"{setting.scenario} has no valid value", line=line, place=place, found=text, allowed=allowed)
    else:
        drafts.put(draft, setting, raw, line=line, name=setting.scenario)


def _kilobytes(text: str) -> int | None:
    """Return a size in KB; None where the text is not one, or not whole KB. A number without a unit is in bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    amount = Decimal(found[1]) * _SCALE[(found[2] or "B")[0]]
    return int(amount) if amount == int(amount) else None


def _milliseconds(text: str) -> int | None:
    try:
        duration_ns = parse_duration(" ".join(text.split()))
    except (UsageError, ValueError):
        return None
    return None if duration_ns % MILLISECOND_NS else duration_ns // MILLISECOND_NS


_CONVERT: Final[Mapping[str, Callable[[str], int | None]]] = {
    "tcp_max_window_kb": _kilobytes,
    "eliding_delay_ms": _milliseconds,
}


def write(profiles: Selected) -> str:
    """Return a `<profiles>` file that a scenario can refer to."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<profiles>"]
    for profile, fields in profiles:
        inner = _elements(profile, fields)
        lines.append(f'  <profile name="{escape(profile.name)}"{"" if inner else "/"}>')
        lines += inner
        if inner:
            lines.append("  </profile>")
    return "\n".join([*lines, "</profiles>"]) + "\n"


def _elements(profile: ClientProfile, fields: frozenset[str]) -> list[str]:
    attributes: dict[str, list[str]] = {}
    for setting in _BY_PATH.values():
        if setting.field in fields:
            element, _, name = setting.scenario.partition("/")
            attributes.setdefault(element, []).append(f'{name}="{scenario_text(profile, setting)}"')
    lines = []
    for element, given in attributes.items():
        tag, _, key = element.rstrip("]").partition("[")
        named = [f'name="{key}"'] if key else []
        lines.append(f"    <{tag} {' '.join([*named, *given])}/>")
    return lines


def scenario_text(profile: ClientProfile, setting: ProfileSetting) -> str:
    """Return a value as a scenario writes it, with its unit."""
    value = value_of(profile, setting)
    if setting.field == "tcp_max_window_kb":
        return f"{value} KB"
    if setting.field == "eliding_delay_ms":
        return f"{value}ms"
    return str(value).lower()
