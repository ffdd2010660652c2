"""SEMP v1 replies: `rpc-reply/rpc/show/…`, one or several pages in a file.

Long replies come in pages, each a document with a `more-cookie` that asks for the next one. A file may hold them one
after the other. The attribute `semp-version` is not looked at. Every XML limit is that of the configuration's parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lxml.etree import _Element

from qsctl.config.document import DocumentLimits, parse_document, text_of
from qsctl.config.problems import ConfigError, Problem, line_of, path_of
from qsctl.profiles.listings import discards as d
from qsctl.profiles.listings.columns import CONNECTION_COLUMNS, SLOW_COLUMNS, TableColumn
from qsctl.profiles.listings.labels import COUNT, TEXT, YES_NO, LabelKind, Value, read_count
from qsctl.profiles.listings.model import (
    PRIORITY_QUEUES,
    ClientConnection,
    ClientQueues,
    Discards,
    ListedQueueStatistics,
    Listings,
    SlowSubscriber,
)
from qsctl.profiles.listings.problems import MOST_PROBLEMS, ListingError, problem

LIMITS: Final = DocumentLimits(size_bytes=32 * 1024 * 1024)
MOST_PAGES: Final = 100_000

_PAGE: Final = re.compile(rb"(?:<\?xml[^>]{0,200}\?>\s*)?<rpc-reply(?=[\s>/])")
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
_FLAGS: Final = {"true": "Yes", "false": "No"}


@dataclass(slots=True)
class _FoundPage:
    clients: list[ClientQueues] = field(default_factory=list)
    slow: list[SlowSubscriber] = field(default_factory=list)
    connections: list[ClientConnection] = field(default_factory=list)
    discards: list[Discards] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _SempReading:
    """The problems of one file; `offset`: lines before the page that is read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.offset = 0
        self.problems: list[Problem] = []

    def note(self, element: _Element, message: str, found: str = "", allowed: str = "") -> None:
        line = self.offset + line_of(element)
        self.add(problem(self.name, line, message, path=path_of(element), found=found, allowed=allowed))

    def add(self, one: Problem) -> None:
        self.problems.append(one)
        if len(self.problems) >= MOST_PROBLEMS:
            raise ListingError(self.problems)


