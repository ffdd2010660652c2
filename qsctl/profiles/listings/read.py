"""Captured listings and replies to the model; a file may hold several kinds, which are recognized by their content.

Reads `show client … stats queue`, `show cspf neighbor … stats queues` (in lines, and as one flowed line),
`show client … slow-subscriber`, `show client … connections wide`, discards of `show stats client`,
`show client … stats`, `show message-vpn … stats` and `show message-spool stats`, the usage of `show message-spool` and
`show queue …`, and replies of SEMP v1 and v2; CSV of the same things, and a scrape of an exporter. What a terminal
wrote around listings is skipped: prompts with the commands typed, pagers, the headings of a diagnostics bundle. Other
lines are counted in a note; a value that cannot be read is left out, with a note that names it. Only a file of which
nothing can be read is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final

from qsctl.declared.problems import InvalidFile, Problem, ProblemList, error_at, shown
from qsctl.profiles.listings._blocks import read_client, read_neighbor
from qsctl.profiles.listings._csv_rows import looks_like_csv_rows, read_csv_rows
from qsctl.profiles.listings._discard_lines import first_discards, read_discard_lines
from qsctl.profiles.listings._heading_table import (
    ALLOWED_COLUMNS,
    is_heading,
    pass_over_table,
    read_table,
    unknown_headings,
)
from qsctl.profiles.listings._labelled import begins_with
from qsctl.profiles.listings._scrape import looks_like_a_scrape, read_scrape
from qsctl.profiles.listings._text import ListingText, NotUnderstoodError
from qsctl.profiles.listings._usage_lines import UsageLines
from qsctl.profiles.listings.captures import CapturedParts, decoded, parts_of
from qsctl.profiles.listings.discards import CLIENT as CLIENT_PREFIX
from qsctl.profiles.listings.discards import MESSAGE_VPN, QUEUE, TOPIC_ENDPOINT
from qsctl.profiles.listings.labels import CLIENT, NEIGHBOR
from qsctl.profiles.listings.model import (
    ClientConnection,
    ClientQueues,
    Discards,
    EndpointUsage,
    Listings,
    NeighborQueues,
    SpoolUsage,
)
from qsctl.profiles.listings.model import SlowSubscriber as Slow
from qsctl.profiles.listings.problems import unread
from qsctl.profiles.listings.semp import PAGE, read_semp
from qsctl.profiles.listings.semp_v2 import read_semp_v2
from qsctl.profiles.listings.terminal import shown_lines

LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Of a file: some twenty thousand clients."""

