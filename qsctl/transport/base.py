"""The seam to the others: batches of messages in and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qsctl.core.messages import Message


class Transport(Protocol):
    """Where a driver's messages go and come from. Batching is what makes Python fast enough."""

    async def send(self, messages: Sequence[Message]) -> None:
        """Hand the messages on, in order. May wait: that is back-pressure."""

    async def receive(self) -> Sequence[Message]:
        """Wait for at least one message; give all that are there. An empty batch: the peer is gone."""

    async def aclose(self) -> None:
        """Leave; nothing is received after."""
