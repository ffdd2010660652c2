"""SEMP v1 replies: `rpc-reply/rpc/show/…`, one or several pages in a file.

Long replies come in pages, each a document with a `more-cookie` that requests the next one. A file may hold them one
after the other. The attribute `semp-version` is ignored. All limits on XML are those of the configuration's parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lxml.etree import _Element

from qsctl.config.files.document import DocumentLimits, parse_document, text_of
from qsctl.declared.problems import InvalidFile, ProblemList, error_at, line_of, path_of
from qsctl.profiles.listings import discards as d
from qsctl.profiles.listings._columns import (
    CONNECTION_COLUMNS,
    ENDPOINT_COLUMNS,
    SLOW_COLUMNS,
    SPOOL_COLUMNS,
    TableColumn,
)
from qsctl.profiles.listings.labels import COUNT, TEXT, YES_NO, LabelKind, Value, read_count
from qsctl.profiles.listings.model import (
    PRIORITY_QUEUES,
    ClientConnection,
    ClientQueues,
    Discards,
    EndpointUsage,
    ListedQueueStatistics,
    Listings,
    SlowSubscriber,
    SpoolUsage,
)
from qsctl.profiles.listings.problems import unread

LIMITS: Final = DocumentLimits(size_bytes=32 * 1024 * 1024)
MOST_PAGES: Final = 100_000

PAGE: Final = re.compile(r"(?:<\?xml[^>]{0,200}\?>\s{0,100})?<rpc-reply(?=[\s>/])")
"""Pattern of the beginning of a reply."""
_PAGE: Final = re.compile(PAGE.pattern.encode())
_CLOSE: Final = b"</rpc-reply>"
_QUEUE_ELEMENTS: Final = (
    "length-msgs", "length-work", "high-water-mark-work", "max-work", "discards-msgs", "delivered-msgs",
)  # fmt: skip
_CLIENT_ELEMENTS: Final = {
    "type": ("client_type", TEXT),
    "profile": ("client_profile", TEXT),
    "acl-profile": ("acl_profile", TEXT),
    "num-subscriptions": ("subscriptions", COUNT),
    "message-vpn": ("message_vpn", TEXT),
    "client-username": ("client_username", TEXT),
    "client-address": ("client_address", TEXT),
    "client-id": ("client_id", COUNT),
    "description": ("description", TEXT),
    "platform": ("platform", TEXT),
    "slow-subscriber": ("slow_subscriber", YES_NO),
    "eliding-enabled": ("eliding_enabled", YES_NO),
    "eliding-topics": ("eliding_topics", COUNT),
}
_NO_FIGURES: Final = frozenset({"N/A", "n/a", "-"})
"""The text of a reply where a figure does not apply."""
_FLAGS: Final = {"true": "Yes", "false": "No"}


@dataclass(slots=True)
class _FoundPage:
    clients: list[ClientQueues] = field(default_factory=list)
    slow: list[SlowSubscriber] = field(default_factory=list)
    connections: list[ClientConnection] = field(default_factory=list)
    discards: list[Discards] = field(default_factory=list)
    spools: list[SpoolUsage] = field(default_factory=list)
    endpoints: list[EndpointUsage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _SempReading:
    """The problems of one file; `offset` is the number of lines before the current page."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.offset = 0
        self.findings = ProblemList(name)

    def note(self, element: _Element, message: str, found: str = "", allowed: str = "") -> None:
        """Record a problem of an element, whose content is left out."""
        line = self.offset + line_of(element)
        self.findings.add(line, message, found, allowed, path=path_of(element))


def read_semp(data: bytes, name: str) -> Listings:
    """Read the replies in a file.

    Returns:
        Their listings; a value that cannot be read, an invalid page and a refusal are among the notes.

    Raises:
        InvalidFile: nothing can be read: it is not a reply, or a refusal; the message lists every problem of the file.
    """
    reading = _SempReading(name)
    found = _FoundPage()
    cookie = is_reply = False
    for number, page in enumerate(_pages(data, reading, found), 1):
        try:
            root = parse_document(page, name, LIMITS).root
        except InvalidFile as error:
            reading.findings.extend(
                replace(one, line=one.line + reading.offset if one.line else 0) for one in error.problems
            )
            continue
        cookie = root.find("more-cookie") is not None
        is_reply |= _read_page(root, reading, found, number)
    if cookie:
        found.notes.append(f"{name}: the last page has a more-cookie: the reply goes on in a page that is not there")
    listings = Listings(
        clients=tuple(found.clients),
        slow_subscribers=tuple(found.slow),
        connections=tuple(found.connections),
        discards=tuple(found.discards),
        spools=tuple(found.spools),
        endpoints=tuple(found.endpoints),
        notes=(*found.notes, *reading.findings.notes),
    )
    if reading.findings.problems and listings.is_empty and not is_reply:
        raise unread(reading.findings.problems)
    return listings