_PROMPT: Final = re.compile(r"[^\s>#|]{1,200}[>#](?=\s|\Z)")
_BUNDLE: Final = re.compile(r"#{5,}[ \t]*|# ?(?:CLI command|Host)[ \t]*:.*|!.*", re.IGNORECASE)
"""Around each command's output in a diagnostics bundle of the broker, and comments."""
_COMMAND: Final = re.compile(r"# ?CLI command[ \t]*:[ \t]*(.*)", re.IGNORECASE)
_BLOCK: Final = re.compile(rf"(?<!\S)(?:{CLIENT}|{NEIGHBOR})\s*:(?=\s|\Z)")
_PASSED_OVER: Final = re.compile(
    r"(Total|Number|Displaying|Legend)\b.*|(?-i:[A-Z])[\w/()-]*(\s+(?-i:[A-Z])[\w/()-]*){0,5}:?"
    r"|[\w #%()/.-]{1,80}?(?::|\s)\s+[\d,.]+(\s+[\d,.]+|\s\S{1,20}){0,4}"
    r"|\*{3,}[ \t\w/-]{0,80}\*{3,}|[-= \t]{3,200}",
    re.IGNORECASE,
)
"""Lines around tables (totals, counts), banners, headings, other statistics: a label, blanks, one number or several."""
_OTHER_FIGURES: Final = "Received, Sent"
"""The last headings of the figures above the discards."""
_OF_A_COMMAND: Final = re.compile(r"[A-Za-z][\w #%()/.-]{0,80}?\s*:(?:\s+\S.{0,200})?|[A-Z] - .{1,200}")
"""Lines of a command's output that are not part of a listing: a label with a value, flags of a legend."""
BROKER: Final = "broker"
_TABLE: Final = re.compile(r"\*{3,}(?=[ \t]{0,80}[A-Za-z])(?![ \t]{0,80}(?:Ingress|Egress)\b)")
"""A banner of a table, not of a part of the discards."""
_OWNERS: Final = {
    "client": CLIENT_PREFIX, "client name": CLIENT_PREFIX, "message vpn": MESSAGE_VPN, "queue": QUEUE,
    "queue name": QUEUE, "topic endpoint": TOPIC_ENDPOINT, "topic endpoint name": TOPIC_ENDPOINT,
}  # fmt: skip
_OWNER_LABEL: Final = r"(Client(?: Name)?|Message[ -]VPN|Queue(?: Name)?|Topic[ -]Endpoint(?: Name)?)"
_OWNER: Final = re.compile(rf"{_OWNER_LABEL}(?:[ \t]*:[ \t]*|[ \t]{{2,}})(\S.{{0,255}})", re.IGNORECASE)
"""A line that names whose the statistics below it are."""
_NAME: Final = re.compile(r"Name[ \t]*:[ \t]*(\S.{0,255})", re.IGNORECASE)
"""Of a queue, below a command that shows queues."""
_FLOWED_OWNER: Final = re.compile(rf"(?<!\S){_OWNER_LABEL}[ \t]*:[ \t]*(?!\*{{3}})(\S+)", re.IGNORECASE)
_COMMAND_OWNER: Final = re.compile(
    r"sh\w*[ \t]+(?:message-spool[ \t]+)?(queue|topic-endpoint|client|message-vpn)[ \t]+"
    r"\"?([^\s\"*?]{1,250})\"?(?:[ \t]|\Z)",
    re.IGNORECASE,
)
"""A command that shows one thing by its name."""
_COMMAND_OWNERS: Final = {
    "queue": QUEUE, "topic-endpoint": TOPIC_ENDPOINT, "client": CLIENT_PREFIX, "message-vpn": MESSAGE_VPN,
}  # fmt: skip
_ENDPOINT_COMMANDS: Final = (("queue", QUEUE), ("topic-endpoint", TOPIC_ENDPOINT))
_LINE_CHARACTERS: Final = 4000
"""As much of a line is looked at to find out what it is: a flowed listing is one line, however long."""

KNOWN: Final = (
    "a listing of show client … stats queue, show cspf neighbor … stats queues, show client … slow-subscriber, "
    "show client … connections wide, show stats client, show message-vpn … stats, show message-spool … or "
    "show queue …, replies of SEMP v1, or of SEMP v2 monitoring, CSV of these, or a scrape of an exporter"
)


def read_listings(data: bytes, name: str) -> Listings:
    """Read a file's content.

    Args:
        data: at most `LIMIT_BYTES`; UTF-8, or UTF-16 with a byte order mark.
        name: the file's name in problems.

    Returns:
        Its listings, in order; empty where its text states that nothing matched. The notes name the values that could
        not be read, and count the ignored lines.

    Raises:
        InvalidFile: nothing of it can be read: with the reason, the line, the text found and the allowed ones.
    """
    if len(data) > LIMIT_BYTES:
        raise unread(
            [error_at(name, 0, "the file is too large", found=f"{len(data)} bytes", allowed=f"{LIMIT_BYTES} bytes")]
        )
    text, bad_line, bad_byte = decoded(data)
    if not text.strip():
        raise unread([error_at(name, 0, "the file is empty", allowed=KNOWN)])
    if _is_one_document(text):
        return read_semp(data, name)
    if looks_like_a_scrape(text):
        return read_scrape(text, name)
    if looks_like_csv_rows(text):
        return read_csv_rows(text, name)
    findings = ProblemList(name)
    if bad_line:
        findings.add(bad_line, "this is not UTF-8", bad_byte, "UTF-8")
    capture = parts_of(text, name)
    found: list[Listings] = []
    is_answered = False
    for part, read in ((capture.semp, read_semp), (capture.json, read_semp_v2)):
        if part.strip():
            try:
                found.append(read(part.encode("utf-8", "replace"), name))
                is_answered = True
            except InvalidFile as error:
                findings.extend(error.problems)
    cli = _read_text(capture, name, findings)
    joined = _joined([cli, *found], findings)
    if joined.is_empty and (findings.problems or not is_answered):
        raise unread(findings.problems or [_nothing(name, text)])
    return joined


