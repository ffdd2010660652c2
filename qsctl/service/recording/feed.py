"""The way from a service to its recorder: a local socket that the service never waits for.

Decides: what becomes of what the socket does not take at once. It waits in memory, up to a bound; beyond it the
recording ends rather than the service slows down.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

from qsctl.eventlog.recording.story import Ended, Part, encode
from qsctl.instant import Nanoseconds

WAITING_BYTES_MAX: Final = 64 << 20
"""Some 200,000 samples: seconds of a service at full load in which the recorder's disk may stall."""

LENGTH: Final = struct.Struct("<I")
"""What each part begins with: how many octets it has."""

_SEND_BUFFER_BYTES: Final = 4 << 20
_SHARE_BYTES: Final = 1 << 18
"""Handed to the system at once: it copies what it is given before it finds that it has no room."""


class Feed:
    """One process's end of the socket.

    Args:
        address: the socket's path.

    Raises:
        OSError: nobody listens there.
    """

    def __init__(self, address: str, waiting_bytes_max: int = WAITING_BYTES_MAX) -> None:
        self._socket: socket.socket | None = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._waiting = bytearray()
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
        """Whether all that was put has left, or never will."""
        return self._socket is None

    def put(self, part: Part, now: Nanoseconds) -> None:
        """Send a part, now or with a later `push`. Too much that waits ends the recording."""
        if self.is_over:
            return
        octets = encode(part)
        if len(self._waiting) + len(octets) > self._waiting_bytes_max:
            self.end(now, overrun=True)
            return
        self._append(octets)
        self.push()

    def end(self, now: Nanoseconds, *, overrun: bool = False) -> None:
        """Say that nothing more comes; the socket closes once all has left."""
        if not self.is_over:
            self.is_over = True
            self._append(encode(Ended(now, overrun)))
            self.push()

    def push(self) -> None:
        """Send what waits, as far as there is room."""
        if self._socket is None:
            return
        try:
            while self._waiting:
                with memoryview(self._waiting) as view:
                    sent = self._socket.send(view[:_SHARE_BYTES])
                del self._waiting[:sent]
        except BlockingIOError:
            return
        except OSError:  # the recorder is gone
            self.is_over = True
            self.close()
            return
        if self.is_over:
            self.close()

    def wait(self, timeout_s: float) -> None:
        """Send what waits, and wait for room as long as that takes, at most so long in all."""
        if self._socket is not None:
            self._socket.settimeout(timeout_s)
            self.push()
            self.close()

    def close(self) -> None:
        """Let go of the socket and of what waits."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._waiting.clear()

    def _append(self, octets: bytes) -> None:
        self._waiting += LENGTH.pack(len(octets))
        self._waiting += octets