def looks_like_semp(data: bytes) -> bool:
    """Return whether it is XML at all, or a reply in the middle of what a terminal wrote."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" or _PAGE.search(data) is not None


def read_semp(data: bytes, name: str) -> Listings:
    """Read the replies in a file.

    Raises:
        ListingError: it is no reply, one that says no, or one whose figures cannot be read; every problem of the file.
    """
    reading = _SempReading(name)
    found = _FoundPage()
    cookie = False
    for number, page in enumerate(_pages(data, reading, found), 1):
        try:
            root = parse_document(page, name, LIMITS).root
        except ConfigError as error:
            for one in error.problems:
                reading.add(replace(one, line=one.line + reading.offset if one.line else 0))
            continue
        cookie = root.find("more-cookie") is not None
        _read_page(root, reading, found, number)
    if reading.problems:
        raise ListingError(reading.problems)
    if cookie:
        found.notes.append(f"{name}: the last page has a more-cookie: the reply goes on in a page that is not there")
    return Listings(
        clients=tuple(found.clients),
        slow_subscribers=tuple(found.slow),
        connections=tuple(found.connections),
        discards=tuple(found.discards),
        notes=tuple(found.notes),
    )


def _pages(data: bytes, reading: _SempReading, found: _FoundPage) -> Iterator[bytes]:
    """Yield each reply of the file, `reading.offset` at its first line; what a terminal wrote around them is left out.

    Of a capture that begins with a prompt, a command line or the request, the replies are read.
    """
    starts = [match.start() for match in _PAGE.finditer(data)]
    if len(starts) > MOST_PAGES:
        reading.add(problem(reading.name, 0, "the file has too many pages", allowed=f"at most {MOST_PAGES}"))
        raise ListingError(reading.problems)
    before = data[: starts[0]].removeprefix(b"\xef\xbb\xbf").strip() if starts else b""
    if not starts or b"<!" in before:
        yield data  # whatever it is: one document, and the parser says what is wrong
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


def _read_page(root: _Element, reading: _SempReading, found: _FoundPage, number: int) -> None:
    if root.tag != "rpc-reply":
        reading.note(root, "this is no reply of SEMP v1", found=f"<{root.tag}>", allowed="<rpc-reply>")
        return
    refusal = root.find("parse-error")
    if refusal is None:
        refusal = root.find("permission-error")
    result = root.find("execute-result")
    if refusal is not None:
        reading.note(refusal, "the broker refused the request", found=text_of(refusal), allowed="a reply with figures")
        return
    if result is not None and result.get("code") != "ok":
        said = f"{result.get('code', '')} {result.get('reason', '')}".strip()
        reading.note(result, "the broker answers with a failure", found=said, allowed='code="ok"')
        return
    show = root.find("rpc/show")
    if show is None:
        reading.note(root, "the reply shows nothing", allowed="rpc-reply/rpc/show/client, or …/show/stats/client")
        return
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
            _read_discards(stats_of_vpn, f"message VPN {_text(vpn, 'name')}", reading, found)
    for spool in show.iterfind("message-spool/message-spool-stats"):
        known = True
        _read_discards(spool, d.SPOOL, reading, found, "spool")
    for queue in show.iterfind("queue/queues/queue"):
        stats_of_queue = queue.find("stats/message-spool-stats")
        if stats_of_queue is not None:
            known = True
            _read_discards(stats_of_queue, f"{d.QUEUE}{_text(queue, 'name')}", reading, found, "spool")
    if not known and show.find("client") is None:
        inside = ", ".join(f"<{child.tag}>" for child in show) or "nothing"
        reading.note(
            show, f"page {number} shows what is no listing of clients", found=inside,
            allowed="<client> with client-queue, connection, slow-subscriber or stats; <stats>; <message-vpn>; "
            "<message-spool> or <queue> with stats",
        )  # fmt: skip


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
        statistics = [each for each in (_queue(queue, reading) for queue in queues) if each is not None]
        names = [each.queue for each in statistics]
        for twice in {each for each in names if names.count(each) > 1}:
            reading.note(client, f"queue {twice} stands a second time", found=twice, allowed="each once")
        found.clients.append(ClientQueues(name=name, **values, queues=tuple(statistics)))
    for connection in connections:
        row = {"name": name, **_columns(connection, CONNECTION_COLUMNS, reading)}
        if "message_vpn" in values:
            row["message_vpn"] = values["message_vpn"]
        found.connections.append(ClientConnection(**row))
    if stats is not None:
        _read_discards(stats, f"client {name}", reading, found)
    if not queues and not connections and stats is None:
        found.slow.append(SlowSubscriber(**{"name": name, **_columns(client, SLOW_COLUMNS, reading)}))


def _columns(element: _Element, columns: tuple[TableColumn, ...], reading: _SempReading) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column in columns:
        child = element.find(column.element) if column.element and column.field != "name" else None
        if child is not None:
            row[column.field] = _value(child, column.element_kind or column.kind, reading)
    return row


def _value(element: _Element, kind: LabelKind, reading: _SempReading) -> Value:
    text = text_of(element)
    if not text:
        return "" if kind is TEXT else None
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
    figures: list[int] = []
    for tag in _QUEUE_ELEMENTS:
        child = queue.find(tag)
        if child is None:
            reading.note(queue, f"<{tag}> is missing", allowed=", ".join(f"<{each}>" for each in _QUEUE_ELEMENTS))
            return None
        number = _value(child, COUNT, reading)
        if not isinstance(number, int):
            if not text_of(child):
                reading.note(child, f"<{tag}> is empty", allowed="a whole number")
            return None
        figures.append(number)
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
