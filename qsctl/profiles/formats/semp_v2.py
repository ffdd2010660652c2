"""SEMP v2 JSON: the reply to a GET, a backup or the cloud's document, and the body of a PATCH.

Decides: which objects are client profiles. Known are one object, a list, `data` with either, backups that nest
`clientProfiles` in `msgVpns`, the cloud's `clientProfile`, and links of DMR clusters, whose attributes have the prefix
`clientProfile`. Numbers may be texts; an omitted attribute has its default.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from qsctl.declared.problems import refusal
from qsctl.profiles.client_profile import ClientProfile, Threshold
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.listings.captures import json_of
from qsctl.profiles.ranges import BY_SEMP_V2, SETTINGS, value_of
from qsctl.profiles.setting import ProfileSetting, Value

_PREFIX: Final = "clientProfile"
_LINK = re.compile(r"clientProfile(Queue|Tcp)[A-Z]")
_IGNORED = re.compile(r"maxEffective[A-Z]\w*|links|collections|meta|name|id|type")
"""Monitoring attributes that a GET adds, and those around a profile of the cloud; they cannot be set."""
LEVELS: Final = {
    "setPercent": "set_percent",
    "clearPercent": "clear_percent",
    "setValue": "set_value",
    "clearValue": "clear_value",
}
_HOLDERS: Final = ("data", "clientProfiles", "clientProfile", "msgVpns", "dmrClusters", "links")
_NESTED_MAX: Final = 8
_BEGINS = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
_ATTRIBUTE = re.compile(rf'"(?:clientProfileName|{"|".join(BY_SEMP_V2)})"[ \t]*:')


class _Object(dict[str, Any]):
    """A JSON object that records which of its names occurred more than once, and how often."""

    repeated: Mapping[str, int] = MappingProxyType({})


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        made.repeated = {name: count for name, count in counts.items() if count > 1}
    return made


def _no_constant(name: str) -> object:
    raise ValueError(name)


def read(text: str, drafts: Drafts) -> None:
    """Add the profiles of a JSON text, or of the documents in a capture.

    Raises:
        InvalidFile: it is not JSON, or nested too deeply.
    """
    text, around = json_of(text)
    if around:
        count = "1 line" if around == 1 else f"{around} lines"
        drafts.warn(f"{count} around the JSON belong to no client profile", hint="They are left out.")
    lines = _Lines(text)
    for root in _documents(text, drafts.file):
        for found, message_vpn in _objects(root, None, 0):
            _read_object(found, message_vpn, drafts, lines)


def _documents(text: str, file: str) -> Iterator[Any]:
    """Yield each JSON document of a text that contains only documents."""
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
    at = len(text) - len(text.lstrip())
    while at < len(text):
        try:
            root, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise refusal(file, f"this is not JSON: {error.msg}", line=error.lineno) from None
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else "a number is none"
            raise refusal(file, f"this is not valid JSON: {reason}") from None
        yield root
        while text[at : at + 1].isspace():
            at += 1


def in_a_capture(text: str) -> bool:
    """Return whether a line begins JSON with an attribute of a client profile."""
    return _ATTRIBUTE.search(text) is not None and _BEGINS.search(text) is not None


def _objects(value: Any, message_vpn: object, depth: int) -> Iterator[tuple[_Object, object]]:
    """Yield each object that is a profile or a link, with its message VPN."""
    if depth > _NESTED_MAX:
        return
    if isinstance(value, list):
        for each in value:
            yield from _objects(each, message_vpn, depth + 1)
    elif isinstance(value, _Object):
        if isinstance(value.get("clientProfileName"), str) or any(map(_LINK.match, value)):
            yield value, message_vpn
            return
        inside = value.get("msgVpnName", message_vpn)
        holders = [name for name in _HOLDERS if isinstance(value.get(name), list | dict)]
        if not holders and _is_mostly_of_a_profile(value):
            yield value, message_vpn
        for name in holders:
            yield from _objects(value[name], inside, depth + 1)


def _is_mostly_of_a_profile(value: _Object) -> bool:
    """Return whether at least half of the attributes of an object without a name are a profile's.

    Message VPNs and queues share some of the attributes.
    """
    known = sum(name in BY_SEMP_V2 for name in value)
    return known > 0 and 2 * known >= sum(_IGNORED.fullmatch(name) is None for name in value)


def _read_object(found: _Object, message_vpn: object, drafts: Drafts, lines: _Lines) -> None:
    is_link = "clientProfileName" not in found and any(map(_LINK.match, found))
    if is_link:
        name: object = re.sub(r"[^A-Za-z0-9_-]", "_", str(found.get("remoteNodeName", "link")))[:32]
    else:
        own = found.get("name")
        name = found.get("clientProfileName", own if isinstance(own, str) else "default")
    anchor = "remoteNodeName" if is_link else "clientProfileName"
    draft = drafts.begin(name, found.get("msgVpnName", message_vpn), line=lines.next(anchor) if anchor in found else 0)
    for key, raw in found.items():
        line = lines.next(key) if key != anchor else 0
        for _ in range(found.repeated.get(key, 1) - 1):
            line = lines.next(key)
        if draft is None or key in {"clientProfileName", "msgVpnName"}:
            continue
        attribute = _without_prefix(key) if is_link else key
        setting = BY_SEMP_V2.get(attribute) if attribute else None
        if key in found.repeated:
            drafts.error(
                f"{key} occurs twice in one object", line=line, place=f"{draft.place}/{key}", found=raw, allowed="once"
            )
        elif setting is not None:
            _put(drafts, draft, setting, raw, line, key)
        elif not is_link and not _IGNORED.fullmatch(key):
            drafts.unknown(draft, key, BY_SEMP_V2, line=line, found=raw)


def _without_prefix(key: str) -> str:
    rest = key.removeprefix(_PREFIX) if key.startswith(_PREFIX) else ""
    return rest[:1].lower() + rest[1:]


def _put(drafts: Drafts, draft: Draft, setting: ProfileSetting, raw: object, line: int, name: str) -> None:
    if isinstance(raw, _Object):
        raw = {LEVELS.get(key, key): level for key, level in raw.items()}
    drafts.put(draft, setting, raw, line=line, name=name)


class _Lines:
    """The line of each attribute: parsed JSON objects have no positions, but their names are in the text's order."""

    def __init__(self, text: str) -> None:
        self._places: dict[str, list[int]] = {}
        self._taken: dict[str, int] = {}
        line, at = 1, 0
        for match in re.finditer(r'"([A-Za-z0-9]{1,100})"\s*:', text):
            line += text.count("\n", at, match.start())
            at = match.start()
            self._places.setdefault(match[1], []).append(line)

    def next(self, name: str) -> int:
        """Return the line of the next attribute of this name; 0 if none is found, as for one written with escapes."""
        number = self._taken.get(name, 0)
        self._taken[name] = number + 1
        places = self._places.get(name, [])
        return places[number] if number < len(places) else 0


def attributes_of(profile: ClientProfile, fields: frozenset[str]) -> dict[str, object]:
    """Return the SEMP v2 attributes of these fields; a limit that the platform decides is left out."""
    found: dict[str, object] = {}
    for setting in SETTINGS:
        value = value_of(profile, setting)
        if setting.field in fields and value is not None:
            found[setting.semp_v2] = plain(value)
    return found


def plain(value: Value) -> object:
    """Return a setting's value as a JSON value; that of a threshold is an object with its two levels."""
    if not isinstance(value, Threshold):
        return value
    unit = "Percent" if value.is_percent else "Value"
    return {f"set{unit}": value.set_at, f"clear{unit}": value.clear_at}


def write(profiles: Selected) -> str:
    """Return the body of a PATCH; for several profiles, a list under `data`."""
    bodies = [
        {"clientProfileName": profile.name, "msgVpnName": profile.message_vpn, **attributes_of(profile, fields)}
        for profile, fields in profiles
    ]
    return json.dumps(bodies[0] if len(bodies) == 1 else {"data": bodies}, indent=2, ensure_ascii=False) + "\n"
