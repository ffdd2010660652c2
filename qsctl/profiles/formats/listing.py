"""The listing of `show client-profile NAME detail`: as the table with line breaks and as one flowed line.

Decides: the recognition of values. Line breaks and columns mean nothing: the labels of the listing, in its order, cut
the text into values, so that a captured terminal, a mail and a copied web page read alike. Prompts before it and the
legend with the users behind it are left out. `-` means a limit that the broker's platform decides.

Source: Message Delivery Resources, "Showing Client Profile Detail".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.declared.problems import refusal
from qsctl.profiles.client_profile import QUEUE_ORDER, ClientProfile, Threshold, burst_field, depth_field
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.ranges import BY_FIELD, limit_of, value_of
from qsctl.profiles.setting import ProfileSetting, ValueKind

BEGIN: Final = re.compile(r"Profile\s+Name\s*:\s*")
UNSTATED: Final = "-"
_ROW = re.compile(r"(?:^|\s):")
"""A name with this in it reads as a row."""
_END = re.compile(r"\bLegend\s*:")
_THRESHOLDS = re.compile(r"\bEvent\s+Threshold\s+Set\s+Value\s+[Cc]lear\s+Value[\s-]*")
_HEAD = re.compile(r"Profile\s+Name\s*:\s*(\S+)\s+(?:Message\s+VPN\s*:\s*(\S+))?")
_LEVEL: Final = r"(\d{1,12}%\s*\((?:\d{1,12}|-)\)|\d{1,12}%?)"
_SECTION_WIDTH: Final = 40


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its labels. A heading without a label of its own precedes the first one."""

    heading: str
    fields: tuple[str, ...]


SECTIONS: Final[tuple[Section, ...]] = (
    Section("Queue Max Depths", tuple(map(depth_field, QUEUE_ORDER))),
    Section("Priority Queue Min Burst", tuple(map(burst_field, QUEUE_ORDER))),
    Section(
        "Message Spool",
        (
            "allow_guaranteed_message_send", "allow_guaranteed_message_receive", "allow_guaranteed_endpoint_create",
            "allow_transacted_sessions", "max_transacted_sessions", "max_endpoints_per_username", "max_egress_flows",
            "max_ingress_flows", "copy_from_queue", "copy_from_topic_endpoint",
        ),
    ),
    Section("TCP", ("tcp_mss_bytes", "tcp_initial_window_segments", "tcp_max_window_kb")),
    Section("Keepalive", ("tcp_keepalive_count", "tcp_keepalive_idle_s", "tcp_keepalive_interval_s")),
    Section("Eliding", ("eliding_enabled", "eliding_max_topics", "eliding_delay_ms")),
    Section("Web Transport", ("web_inactive_timeout_s", "web_max_payload_bytes")),
    Section("Replication", ("allow_clients_when_standby",)),
    Section("", ("max_connections_per_username", "max_smf_connections_per_username",
                 "max_web_connections_per_username", "max_subscriptions", "allow_bridge_connections")),
)  # fmt: skip
THRESHOLDS: Final = (
    "subscriptions_threshold", "connections_per_username_threshold", "smf_connections_per_username_threshold",
    "web_connections_per_username_threshold", "endpoint_spool_usage_threshold", "transacted_sessions_threshold",
    "endpoints_per_username_threshold", "egress_flows_threshold", "ingress_flows_threshold",
)  # fmt: skip
_UNITS: Final = {"segments": "", "probes": "", "flows": "", "endpoints": "", "sessions": "", "connections": "",
                 "subscriptions": "", "topics": ""}  # fmt: skip
_SPOOL_WORDS: Final = {True: "allow", False: "deny"}
_WORDS: Final = {True: "Yes", False: "No"}


def _pattern(heading: str, label: str) -> re.Pattern[str]:
    words = [re.escape(word) for word in f"{heading} {label}".split()]
    return re.compile(r"(?<![^\s)])" + r"\s+".join(words) + r"\s*:")


def _patterns() -> Iterator[tuple[ProfileSetting, re.Pattern[str]]]:
    for section in SECTIONS:
        for number, field in enumerate(section.fields):
            setting = BY_FIELD[field]
            yield setting, _pattern(section.heading if number == 0 else "", setting.listing)


_LABELS: Final = tuple(_patterns())
_FIRST_OF_SECTION: Final = frozenset(section.fields[0] for section in SECTIONS)


