"""The transport inside one process keeps the contract."""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.core.messages import Message, Write
from qsctl.transport.base import Transport
from qsctl.transport.embedded import EmbeddedTransport, embedded_pair
from tests.transport.contract import Peer, TransportContract


class OtherEnd:
    """The other end of the pipe."""

    def __init__(self, end: EmbeddedTransport) -> None:
        self._end = end

    async def say(self, messages: Sequence[Write]) -> None:
        await self._end.send(messages)

    async def hear(self, count: int) -> list[Message]:
        heard: list[Message] = []
        while len(heard) < count:
            heard += await self._end.receive()
        return heard

    async def leave(self) -> None:
        await self._end.aclose()


class TestEmbedded(TransportContract):
    async def open(self) -> tuple[Transport, Peer]:
        here, there = embedded_pair()
        return here, OtherEnd(there)
