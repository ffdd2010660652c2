"""A captured listing or reply to the model: what it is is found out, and it may be several things one after the other.

Reads `show client … stats queue`, `show cspf neighbor … stats queues` (in lines, and as one flowed line),
`show client … slow-subscriber`, `show client … connections wide`, discards of `show stats client` and
`show client … stats`, and replies of SEMP v1. Prompts with the command typed are passed over.
"""

from __future__ import annotations

import re
from typing import Final

from qsctl.profiles.listings.blocks import read_client, read_neighbor
from qsctl.profiles.listings.discard_lines import is_discards, read_discard_lines
from qsctl.profiles.listings.heading_table import is_heading, read_table
from qsctl.profiles.listings.labelled import begins_with
from qsctl.profiles.listings.labels import CLIENT, NEIGHBOR
from qsctl.profiles.listings.model import ClientConnection, ClientQueues, Discards, Listings, NeighborQueues
from qsctl.profiles.listings.model import SlowSubscriber as Slow
from qsctl.profiles.listings.problems import ListingError, problem
from qsctl.profiles.listings.semp import looks_like_semp, read_semp
from qsctl.profiles.listings.text import Source

LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Of a file: some twenty thousand clients."""

_PROMPT: Final = re.compile(r"[^\s>#|]{1,200}[>#](?=\s|\Z)")
_BLOCK: Final = re.compile(rf"(?<!\S)(?:{CLIENT}|{NEIGHBOR})\s*:(?=\s|\Z)")
_PASSED_OVER: Final = re.compile(
    r"(Total|Number|Displaying|Legend)\b.*|[\w #%()/-]{1,80}:\s+[\d,.]+( \S{1,20})?", re.IGNORECASE
)
"""Lines around tables: totals and counts."""
_LINE_CHARACTERS: Final = 4000
"""As much of a line is looked at to find out what it is: a flowed listing is one line, however long."""

KNOWN: Final = (
    "a listing of show client … stats queue, show cspf neighbor … stats queues, show client … slow-subscriber, "
    "show client … connections wide or show stats client, or a reply of SEMP v1"
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
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x}"
        raise ListingError([problem(name, line, "this is not UTF-8", found=found, allowed="UTF-8")]) from None
    if not text.strip():
        raise ListingError([problem(name, 0, "the file is empty", allowed=KNOWN)])
    return _Reader(Source(text.replace("\r\n", "\n").replace("\r", "\n"), name)).read()


class _Reader:
    """Goes through a text, from one listing to the next."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._clients: list[ClientQueues] = []
        self._neighbors: list[NeighborQueues] = []
        self._slow: list[Slow] = []
        self._connections: list[ClientConnection] = []
        self._discards: list[Discards] = []

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
        )
        if found.is_empty and not source.problems:
            source.note("there is no listing in it", found=source.text.strip()[:80], allowed=KNOWN, at=0)
        if source.problems:
            raise ListingError(source.problems)
        return found

    def _next(self) -> None:
        """Read one listing, or pass over one line."""
        source = self._source
        at = source.place
        start = source.text.rfind("\n", 0, at) + 1
        end = source.text.find("\n", at, at + _LINE_CHARACTERS)
        end = min(len(source.text), at + _LINE_CHARACTERS) if end < 0 else end
        line = source.text[at:end]
        if begins_with(source, CLIENT):
            if self._has_discards(at):
                self._read_discards(at)
            else:
                self._clients.append(read_client(source))
        elif begins_with(source, NEIGHBOR):
            self._neighbors.append(read_neighbor(source))
        elif _PROMPT.match(line):
            block = _BLOCK.search(line)
            source.at = end if block is None else at + block.start()
        elif is_discards(line):
            self._discards.append(read_discard_lines(source, "broker"))
        elif not source.text[start:at].strip() and is_heading(source, start):
            rows = read_table(source, start)
            for row in rows:
                if isinstance(row, Slow):
                    self._slow.append(row)
                else:
                    self._connections.append(row)
        elif _PASSED_OVER.fullmatch(line.strip()):
            source.at = end
        else:
            source.note("this line belongs to no listing", found=line, allowed=KNOWN)
            source.at = end

    def _has_discards(self, at: int) -> bool:
        """Return whether the client that begins here lists its discards, before any table or other client."""
        text = self._source.text
        total = re.compile(r"total[\s_-]+(?:egress|ingress)[\s_-]+discards", re.IGNORECASE)
        other = _BLOCK.search(text, at + 1)
        end = len(text) if other is None else other.start()
        stars = text.find("***", at, end)
        return total.search(text, at, end if stars < 0 else stars) is not None

    def _read_discards(self, at: int) -> None:
        source = self._source
        name = re.compile(rf"{CLIENT}\s*:\s*(\S+)").search(source.text, at)
        end = source.text.find("\n", at, at + _LINE_CHARACTERS)
        line = source.text[at : at + _LINE_CHARACTERS if end < 0 else end]
        flowed = is_discards(line)
        called = name[1] if name is not None and (flowed or name.end() - at <= len(line)) else ""
        if name is not None and not flowed:
            called = line.partition(":")[2].strip()
        source.at = at + len(CLIENT)
        found = read_discard_lines(source, f"client {called}")
        self._discards.append(found)
