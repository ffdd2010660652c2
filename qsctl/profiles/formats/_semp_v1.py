"""SEMP v1 XML: the reply to `show client-profile`, also in several pages one behind the other.

Decides: which elements are settings; those that a broker only reports are left out. Text that a terminal wrote around
the replies is ignored. Event thresholds are read where a reply has them; they are not written. Namespaces and
`semp-version` mean nothing here. A last page with a `more-cookie` is not the end of the reply, and causes a warning.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from html import escape
from typing import Final

from lxml import etree

from qsctl.config.files.document import DocumentLimits, parse_document
from qsctl.declared.problems import InvalidFile, line_of, shown
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.listings.captures import parts_of
from qsctl.profiles.listings.semp import PAGE
from qsctl.profiles.ranges import SETTINGS, value_of
from qsctl.profiles.setting import ValueKind

LIMITS: Final = DocumentLimits(size_bytes=16 * 1024 * 1024, elements=500_000)
_PAGE_LIMITS: Final = DocumentLimits(size_bytes=2 * LIMITS.size_bytes, elements=LIMITS.elements)
"""A page follows the line breaks of those before it."""
_PAGES_MAX: Final = 200
_END = re.compile(rb"</(?:[A-Za-z0-9_]+:)?rpc-reply\s*>")
_DECLARATION = re.compile(rb"\s*<\?xml[^>]*\?>")
_THRESHOLDS: Final = "event-configuration/event-thresholds"
_LEVELS: Final = {
    "set-percentage": "set_percent", "clear-percentage": "clear_percent", "set-value": "set_value",
    "clear-value": "clear_value",
}  # fmt: skip
_BY_EVENT: Final = {
    " ".join(setting.cli[1:-1]).replace("-", " "): setting
    for setting in SETTINGS
    if setting.kind is ValueKind.THRESHOLD
}
"""By the words of the CLI below `event`, which the names of events in replies have too."""
_BY_PATH: Final = {setting.semp_v1: setting for setting in SETTINGS if setting.semp_v1}


def read(data: bytes, drafts: Drafts) -> None:
    """Add the profiles of a reply.

    Of several pages, one that is not XML is left out, with a problem.

    Raises:
        InvalidFile: it is not a reply in XML.
    """
    is_whole = True
    data = _replies(data, drafts.file)
    is_several = sum(1 for _ in itertools.islice(_END.finditer(data), 2)) > 1
    for page in _pages(data):
        try:
            root = parse_document(page, drafts.file, _PAGE_LIMITS).root
        except InvalidFile as error:
            if not is_several:
                raise
            drafts.problems.extend(error.problems)
            continue
        is_whole = not any(_local(each) == "more-cookie" for each in root.iterdescendants("{*}*"))
        _read_page(root, drafts)
    if not is_whole:
        drafts.warn(
            "the reply is incomplete: its last page has a more-cookie", hint="Send the request in the more-cookie."
        )


def _replies(data: bytes, file: str) -> bytes:
    """Return the replies of a capture without the terminal's text around them; line numbers stay those of the file."""
    text = data.decode("utf-8", "replace")
    page = PAGE.search(text)
    if page is None or "<!DOCTYPE" in text[: page.start()].upper():
        return data  # whatever it is: one document, and the parser names what is wrong
    return parts_of(text, file).semp.encode()


def _pages(data: bytes) -> Iterator[bytes]:
    """Yield each reply as a document of its own, its lines numbered as in the file."""
    ends = [match.end() for match in itertools.islice(_END.finditer(data), _PAGES_MAX)]
    if len(ends) <= 1:
        yield data
        return
    start = line = 0
    for end in ends:
        yield _page(data[start:end], line)
        line += data.count(b"\n", start, end)
        start = end
    if data[start:].strip():
        yield _page(data[start:], line)


def _page(data: bytes, line: int) -> bytes:
    """Return a page without its declaration, after as many line breaks as precede it in the file."""
    declaration = _DECLARATION.match(data)
    if declaration is not None:
        data = b"\n" * declaration[0].count(b"\n") + data[declaration.end() :]
    return b"\n" * line + data


def _read_page(root: etree._Element, drafts: Drafts) -> None:
    for result in root.iter("{*}execute-result"):
        if result.get("code", "ok") != "ok":
            reason = shown(str(result.get("reason") or result.get("code")))
            drafts.error(f"the broker refused the request: {reason}", line=line_of(result), place="execute-result")
    for profile in root.iter("{*}profile"):
        parent = profile.getparent()
        if parent is not None and _local(parent) == "profiles":
            _read_profile(profile, drafts)


def _read_profile(profile: etree._Element, drafts: Drafts) -> None:
    name = profile.findtext("{*}name", "").strip()
    vpn = profile.findtext("{*}message-vpn", "").strip() or None
    draft = drafts.begin(name, vpn, line=line_of(profile))
    if draft is None:
        return
    for element in profile.iterdescendants("{*}*"):
        path = _path(element, profile)
        setting = _BY_PATH.get(path)
        if setting is not None:
            text = (element.text or "").strip()
            drafts.put(draft, setting, text, line=line_of(element), name=setting.semp_v1)
        elif path == _THRESHOLDS:
            _read_threshold(element, draft, drafts)


def _read_threshold(element: etree._Element, draft: Draft, drafts: Drafts) -> None:
    """Read the levels of one event, which a broker gives as percentages, as counts, or as both."""
    name = " ".join(element.findtext("{*}name", "").replace("-", " ").split())
    setting = _BY_EVENT.get(name)
    if setting is None:
        drafts.warn("this event is not one of a client profile that is known", line=line_of(element),
                    place=f"{draft.place}/{_THRESHOLDS}", found=name, hint="It is left out.")  # fmt: skip
        return
    levels = {level: element.findtext(f"{{*}}{tag}", "").strip() for tag, level in _LEVELS.items()}
    levels = {level: text for level, text in levels.items() if text}
    if levels:
        drafts.put(draft, setting, levels, line=line_of(element), name=f"{_THRESHOLDS}[{name}]")


def _path(element: etree._Element, below: etree._Element) -> str:
    steps: list[str] = []
    at: etree._Element | None = element
    while at is not None and at is not below:
        steps.append(_local(at))
        at = at.getparent()
    return "/".join(reversed(steps))


def _local(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def write(profiles: Selected) -> str:
    """Return the reply of a broker that has these profiles; settings without a known SEMP v1 name are left out."""
    lines = ['<rpc-reply semp-version="soltr/10_0">', "  <rpc><show><client-profile><profiles>"]
    for profile, fields in profiles:
        lines += ["    <profile>", f"      <name>{escape(profile.name)}</name>"]
        lines.append(f"      <message-vpn>{escape(profile.message_vpn)}</message-vpn>")
        lines += [f"      {line}" for line in _settings(profile, fields)]
        lines.append("    </profile>")
    lines += ["  </profiles></client-profile></show></rpc>", '  <execute-result code="ok"/>', "</rpc-reply>"]
    return "\n".join(lines) + "\n"


def _settings(profile: ClientProfile, fields: frozenset[str]) -> list[str]:
    lines = []
    for setting in _BY_PATH.values():
        value = value_of(profile, setting)
        if setting.field in fields and value is not None:
            *outer, name = setting.semp_v1.split("/")
            text = str(value).lower() if isinstance(value, bool) else escape(str(value))
            opened = "".join(f"<{each}>" for each in outer)
            closed = "".join(f"</{each}>" for each in reversed(outer))
            lines.append(f"{opened}<{name}>{text}</{name}>{closed}")
    return lines