def read(text: str, drafts: Drafts) -> None:
    """Add the profiles of a listing."""
    starts = [match.start() for match in BEGIN.finditer(text)]
    line = 1 + text.count("\n", 0, starts[0]) if starts else 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        _read_profile(text[start:end], line, drafts)
        line += text.count("\n", start, end)


def _read_profile(text: str, line: int, drafts: Drafts) -> None:
    head = _HEAD.match(text)
    if head is None:
        drafts.error("the profile has no name", line=line, allowed="Profile Name : NAME")
        return
    draft = drafts.begin(head[1], head[2], line=line)
    if draft is None:
        return
    legend = _END.search(text)
    body = text[: legend.start()] if legend else text
    table = _THRESHOLDS.search(body)
    settings = body[: table.start()] if table else body
    found = list(_cut(settings, head.end()))
    for setting, value, at in found:
        _put(drafts, draft, setting, value, line + text.count("\n", 0, at))
    if not found:
        drafts.error("no setting of the listing is here", line=line, place=draft.place,
                     allowed="Queue Max Depths, Priority Queue Min Burst and so on")  # fmt: skip
    if table:
        _read_thresholds(drafts, draft, body, table.end(), line)


def _cut(text: str, at: int) -> Iterator[tuple[ProfileSetting, str, int]]:
    """Yield each setting with the text up to the next label, and its line.

    A label that the text lacks is not searched for in later sections.
    """
    places: list[tuple[ProfileSetting, int, int]] = []
    # A heading bounds the section before it, so that a label missing there is not taken from a later section.
    heads = {setting.field: found for setting, pattern in _LABELS
             if setting.field in _FIRST_OF_SECTION and (found := pattern.search(text, at))}  # fmt: skip
    for index, (setting, pattern) in enumerate(_LABELS):
        later = [heads[each.field].start() for each, _ in _LABELS[index + 1 :] if each.field in heads]
        found = pattern.search(text, at, min(later, default=len(text)))
        if found is not None:
            places.append((setting, found.start(), found.end()))
            at = found.end()
    # The heading of the next section is between the last value and the next label, as part of that label.
    for (setting, _, start), end in zip(places, [*(each[1] for each in places[1:]), len(text)], strict=False):
        yield setting, text[start:end], start


def _put(drafts: Drafts, draft: Draft, setting: ProfileSetting, text: str, line: int) -> None:
    raw: object = _name(text) if setting.kind is ValueKind.TEXT else _first_word(setting, text)
    if raw == UNSTATED and setting.is_optional:
        raw = None
    drafts.put(draft, setting, raw, line=line, name=setting.listing)


def _name(text: str) -> str:
    """Return a name, which may be folded into several lines.

    Only its first line counts where a row of another broker version follows.
    """
    name = " ".join(text.split())
    return " ".join(text.partition("\n")[0].split()) if _ROW.search(name) else name


def _first_word(setting: ProfileSetting, text: str) -> str:
    """Return a value without its unit, and without a row of another broker version that follows it."""
    lines = [" ".join(each.split()) for each in text.splitlines()]
    value = next((each for each in lines if each), "")
    word, _, rest = value.partition(" ")
    for unit in (setting.unit, _unit(setting)):
        rest = rest.removeprefix(unit).strip()
    is_folded = any(unit.startswith(rest) for unit in (setting.unit, _unit(setting)))
    return word if not rest or is_folded or ":" in rest else value


def _read_thresholds(drafts: Drafts, draft: Draft, text: str, at: int, line: int) -> None:
    for field in THRESHOLDS:
        setting = BY_FIELD[field]
        words = r"\s+".join(re.escape(word) for word in setting.listing.split())
        found = re.compile(rf"(?<!\S){words}\s+{_LEVEL}\s+{_LEVEL}(?!\S)").search(text, at)
        if found is not None:
            levels = _levels(setting, found[1], found[2])
            here = line + text.count("\n", 0, found.start())
            drafts.put(draft, setting, levels, line=here, name=setting.listing)
        elif re.compile(rf"(?<!\S){words}(?!\S)").search(text, at):
            drafts.error(f"the levels of {setting.listing} cannot be read", line=line, place=draft.place,
                         allowed="set and clear as 80%(4000000) and 60%(3000000), or as numbers")  # fmt: skip