def _pages(data: bytes, reading: _SempReading, found: _FoundPage) -> Iterator[bytes]:
    """Yield each reply of the file, with `reading.offset` at its first line; the terminal's text around them is left
    out.

    Of a capture that begins with a prompt, a command line or the request, the replies are read.
    """
    starts = [match.start() for match in _PAGE.finditer(data)]
    if len(starts) > MOST_PAGES:
        raise unread([error_at(reading.name, 0, "the file has too many pages", allowed=f"at most {MOST_PAGES}")])
    before = data[: starts[0]].removeprefix(b"\xef\xbb\xbf").strip() if starts else b""
    if not starts or b"<!DOCTYPE" in before.upper():
        yield data  # any text: one document, and the parser reports the fault
        return
    around = len(before.splitlines())
    reading.offset = data.count(b"\n", 0, starts[0])
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        close = data.rfind(_CLOSE, start, end)
        page = data[start : end if close < 0 else close + len(_CLOSE)]
        around += len(data[start + len(page) : end].strip().splitlines())
        yield page
        reading.offset += data.count(b"\n", start, end)
    if around:
        lines = "1 line" if around == 1 else f"{around} lines"
        found.notes.append(f"{reading.name}: {lines} around the replies passed over")


def _read_page(root: _Element, reading: _SempReading, found: _FoundPage, number: int) -> bool:
    """Read one reply; return whether it shows something known, be it that nothing matched."""
    if root.tag not in {"rpc-reply", "show"}:
        reading.note(root, "this is not a reply of SEMP v1", found=f"<{root.tag}>", allowed="<rpc-reply>")
        return False
    refusal = root.find("parse-error")
    if refusal is None:
        refusal = root.find("permission-error")
    result = root.find("execute-result")
    if refusal is not None:
        reading.note(refusal, "the broker refused the request", found=text_of(refusal), allowed="a reply with figures")
        return False
    if result is not None and result.get("code") != "ok":
        said = f"{result.get('code', '')} {result.get('reason', '')}".strip()
        reading.note(result, "the broker answers with a failure", found=said, allowed='code="ok"')
        return False
    show = root if root.tag == "show" else root.find("rpc/show")
    if show is None:
        reading.note(root, "the reply shows nothing", allowed="rpc-reply/rpc/show/client, or …/show/stats/client")
        return False
    known = False
    for client in show.iterfind("client/*/client"):
        known = True
        _read_client(client, reading, found)
    for stats in show.iterfind("stats/client/global/stats"):
        known = True
        _read_discards(stats, "broker", reading, found)
    for vpn in show.iterfind("message-vpn/vpn"):
        stats_of_vpn = vpn.find("stats")
        if stats_of_vpn is not None:
            known = True
            _read_discards(stats_of_vpn, f"{d.MESSAGE_VPN}{_text(vpn, 'name')}", reading, found)
    known |= _read_spool(show, reading, found)
    known |= _read_endpoints(show.iterfind("queue/queues/queue"), d.QUEUE, reading, found)
    known |= _read_endpoints(show.iterfind("topic-endpoint/topic-endpoints/*"), d.TOPIC_ENDPOINT, reading, found)
    if not known and show.find("client") is None and show.find("queue") is None:
        inside = ", ".join(f"<{child.tag}>" for child in show) or "nothing"
        reading.note(
            show, f"page {number} has no known listing", found=inside,
            allowed="<client> with client-queue, connection, slow-subscriber or stats; <stats>; <message-vpn>; "
            "<message-spool>; <queue> or <topic-endpoint>",
        )  # fmt: skip
        return False
    return True


def _read_spool(show: _Element, reading: _SempReading, found: _FoundPage) -> bool:
    """Read a reply to `show message-spool …`: usage and discards, of the broker and of message VPNs."""
    known = False
    for spool in show.iterfind("message-spool/message-spool-stats"):
        known = True
        _read_discards(spool, d.SPOOL, reading, found, "spool")
    for info in show.iterfind("message-spool/message-spool-info"):
        known = True
        found.spools.append(SpoolUsage(d.SPOOL, **_columns(info, SPOOL_COLUMNS, reading)))
    for vpn in show.iterfind("message-spool/message-vpn/vpn"):
        known = True
        of = d.of_message_vpn(_text(vpn, "name"))
        usage = _columns(vpn, SPOOL_COLUMNS, reading)
        if usage:
            found.spools.append(SpoolUsage(of, **usage))
        stats = vpn.find("message-spool-stats")
        stats = vpn.find("stats/message-spool-stats") if stats is None else stats
        if stats is not None:
            _read_discards(stats, of, reading, found, "spool")
    return known


