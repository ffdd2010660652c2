"""What every transport promises its driver: subclasses give it a peer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import anyio

from qsctl.core.messages import AckResponse, Message, Write, WriteAcknowledgment
from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.base import Transport

GUID = Guid(b"p" * 16)
QUEUE = "P/S/Q"
COUNT = 700


def a_write(number: int) -> Write:
    identity = SampleIdentity(GUID, number)
    return Write("P", "T", identity, b"%d" % number, source_guid=GUID)


def an_answer(number: int) -> WriteAcknowledgment:
    return WriteAcknowledgment(QUEUE, SampleIdentity(GUID, number), AckResponse(number % 2))


class Peer(Protocol):
    """The other end: a producer."""

    async def say(self, messages: Sequence[Write]) -> None:
        """Send these to the transport under test."""

    async def hear(self, count: int) -> list[Message]:
        """Wait for so many messages that the transport sent."""

    async def leave(self) -> None:
        """Be gone."""


class TransportContract:
    """Subclass it with `open`."""

    async def open(self) -> tuple[Transport, Peer]:
        """A fresh transport that hosts queue `P/S/Q` of topic `T`, and its peer."""
        raise AssertionError("a subclass opens its transport")

    def test_what_the_peer_says_is_received_whole_and_in_order(self) -> None:
        async def main() -> None:
            transport, peer = await self.open()
            await peer.say([a_write(number) for number in range(1, COUNT + 1)])
            received: list[Message] = []
            batches = 0
            with anyio.fail_after(20):
                while len(received) < COUNT:
                    batch = await transport.receive()
                    assert batch, "an empty batch means that the peer is gone"
                    received += [each for each in batch if isinstance(each, Write)]
                    batches += 1
            assert received == [a_write(number) for number in range(1, COUNT + 1)]
            assert batches < COUNT, "what is there comes together"
            await peer.leave()
            await transport.aclose()

        anyio.run(main)

    def test_what_is_sent_is_heard_whole_and_in_order(self) -> None:
        async def main() -> None:
            transport, peer = await self.open()
            with anyio.fail_after(20):
                await transport.send([an_answer(number) for number in range(1, COUNT + 1)])
                heard = await peer.hear(COUNT)
            assert heard == [an_answer(number) for number in range(1, COUNT + 1)]
            await peer.leave()
            await transport.aclose()

        anyio.run(main)

    def test_receive_waits_and_can_be_cancelled_without_losing_anything(self) -> None:
        async def main() -> None:
            transport, peer = await self.open()
            with anyio.move_on_after(0.2) as waiting:
                await transport.receive()
            assert waiting.cancelled_caught
            await peer.say([a_write(1)])
            with anyio.fail_after(20):
                batch = await transport.receive()
            assert [each for each in batch if isinstance(each, Write)] == [a_write(1)]
            await peer.leave()
            await transport.aclose()

        anyio.run(main)

    def test_after_closing_nothing_is_received(self) -> None:
        async def main() -> None:
            transport, peer = await self.open()
            await transport.aclose()
            with anyio.fail_after(5):
                assert list(await transport.receive()) == []
            await peer.leave()

        anyio.run(main)
