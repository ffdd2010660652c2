"""The connection from a service to its recorder: a local socket on which the service never blocks.

Decides: the handling of a full socket. Events are buffered in memory, up to a bound; beyond it the recording ends, so
that the service is not slowed down.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from typing import Final

from qsctl.eventlog.recording.story import Part, RecordingEnded, encode
from qsctl.instant import Nanoseconds

WAITING_BYTES_MAX: Final = 64 << 20
"""Some 200,000 samples: seconds of a service at full load in which the recorder's disk may stall."""

LENGTH: Final = struct.Struct("<I")
"""Header of each part: its number of octets."""

GATHERED_BYTES: Final = 1 << 17
"""So much is sent together: each sending wakes the recorder, which takes as long as hundreds of samples do."""

_SEND_BUFFER_BYTES: Final = 4 << 20
_SHARE_BYTES: Final = 1 << 18
"""Handed to the system at once: it copies what it is given before it finds that it has no room."""


class Feed:
    """The socket and send buffer of one process.

    Args:
        address: the socket's path.

    Raises:
        OSError: no process listens there.
    """

    def __init__(self, address: str, waiting_bytes_max: int = WAITING_BYTES_MAX) -> None:
        self._socket: socket.socket | None = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._leaving = memoryview(b"")
        """Gathered events that have not been sent yet."""
        self._waiting_bytes_max = waiting_bytes_max
        self.is_over = False
        """Nothing more is accepted: it ended, was too slow, or the recorder is gone."""
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            self._socket.connect(address)
            self._socket.setblocking(False)
        except BaseException:
            self._socket.close()
            raise

    @property
    def is_closed(self) -> bool:
        """Return whether the socket is closed, because everything was sent or the recorder is gone."""
        return self._socket is None

    def put(self, part: Part, now: Nanoseconds) -> None:
        """Buffer a part, to be sent at the latest with the next `push`; a full buffer ends the recording."""
        if self.is_over:
            return
        octets = encode(part)
        if len(self._leaving) + self._gathered_bytes + len(octets) > self._waiting_bytes_max:
            self.end(now, overrun=True)
            return
        self._gather(octets)
        if self._gathered_bytes >= GATHERED_BYTES and not self._leaving:
            self.push()

    def put_beginning(self, parts: Iterable[Part]) -> None:
        """Buffer the parts of the beginning, whatever their size, and raise the bound by it."""
        for part in parts:
            self._gather(encode(part))
        self._waiting_bytes_max += self._gathered_bytes
        self.push()

    def end(self, now: Nanoseconds, *, overrun: bool = False) -> None:
        """Mark the end of the stream; the socket closes once everything is sent."""
        if not self.is_over:
            self.is_over = True
            self._gather(encode(RecordingEnded(now, overrun)))
            self.push()

    def push(self) -> None:
        """Send buffered parts as far as the socket accepts them."""
        if self._socket is None:
            return
        try:
            while self._leaving or self._gathered:
                if not self._leaving:
                    self._leaving = memoryview(b"".join(self._gathered))
                    self._gathered.clear()
                    self._gathered_bytes = 0
                sent = self._socket.send(self._leaving[:_SHARE_BYTES])
                self._leaving = self._leaving[sent:]
        except BlockingIOError:
            return
        except OSError:  # the recorder is gone
            self.is_over = True
            self.close()
            return
        if self.is_over:
            self.close()

    def wait(self, timeout_s: float) -> None:
        """Send all buffered parts, waiting at most the given time, and close the socket."""
        if self._socket is not None:
            self._socket.settimeout(timeout_s)
            self.push()
            self.close()

    def close(self) -> None:
        """Close the socket and drop the buffered parts."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._gathered.clear()
        self._leaving = memoryview(b"")

    def _gather(self, octets: bytes) -> None:
        self._gathered += (LENGTH.pack(len(octets)), octets)
        self._gathered_bytes += LENGTH.size + len(octets)
