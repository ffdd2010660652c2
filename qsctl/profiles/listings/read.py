"""A captured listing or reply to the model: what it is is found out, and it may be several things one after the other.

Reads `show client … stats queue`, `show cspf neighbor … stats queues` (in lines, and as one flowed line),
`show client … slow-subscriber`, `show client … connections wide`, discards of `show stats client`,
`show client … stats`, `show message-vpn … stats` and `show message-spool stats`, and replies of SEMP. Prompts with
the command typed are passed over; so is what belongs to no listing, with a note that counts it.
"""

from __future__ import annotations

import re
from typing import Final

from qsctl.config.problems import shown
from qsctl.profiles.listings.blocks import read_client, read_neighbor
from qsctl.profiles.listings.discard_lines import first_discards, read_discard_lines
from qsctl.profiles.listings.discards import QUEUE
from qsctl.profiles.listings.heading_table import (
    ALLOWED_COLUMNS,
    is_heading,
    pass_over_table,
    read_table,
    unknown_headings,
)
from qsctl.profiles.listings.labelled import begins_with
from qsctl.profiles.listings.labels import CLIENT, NEIGHBOR
from qsctl.profiles.listings.model import ClientConnection, ClientQueues, Discards, Listings, NeighborQueues
from qsctl.profiles.listings.model import SlowSubscriber as Slow
from qsctl.profiles.listings.problems import ListingError, problem
from qsctl.profiles.listings.queue_rows import is_row
from qsctl.profiles.listings.semp import looks_like_semp, read_semp
from qsctl.profiles.listings.semp_v2 import looks_like_semp_v2, read_semp_v2
from qsctl.profiles.listings.text import ListingText

LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Of a file: some twenty thousand clients."""

_PROMPT: Final = re.compile(r"[^\s>#|]{1,200}[>#](?=\s|\Z)")
_BLOCK: Final = re.compile(rf"(?<!\S)(?:{CLIENT}|{NEIGHBOR})\s*:(?=\s|\Z)")
_PASSED_OVER: Final = re.compile(
    r"(Total|Number|Displaying|Legend)\b.*|(?-i:[A-Z])[\w/()-]*(\s+(?-i:[A-Z])[\w/()-]*){0,5}:?"
    r"|[\w #%()/.-]{1,80}?(?::|\s)\s+[\d,.]+(\s+[\d,.]+|\s\S{1,20}){0,4}",
    re.IGNORECASE,
)
"""Lines around tables (totals, counts), headings, and other statistics: a label, blanks, one number or several."""
BROKER: Final = "broker"
_OWNERS: Final = {
    "client": "client ", "client name": "client ", "message vpn": "message VPN ", "queue": QUEUE, "queue name": QUEUE,
    "topic endpoint": "topic endpoint ",
}  # fmt: skip
_OWNER_LABEL: Final = r"(Client(?: Name)?|Message[ -]VPN|Queue(?: Name)?|Topic Endpoint)"
_OWNER: Final = re.compile(rf"{_OWNER_LABEL}(?:[ \t]*:[ \t]*|[ \t]{{2,}})(\S.{{0,255}})", re.IGNORECASE)
"""A line that names whose the statistics below it are."""
_FLOWED_OWNER: Final = re.compile(rf"(?<!\S){_OWNER_LABEL}[ \t]*:[ \t]*(\S+)", re.IGNORECASE)
_LINE_CHARACTERS: Final = 4000
"""As much of a line is looked at to find out what it is: a flowed listing is one line, however long."""

KNOWN: Final = (
    "a listing of show client … stats queue, show cspf neighbor … stats queues, show client … slow-subscriber, "
    "show client … connections wide, show stats client, show message-vpn … stats or show message-spool stats, or "
    "replies of SEMP v1, or of SEMP v2 monitoring"
)


def read_listings(data: bytes, name: str) -> Listings:
    """Read a file's content.

    Args:
        data: at most `LIMIT_BYTES`; UTF-8.
        name: what problems call the file.

    Returns:
        All that it says, in its order; empty where it says that nothing matched.

    Raises:
        ListingError: it is none, or cannot be understood: every problem with line, found and allowed.
    """
    if len(data) > LIMIT_BYTES:
        raise ListingError(
            [problem(name, 0, "the file is too large", found=f"{len(data)} bytes", allowed=f"{LIMIT_BYTES} bytes")]
        )
    if looks_like_semp(data):
        return read_semp(data, name)
    if looks_like_semp_v2(data):
        return read_semp_v2(data, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x}"
        raise ListingError([problem(name, line, "this is not UTF-8", found=found, allowed="UTF-8")]) from None
    if not text.strip():
        raise ListingError([problem(name, 0, "the file is empty", allowed=KNOWN)])
    return _ListingReader(ListingText(text.replace("\r\n", "\n").replace("\r", "\n"), name)).read()


class _ListingReader:
    """Goes through a text, from one listing to the next; what belongs to none is passed over and counted."""

    def __init__(self, source: ListingText) -> None:
        self._source = source
        self._clients: list[ClientQueues] = []
        self._neighbors: list[NeighborQueues] = []
        self._slow: list[Slow] = []
        self._connections: list[ClientConnection] = []
        self._discards: list[Discards] = []
        self._of = BROKER
        """Whose the discards are that come next."""
        self._skipped: list[int] = []
        """Where the lines begin that belong to no listing."""
        self._unknown: tuple[int, str] | None = None
        """Where the first table begins whose columns are not known, and its headings."""

    def read(self) -> Listings:
        source = self._source
        while source.peek():
            before = source.place
            self._next()
            assert source.at > before, "each listing is at least one word"
        found = Listings(
            clients=tuple(self._clients),
            neighbors=tuple(self._neighbors),
            slow_subscribers=tuple(self._slow),
            connections=tuple(self._connections),
            discards=tuple(self._discards),
            notes=self._notes(),
        )
        if found.is_empty and not source.problems:
            self._note_that_there_is_none()
        if source.problems:
            raise ListingError(source.problems)
        return found

    def _notes(self) -> tuple[str, ...]:
        if not self._skipped:
            return ()
        first = self._skipped[0]
        count, verb = ("1 line", "belongs") if len(self._skipped) == 1 else (f"{len(self._skipped)} lines", "belong")
        text = shown(self._source.text[first : first + _LINE_CHARACTERS].split("\n", 1)[0])
        place = f"{self._source.name}:{self._source.line_of(first)}"
        return (f"{place}: {count} {verb} to no listing and {verb.replace('belong', 'count')} for nothing: {text}",)

    def _note_that_there_is_none(self) -> None:
        if self._unknown is not None:
            at, headings = self._unknown
            self._source.note("the columns of this table are not known", found=headings, allowed=ALLOWED_COLUMNS, at=at)
        else:
            text = self._source.text.strip()[:80]
            self._source.note("there is no listing in it", found=text, allowed=KNOWN, at=0)

    def _next(self) -> None:
        """Read one listing, or pass over one line."""
        source = self._source
        at = source.place
        start = source.text.rfind("\n", 0, at) + 1
        is_line = not source.text[start:at].strip()
        end = source.text.find("\n", at, at + _LINE_CHARACTERS)
        end = min(len(source.text), at + _LINE_CHARACTERS) if end < 0 else end
        line = source.text[at:end]
        if begins_with(source, CLIENT) and not self._has_discards(at):
            self._clients.append(read_client(source))
        elif begins_with(source, NEIGHBOR):
            self._neighbors.append(read_neighbor(source))
        elif (begins := first_discards(source.text, start if is_line else at, end)) is not None:
            self._read_discards(begins, at)
        elif _PROMPT.match(line):
            self._of = BROKER
            block = _BLOCK.search(line)
            source.at = end if block is None else at + block.start()
        elif is_line and is_heading(source, start):
            self._read_table(start)
        elif is_line and (owner := _OWNER.fullmatch(line.rstrip())) is not None:
            self._of = _OWNERS[owner[1].lower().replace("-", " ")] + owner[2]
            source.at = end
        elif _PASSED_OVER.fullmatch(line.strip()):
            source.at = end
        elif is_row(source):
            source.note("this row belongs to no listing", found=line, allowed=KNOWN)
            source.at = end
        else:
            self._skipped.append(at)
            source.at = end

    def _read_table(self, start: int) -> None:
        headings = unknown_headings(self._source, start)
        if headings is not None:
            self._unknown = self._unknown or (start, headings)
            pass_over_table(self._source, start)
            self._skipped.append(start)
            return
        for row in read_table(self._source, start):
            if isinstance(row, Slow):
                self._slow.append(row)
            else:
                self._connections.append(row)

    def _has_discards(self, at: int) -> bool:
        """Return whether the client that begins here lists its discards, before any table or other client."""
        text = self._source.text
        other = _BLOCK.search(text, at + 1)
        end = len(text) if other is None else other.start()
        stars = text.find("***", at, end)
        return first_discards(text, at, end if stars < 0 else stars) is not None

    def _read_discards(self, begins: int, at: int) -> None:
        source = self._source
        before = source.text[at:begins]
        owner = _FLOWED_OWNER.search(before)
        if owner is not None:
            self._of = _OWNERS[owner[1].lower().replace("-", " ")] + owner[2]
        elif _PROMPT.match(before):
            self._of = BROKER
        source.at = begins
        self._discards.append(read_discard_lines(source, self._of))