def _levels(setting: ProfileSetting, set_at: str, clear_at: str) -> dict[str, object]:
    """Return both levels of a threshold in percent if the listing has them or the setting no limit, else as counts."""
    if not setting.limit or "%" in set_at:
        return {"set_percent": set_at.partition("%")[0], "clear_percent": clear_at.partition("%")[0]}
    return {"set_value": set_at, "clear_value": clear_at}


def write(profiles: Selected) -> str:
    """Return the listings of the profiles, one after the other.

    Raises:
        InvalidFile: a name reads as a label of the listing.
    """
    return "\n".join(detail(profile, fields) for profile, fields in profiles)


def detail(
    profile: ClientProfile, fields: frozenset[str] | None = None, users: Sequence[tuple[str, str, int]] = ()
) -> str:
    """Return the listing of one profile.

    Args:
        profile: the profile to list.
        fields: the fields to show; None: all of the listing.
        users: rows below the legend, which are not settings: type (CU, UB, RB, AG), name, number of active clients.
    """
    fields = shown_fields() if fields is None else fields
    lines = [_line("Profile Name", profile.name), f"Message VPN: {profile.message_vpn}", ""]
    lines.append("(G-Guaranteed, D-Direct, C-Control)")
    for section in SECTIONS:
        indent = ""
        if section.heading:
            lines.append(section.heading)
            indent = "  "
        lines += [_line(f"{indent}{BY_FIELD[field].listing}", _text(profile, BY_FIELD[field]))
                  for field in section.fields if field in fields]  # fmt: skip
    lines += ["", *_threshold_lines(profile, fields), "", *_legend(users)]
    return "\n".join(lines) + "\n"


def _line(label: str, text: str) -> str:
    return f"{label:<{_SECTION_WIDTH}}: {text}".rstrip()


def _unit(setting: ProfileSetting) -> str:
    return _UNITS.get(setting.unit, setting.unit)


def _text(profile: ClientProfile, setting: ProfileSetting) -> str:
    value = value_of(profile, setting)
    if value is None:
        return UNSTATED
    if isinstance(value, bool):
        is_spool = setting.cli[0] == "message-spool"
        return (_SPOOL_WORDS if is_spool else _WORDS)[value]
    if isinstance(value, str):
        _check_name(profile, setting, value)
        return value
    unit = _unit(setting)
    if setting.field == "tcp_mss_bytes":
        unit = ""
    return f"{value} {unit}".rstrip()


def _check_name(profile: ClientProfile, setting: ProfileSetting, value: str) -> None:
    is_row = any(pattern.search(value) for pattern in (_ROW, BEGIN, _END, _THRESHOLDS))
    if is_row or any(pattern.search(f" {value} :") for _, pattern in _LABELS):
        raise refusal(
            f"client profile {profile.name}", f"{setting.listing} is {value!r}: in a listing that reads as a label",
            suggestion="Choose another format.",
        )  # fmt: skip


def _threshold_lines(profile: ClientProfile, fields: frozenset[str]) -> list[str]:
    rows = []
    for field in THRESHOLDS:
        setting = BY_FIELD[field]
        value = value_of(profile, setting)
        assert isinstance(value, Threshold)
        if field in fields:
            limit = limit_of(profile, setting)
            levels = [_level(setting, each, value.is_percent, limit) for each in (value.set_at, value.clear_at)]
            rows.append([setting.listing, *levels])
    widths = (34, 16, 16)
    return [
        _columns(("Event Threshold", "Set Value", "clear Value"), widths),
        _columns(["-" * width for width in widths], widths),
        *(_columns(row, widths) for row in rows),
    ]


def _level(setting: ProfileSetting, level: int, is_percent: bool, limit: int | None) -> str:
    if not is_percent or not setting.limit:
        return str(level)
    return f"{level}%({UNSTATED if limit is None else limit * level // 100})"


def _legend(users: Sequence[tuple[str, str, int]]) -> list[str]:
    widths = (4, 64, 8)
    return [
        "Legend:",
        "User Type - CU (client-username)",
        "            UB (unidirectional bridge [remote message-vpn])",
        "            RB (replication bridge)",
        "            AG (authorization group)",
        "",
        _columns(("User", "Name", "# Active"), widths),
        _columns(("Type", "", "Client"), widths),
        _columns(["-" * width for width in widths], widths),
        *(_columns((kind, name, str(count)), widths) for kind, name, count in users),
    ]


def _columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def shown_fields() -> frozenset[str]:
    """Return the fields that the listing has a line for."""
    return frozenset({field for section in SECTIONS for field in section.fields} | set(THRESHOLDS))