def _read_endpoints(endpoints: Iterator[_Element], prefix: str, reading: _SempReading, found: _FoundPage) -> bool:
    """Read queues or topic endpoints: their usage below `<info>`, their discards below `<stats>`."""
    known = False
    for endpoint in endpoints:
        name, info, stats = _text(endpoint, "name"), endpoint.find("info"), endpoint.find("stats/message-spool-stats")
        if not name or (info is None and stats is None):
            continue
        known = True
        usage = {} if info is None else _columns(info, ENDPOINT_COLUMNS, reading)
        if usage.keys() - {"message_vpn", "access_type"}:
            found.endpoints.append(EndpointUsage(name, prefix.strip(), **usage))
        if stats is not None:
            _read_discards(stats, f"{prefix}{name}", reading, found, "spool")
    return known


def _text(element: _Element, tag: str) -> str:
    child = element.find(tag)
    return "" if child is None else text_of(child)


def _read_client(client: _Element, reading: _SempReading, found: _FoundPage) -> None:
    name = _text(client, "name")
    if not name:
        reading.note(client, "a client has no name", allowed="<name>")
        return
    values: dict[str, Any] = {}
    for tag, (target, kind) in _CLIENT_ELEMENTS.items():
        child = client.find(tag)
        if child is not None:
            values[target] = _value(child, kind, reading)
    queues = client.findall("client-queue")
    connections = client.findall("connection")
    stats = client.find("stats")
    if queues:
        statistics: dict[str, ListedQueueStatistics] = {}
        for queue in queues:
            row = _queue(queue, reading)
            if row is not None and row.queue in statistics:
                reading.note(queue, f"queue {row.queue} occurs a second time", found=row.queue, allowed="each once")
            elif row is not None:
                statistics[row.queue] = row
        found.clients.append(ClientQueues(name=name, **values, queues=tuple(statistics.values())))
    for connection in connections:
        columns = {"name": name, **_columns(connection, CONNECTION_COLUMNS, reading)}
        if "message_vpn" in values:
            columns["message_vpn"] = values["message_vpn"]
        found.connections.append(ClientConnection(**columns))
    if stats is not None:
        _read_discards(stats, f"client {name}", reading, found)
    if not queues and not connections and stats is None:
        found.slow.append(SlowSubscriber(**{"name": name, **_columns(client, SLOW_COLUMNS, reading)}))


def _columns(element: _Element, columns: tuple[TableColumn, ...], reading: _SempReading) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column in columns:
        if column.field == "name":
            continue
        for tag in filter(None, (column.element, *column.other_elements)):
            child = element.find(tag)
            if child is not None:
                row[column.field] = _value(child, column.element_kind or column.kind, reading)
                break
    return row


def _value(element: _Element, kind: LabelKind, reading: _SempReading) -> Value:
    text = text_of(element)
    if not text:
        return "" if kind is TEXT else None
    if kind is not TEXT and text in _NO_FIGURES:
        return None
    try:
        return kind.read(_FLAGS.get(text, text) if kind is YES_NO else text)
    except ValueError:
        allowed = "true or false" if kind is YES_NO else kind.allowed
        reading.note(element, f"<{element.tag}> is not {allowed}", found=text, allowed=allowed)
        return None


def _queue(queue: _Element, reading: _SempReading) -> ListedQueueStatistics | None:
    name = _text(queue, "queue-priority")
    if name not in PRIORITY_QUEUES:
        reading.note(queue, "there is no such queue", found=name, allowed=", ".join(PRIORITY_QUEUES))
        return None
    figures: list[int | None] = []
    for tag in _QUEUE_ELEMENTS:
        child = queue.find(tag)
        number = None if child is None else _value(child, COUNT, reading)
        if child is None:
            reading.note(queue, f"<{tag}> is missing", allowed=", ".join(f"<{each}>" for each in _QUEUE_ELEMENTS))
        elif not text_of(child):
            reading.note(child, f"<{tag}> is empty", allowed="a whole number")
        figures.append(number if isinstance(number, int) else None)
    return ListedQueueStatistics(name, *figures)


def _read_discards(
    stats: _Element, of: str, reading: _SempReading, found: _FoundPage, statistics: d.Statistics = "clients"
) -> None:
    causes: dict[str, int] = {}
    totals: dict[str, int | None] = {"egress": None, "ingress": None}
    for side, total in d.TOTALS[statistics].items():
        for counter in stats.iterfind(f"{side}-discards/*" if statistics == "clients" else "*"):
            tag = str(counter.tag)
            cause = d.cause_named(statistics, side, tag)
            if tag != total and (cause is None or cause.side != side):
                continue
            try:
                count = read_count(text_of(counter))
            except ValueError:
                reading.note(counter, f"<{tag}> is not a whole number", text_of(counter), "a whole number")
                continue
            if cause is None:
                totals[side] = count
            else:
                causes.setdefault(cause.key, count)
    if causes or any(each is not None for each in totals.values()):
        found.discards.append(Discards(of, tuple(causes.items()), totals["egress"], totals["ingress"]))
