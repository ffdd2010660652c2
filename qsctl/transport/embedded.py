"""Messages inside one process: two ends of a pipe, no copy, no network.

For a program that runs the service beside its clients, and for tests of whatever drives a transport.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import anyio

from qsctl.core.messages import Message

PIPE_MESSAGES_MAX: Final = 100_000
"""Messages on their way in one direction before a sender has to wait."""


class EmbeddedTransport:
    """One end of a pipe; `embedded_pair` makes both. Meets `Transport`."""

    def __init__(self, *, messages_max: int = PIPE_MESSAGES_MAX) -> None:
        self._messages_max = messages_max
        self._arrived: deque[Message] = deque()
        self._peer: EmbeddedTransport | None = None
        self._is_closed = False
        self._changed = anyio.Event()

    async def send(self, messages: Sequence[Message]) -> None:
        """See `Transport.send`: waits while the peer has as much as it can hold; a lost peer hears nothing."""
        peer = self._peer
        assert peer is not None, "a transport without a peer: use embedded_pair"
        while len(peer._arrived) >= peer._messages_max and not peer._is_closed:
            await peer._wait()
        if not peer._is_closed:
            peer._arrived.extend(messages)
            peer._note()

    async def receive(self) -> Sequence[Message]:
        """See `Transport.receive`."""
        while not self._arrived and not self._is_closed and self._peer is not None and not self._peer._is_closed:
            await self._wait()
        batch = list(self._arrived)
        self._arrived.clear()
        self._note()
        return batch

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        self._is_closed = True
        self._note()
        if self._peer is not None:
            self._peer._note()

    async def _wait(self) -> None:
        await self._changed.wait()

    def _note(self) -> None:
        """Wake whoever waits for a change at this end."""
        self._changed.set()
        self._changed = anyio.Event()


def embedded_pair(*, messages_max: int = PIPE_MESSAGES_MAX) -> tuple[EmbeddedTransport, EmbeddedTransport]:
    """The two ends: what one sends the other receives."""
    one, other = EmbeddedTransport(messages_max=messages_max), EmbeddedTransport(messages_max=messages_max)
    one._peer, other._peer = other, one
    return one, other
