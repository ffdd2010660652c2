"""The relations between threads of an engine [CLOVERLEAF]: receivers by ICL, and senders."""

from __future__ import annotations

from typing import Protocol

from qsctl.core.integration._lifecycle import HeldMessage
from qsctl.core.integration.settings import ThreadSettings


class Receiver(Protocol):
    """A thread that messages are sent to."""

    is_running: bool

    def arrive(self, held: HeldMessage, /) -> None:
        """Receive a message."""


class ConnectionThread(Receiver, Protocol):
    """A protocol thread."""

    @property
    def settings(self) -> ThreadSettings:
        """Return which directions it has, and their routes."""


class TranslatingThread(Receiver, Protocol):
    """The translation thread of a process."""

    @property
    def process(self) -> str:
        """The name of its process."""

    def work(self) -> None:
        """Begin what can be begun."""

    def take_back(self, receiver: Receiver, /) -> None:
        """Take back what is on its way to a thread that stops."""