def _is_one_document(text: str) -> bool:
    """Return whether a text is XML but not a reply, or begins with a declaration that the parser refuses."""
    if text.lstrip()[:1] != "<":
        return False
    page = PAGE.search(text)
    return page is None or "<!DOCTYPE" in text[: page.start()].upper()


def _nothing(name: str, text: str) -> Problem:
    return error_at(name, 1, "there is no listing in it", found=text.strip()[:80], allowed=KNOWN)


def _read_text(capture: CapturedParts, name: str, findings: ProblemList) -> Listings:
    """Read the listings around the replies; without any, the text is skipped if there are replies, else an error."""
    lines, numbers = shown_lines(capture.text)
    if not lines.strip():
        return Listings()
    reader = _ListingReader(ListingText(lines, name, numbers))
    cli = reader.read()
    has_replies = bool(capture.semp or capture.json)
    if cli.is_empty and has_replies:
        count = sum(1 for line in lines.splitlines() if line.strip())
        noun = "1 line" if count == 1 else f"{count} lines"
        return Listings(notes=(f"{name}: {noun} around the replies passed over",))
    if cli.is_empty and not reader.findings.problems and not findings.problems:
        reader.note_that_there_is_none()
    findings.extend(reader.findings.problems)
    findings.uncounted += reader.findings.uncounted
    return cli


def _joined(parts: Iterable[Listings], findings: ProblemList) -> Listings:
    values: dict[str, Any] = {each.name: () for each in fields(Listings)}
    for part in parts:
        for each in fields(Listings):
            values[each.name] += getattr(part, each.name)
    values["notes"] += findings.notes
    return Listings(**values)


