"""Interfaces between the threads of an engine [CLOVERLEAF]: those that receive by ICL, and those that send."""

from __future__ import annotations

from typing import Protocol

from qsctl.core.integration._lifecycle import HeldMessage
from qsctl.core.integration.settings import ThreadSettings


class Receiver(Protocol):
    """A thread to which messages are sent."""

    is_running: bool

    def arrive(self, held: HeldMessage, /) -> None:
        """Receive a message."""


class ConnectionThread(Receiver, Protocol):
    """A protocol thread."""

    @property
    def settings(self) -> ThreadSettings:
        """Return its settings: its directions and their routes."""


class TranslatingThread(Receiver, Protocol):
    """The translation thread of a process."""

    @property
    def process(self) -> str:
        """Return the name of its process."""

    def work(self) -> None:
        """Begin the work that is possible now."""

    def take_back(self, receiver: Receiver, /) -> None:
        """Take back the messages in transit to a thread that stops."""
