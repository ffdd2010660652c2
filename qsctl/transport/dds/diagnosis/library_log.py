"""Redirection of Cyclone DDS's own log into the service's: attributed to peers, counted, at a limited rate.

Decides: the destination of the library's lines. It writes one for each message that it cannot deserialize, to the C
stream `stderr`, and offers no other safe way: its log sinks would call Python in threads that hold its locks.
Therefore, while a domain is created, the stream is replaced by a non-blocking pipe, which the domain's thread reads.
Lines that do not fit into the pipe are lost, and the counts are then too low.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import Boundary
from qsctl.transport.dds.diagnosis.peer_faults import UNKNOWN_PEER

PERIOD_NS: Final[Nanoseconds] = 100 * MILLISECOND_NS
"""Shortest interval between two reads of the pipe."""

PIPE_BYTES: Final = 1024 * 1024
READ_BYTES: Final = 32 * 1024
"""Octets of one read: some 200 lines, 1 ms."""

_LINE: Final = re.compile(r"^[\d.]+ \[(\d*)\] +\S+: (.*)$")
_REFUSED: Final = re.compile(
    r"data\([^)]*\): ([0-9a-f]+):([0-9a-f]+):([0-9a-f]+):([0-9a-f]+) #-?\d+: "
    r"deserialization (?:(\S.*)/\S+ )?failed"
)

_DUMPS: Final = (
    (re.compile(r"^(malformed packet received from vendor \S+) length \d+ state (\w+:\w+)\b.*"), r"\1, at \2"),
    (re.compile(r"^(invalid parameter list .*? invalid), input = .*"), r"\1"),
    (re.compile(r" ?<[0-9a-f ]{16,}(@\d+ )?[0-9a-f ]*>"), ""),
)
"""The parts of a line that differ from datagram to datagram, octets and sizes; lines are grouped without them."""

_REMEDIES: Final = (
    (
        "(TYPE_INFORMATION) invalid",
        "a reader or writer of that vendor is not seen, for its type information is not of XTypes; so with Fast DDS "
        "2: generate its types without -typeobject, or call auto_fill_type_information(false)",
    ),
)
"""Remedies to append to lines of the library, by a part of the line."""


class LibraryLog:
    """The library's log lines in this process, distributed to the boundary of each domain."""

    def __init__(self) -> None:
        self._boundaries: dict[int, list[Boundary]] = {}
        self._lock = threading.Lock()
        self._pipe: int | None = None
        self._write_end = -1
        self._rest = b""
        self._next_at: Nanoseconds = 0

    @contextlib.contextmanager
    def instead_of_stderr(self) -> Iterator[None]:
        """Let a domain that is created in the `with` block write to the pipe; if that is impossible, to `stderr`.

        The domain owns the stream, and closes it when it is deleted.
        """
        standard = _standard_error()
        stream = self._open() if standard is not None else None
        if standard is None or stream is None:
            yield
            return
        former = standard.value
        standard.value = stream
        try:
            yield
        finally:
            standard.value = former

    def listen(self, domain_id: int, boundary: Boundary) -> None:
        """Report the lines of a domain at a boundary, from now on."""
        self._boundaries.setdefault(domain_id, []).append(boundary)

    def forget(self, domain_id: int, boundary: Boundary) -> None:
        """Stop reporting at a boundary, after reporting the lines written so far."""
        self.read()
        boundaries = self._boundaries.get(domain_id, [])
        if boundary in boundaries:
            boundaries.remove(boundary)

    def turn(self) -> None:
        """Read the new lines, at most ten times a second."""
        now = time.monotonic_ns()
        if now >= self._next_at:
            self._next_at = now + PERIOD_NS
            self.read()

    def read(self) -> None:
        """Read the new lines and report them."""
        if self._pipe is None or not self._lock.acquire(blocking=False):
            return
        try:
            with contextlib.suppress(BlockingIOError):
                *lines, self._rest = (self._rest + os.read(self._pipe, READ_BYTES)).split(b"\n")
                self._report(lines)
        finally:
            self._lock.release()

    def _report(self, lines: list[bytes]) -> None:
        refused: Counter[tuple[int, str, str]] = Counter()
        for octets in lines:
            line = octets.decode(errors="backslashreplace")
            matched = _LINE.match(line)
            domain_id = int(matched[1] or -1) if matched else -1
            text = _without_octets(matched[2] if matched else line)
            found = _REFUSED.search(text)
            if found:
                peer = "".join(f"{int(word, 16):08x}" for word in found.groups()[:4])
                refused[domain_id, found[5] or "discovery", peer] += 1
            else:
                for boundary in self._boundaries_of(domain_id):
                    boundary.note(text)
        for (domain_id, topic_name, peer), count in refused.items():
            for boundary in self._boundaries_of(domain_id):
                boundary.refuse(topic_name, peer or UNKNOWN_PEER, "no value of the topic's type", count=count)

    def _boundaries_of(self, domain_id: int) -> list[Boundary]:
        """Return the boundary of a domain; for a line of an unknown domain, one boundary out of all."""
        known = self._boundaries.get(domain_id)
        return known[:1] if known else [each[0] for each in self._boundaries.values() if each][:1]

    def _open(self) -> int | None:
        """Return a new C stream into the pipe; None: it cannot be opened."""
        if self._pipe is None:
            self._pipe, self._write_end = os.pipe()
            os.set_blocking(self._pipe, False)
            os.set_blocking(self._write_end, False)
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        library = ctypes.CDLL(None)
        library.fdopen.argtypes = [ctypes.c_int, ctypes.c_char_p]
        library.fdopen.restype = ctypes.c_void_p
        stream: int | None = library.fdopen(os.dup(self._write_end), b"w")
        return stream


def _without_octets(text: str) -> str:
    for pattern, instead in _DUMPS:
        text = pattern.sub(instead, text)
    for part, remedy in _REMEDIES:
        if part in text:
            text = f"{text}: {remedy}"
    return text


def _standard_error() -> ctypes.c_void_p | None:
    """Return the C library's variable `stderr`; None: in C libraries other than GNU's it may not be assignable."""
    try:
        return ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stderr")
    except (OSError, ValueError):
        return None


LIBRARY_LOG: Final = LibraryLog()