class _ListingReader:
    """A reader of a text with several listings; lines outside of listings are skipped and counted."""

    def __init__(self, source: ListingText) -> None:
        self._source = source
        self.findings = source.findings
        self._clients: list[ClientQueues] = []
        self._neighbors: list[NeighborQueues] = []
        self._slow: list[Slow] = []
        self._connections: list[ClientConnection] = []
        self._discards: list[Discards] = []
        self._endpoints: list[EndpointUsage] = []
        self._spools: list[SpoolUsage] = []
        self._usage = UsageLines(source)
        self._of = BROKER
        """Whose the statistics are that come next."""
        self._command = ""
        """The command above, in lower case; empty where none was captured."""
        self._skipped: list[int] = []
        """First lines of blocks that belong to no listing."""
        self._unknown: tuple[int, str] | None = None
        """Line of the first table with unknown columns, and its headings."""

    def read(self) -> Listings:
        source = self._source
        while source.peek():
            before = source.place
            self._next()
            assert source.at > before, "each listing is at least one word"
        return Listings(
            clients=tuple(self._clients),
            neighbors=tuple(self._neighbors),
            slow_subscribers=tuple(self._slow),
            connections=tuple(self._connections),
            discards=tuple(self._discards),
            spools=(*self._spools, *self._usage.spools()),
            endpoints=(*self._endpoints, *self._usage.endpoints()),
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        if not self._skipped:
            return ()
        first = self._skipped[0]
        count, verb = ("1 line", "belongs") if len(self._skipped) == 1 else (f"{len(self._skipped)} lines", "belong")
        text = shown(self._source.text[first : first + _LINE_CHARACTERS].split("\n", 1)[0])
        place = f"{self._source.name}:{self._source.line_of(first)}"
        return (f"{place}: {count} {verb} to no listing and {verb.replace('belong', 'count')} for nothing: {text}",)

    def note_that_there_is_none(self) -> None:
        """Note as a problem why no listing was found."""
        if self._unknown is not None:
            at, headings = self._unknown
            self._source.note("the columns of this table are not known", found=headings, allowed=ALLOWED_COLUMNS, at=at)
        else:
            text = self._source.text.strip()[:80]
            self._source.note("there is no listing in it", found=text, allowed=KNOWN, at=0)

    def _next(self) -> None:
        """Read one listing, or skip one line."""
        source = self._source
        at = source.place
        start = source.text.rfind("\n", 0, at) + 1
        is_line = not source.text[start:at].strip()
        end = source.text.find("\n", at, at + _LINE_CHARACTERS)
        end = min(len(source.text), at + _LINE_CHARACTERS) if end < 0 else end
        line = source.text[at:end]
        if self._is_block(at):
            self._read_block(line, at, end)
        elif (begins := first_discards(source.text, start if is_line else at, end)) is not None:
            self._read_discards(begins, at)
        elif is_line and _BUNDLE.fullmatch(line.rstrip()):
            self._begin_bundle(line)
            source.at = end
        elif _PROMPT.match(line):
            block = _BLOCK.search(line)
            source.at = end if block is None else at + block.start()
            self._begin_command(source.text[at : source.at])
        elif is_line and is_heading(source, start):
            self._read_table(start)
        else:
            source.at = end
            is_known = is_line and (
                self._is_owner(line.rstrip(), at) or self._usage.take(line.strip(), self._of, self._command, at)
            )
            if not (is_known or self._is_passed_over(line.strip())):
                self._skipped.append(at)

    def _is_passed_over(self, line: str) -> bool:
        """Return whether a line is known not to belong to a listing."""
        if _PASSED_OVER.fullmatch(line):
            return True
        return self._command.startswith("sh") and _OF_A_COMMAND.fullmatch(line) is not None

    def _is_block(self, at: int) -> bool:
        """Return whether a client with its queues, or a neighbour, begins here."""
        source = self._source
        return begins_with(source, NEIGHBOR) or (begins_with(source, CLIENT) and not self._has_discards(at))

    def _read_block(self, line: str, at: int, end: int) -> None:
        """Read a client or a neighbour; if it cannot be understood, continue after its first line."""
        source = self._source
        try:
            if begins_with(source, CLIENT):
                self._clients.append(read_client(source))
            else:
                self._neighbors.append(read_neighbor(source))
        except NotUnderstoodError:
            source.at = max(source.at, end)
            self._is_owner(line.rstrip(), at)

    def _begin_bundle(self, line: str) -> None:
        found = _COMMAND.fullmatch(line.rstrip())
        if found is not None:
            self._begin_command(f"> {found[1]}")

    def _begin_command(self, line: str) -> None:
        """Begin a command's output, whose figures are the broker's or those of the object that it names."""
        typed = line.rsplit(">", 1)[-1] if ">" in line else line.split("#", 1)[-1]
        self._command = " ".join(typed.lower().split())
        self._of = BROKER
        owner = _COMMAND_OWNER.match(typed.strip())
        if owner is not None:
            self._of = _COMMAND_OWNERS[owner[1].lower()] + owner[2]

    def _is_owner(self, line: str, at: int) -> bool:
        """Return whether a line names the object of the statistics below it, and note that."""
        found = _OWNER.fullmatch(line)
        if found is not None:
            of = _OWNERS[found[1].lower().replace("-", " ")] + found[2]
        else:
            named = _NAME.fullmatch(line)
            kind = next((each for word, each in _ENDPOINT_COMMANDS if f" {word} " in f"{self._command} "), None)
            if named is None or kind is None:
                return False
            of = kind + named[1]
        number = self._source.line_of(at)
        if of.startswith(MESSAGE_VPN) and self._usage.is_near(self._of, number):
            self._usage.take_message_vpn(self._of, of.removeprefix(MESSAGE_VPN))
            return True
        self._of = of
        self._usage.begin(of, number)
        return True

    def _read_table(self, start: int) -> None:
        headings = unknown_headings(self._source, start)
        if headings is not None:
            if not headings.endswith(_OTHER_FIGURES):
                self._unknown = self._unknown or (start, headings)
                self._skipped.append(start)
            pass_over_table(self._source, start)
            return
        for row in read_table(self._source, start):
            match row:
                case Slow():
                    self._slow.append(row)
                case ClientConnection():
                    self._connections.append(row)
                case EndpointUsage():
                    self._endpoints.append(row)
                case SpoolUsage():
                    self._spools.append(row)

    def _has_discards(self, at: int) -> bool:
        """Return whether the client that begins here lists its discards before any table or other client."""
        text = self._source.text
        other = _BLOCK.search(text, at + 1)
        end = len(text) if other is None else other.start()
        table = self._source.next_match(_TABLE, at)
        return first_discards(text, at, end if table is None else min(end, table.start())) is not None

    def _read_discards(self, begins: int, at: int) -> None:
        source = self._source
        before = source.text[at:begins]
        owner = _FLOWED_OWNER.search(before)
        if owner is not None:
            self._of = _OWNERS[owner[1].lower().replace("-", " ")] + owner[2]
        elif _PROMPT.match(before):
            self._of = BROKER
        source.at = begins
        discards = read_discard_lines(source, self._of)
        if discards is not None:
            self._discards.append(discards)
