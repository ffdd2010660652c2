"""Notifications to the supervisor that started the service, by systemd's protocol `sd_notify`.

Decides: the notifications: the service is ready, its loop still runs, it stops. Without a supervisor in the
environment, nothing is sent.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from typing import Final

from qsctl.instant import MICROSECOND_NS, Nanoseconds

SOCKET_VARIABLE: Final = "NOTIFY_SOCKET"


class Supervisor:
    """The supervisor of this process, or none.

    Args:
        environment: the variables `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`, which have the supervisor's
            socket and the interval of notifications.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get(SOCKET_VARIABLE, "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        period_us = environment.get("WATCHDOG_USEC", "")
        is_watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._beat_every_ns: Nanoseconds = 0
        if self._address and is_watched and period_us.isascii() and period_us.isdigit():
            self._beat_every_ns = int(period_us) * MICROSECOND_NS // 3
        self._beat_at_ns: Nanoseconds = 0

    def ready(self) -> None:
        """Notify the supervisor that clients can reach the service."""
        self._send("READY=1")

    def beat(self) -> None:
        """Notify the supervisor that the loop runs, three times in each watchdog period."""
        if not self._beat_every_ns:
            return
        now = time.monotonic_ns()
        if now >= self._beat_at_ns:
            self._beat_at_ns = now + self._beat_every_ns
            self._send("WATCHDOG=1")

    def leaving(self) -> None:
        """Notify the supervisor that the service is stopping."""
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        # A supervisor that is gone, or does not read, must not hold the service up.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.setblocking(False)
            sending.sendto(text.encode(), self._address)


NOBODY: Final = Supervisor({})
"""For a service that no supervisor started."""
