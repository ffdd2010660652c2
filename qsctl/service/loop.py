"""One turn of a service on the wall clock, and turns one after the other (ARCHITECTURE: the seams).

Decides: the order of a turn. Take what is in the inbox, let the engine receive each message and do what is due, store
the records, only then send the messages and tell the events, sleep until the next deadline or message. The embedded
service takes single turns; a running service takes them with one commit under way while the next gathers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import anyio
import anyio.abc

from qsctl.core.admin.command import CreateQueue, CreateSubscriber
from qsctl.core.engine import ServiceEngine
from qsctl.core.events import Event
from qsctl.core.messages import CommandReply, CommandRequest, Inbound
from qsctl.core.ready import Ready
from qsctl.core.records import QueueCreated, QueueDeleted, SubscriberCreated, SubscriberDeleted
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.service.admission import refusal_of
from qsctl.service.places import places_of
from qsctl.service.restore import adopt
from qsctl.service.stores import Stores
from qsctl.storage.group_commit import GroupCommit
from qsctl.transport.base import Transport

Clock: TypeAlias = Callable[[], Nanoseconds]
"""Unix nanoseconds."""

TellEvents: TypeAlias = Callable[[Sequence[Event]], None]
"""Told after the messages were sent; must not block."""

COMMITS_AHEAD_MAX: Final = 4
"""Turns that may wait for their commit before the inbox is left alone: that is back-pressure."""

COMPACT_AFTER_TURNS: Final = 1_000

_PLACES_CHANGE = (QueueCreated, QueueDeleted, SubscriberCreated, SubscriberDeleted)


class ServiceLoop:
    """An engine, its stores and a clock. Restore the engine before the first turn, see `restore`.

    Raises, from every turn:
        Damaged: the disk refuses. The service must stop: what it has in mind is ahead of what is stored.
    """

    def __init__(self, engine: ServiceEngine, stores: Stores, clock: Clock = time.time_ns) -> None:
        self.engine = engine
        self.stores = stores
        self.clock = clock
        self._turn_count = 0

    def take(self, inbox: Iterable[Inbound]) -> Ready:
        """The engine's half of a turn: receive each message, do what is due."""
        now = self.clock()
        receive = self.engine.receive
        refusals: list[CommandReply] = []
        for message in inbox:
            if isinstance(message, CommandRequest) and (refusal := refusal_of(self.engine, self.stores, message)):
                refusals.append(refusal)
            else:
                receive(now, message)
        self.engine.advance(now)
        ready = self.engine.take_ready()
        ready.messages.extend(refusals)
        return ready

    def turn(self, inbox: Sequence[Inbound] = ()) -> Ready:
        """One whole turn: what it gives is stored and may be sent; its records are done with.

        A command that creates a queue ends a turn of its own: the samples that an earlier run left in the queue's
        files must be in it before others (section 2.14.2).
        """
        done = Ready([], [], [])
        for part in _up_to_each_creation(inbox):
            ready = self.take(part)
            self._follow(ready)
            (ready,) = self.stores.commit([ready])
            done.records.extend(ready.records)
            done.messages.extend(ready.messages)
            done.events.extend(ready.events)
            if any(isinstance(record, QueueCreated | SubscriberCreated) for record in ready.records):
                adopt(self.engine, self.stores, self.clock(), ready.records)
        return done

    def compact(self, *, all_damaged: bool = False) -> None:
        """Reclaim the room of what no longer matters, in the stores where it pays. Between turns only."""
        self.stores.compact(self.engine.snapshot_queue, self.engine.snapshot_service(), all_damaged=all_damaged)

    async def run(self, transport: Transport, tell: TellEvents) -> None:
        """Turns until the service is shut down or the transport's peer is gone, with commits beside the turns.

        What was received is stored and answered before this returns. The stores are used by the commit's thread alone
        while this runs.
        """
        commits = GroupCommit(self.stores.commit)
        outgoing: deque[Future[Ready]] = deque()
        try:
            async with _inbox_of(transport) as inbox:
                while not self.engine.shutting_down and not (inbox.ended and not inbox.messages):
                    await self._step(inbox, commits, outgoing, transport, tell)
            while outgoing:
                await _send_first(outgoing, transport, tell)
        finally:
            commits.close()

    async def _step(
        self,
        inbox: _Inbox,
        commits: GroupCommit[Ready, Ready],
        outgoing: deque[Future[Ready]],
        transport: Transport,
        tell: TellEvents,
    ) -> None:
        await inbox.wait(self._patience_s() if not outgoing else 0.0)
        for part in _up_to_each_creation(inbox.take()):
            ready = self.take(part)
            if any(isinstance(record, _PLACES_CHANGE) for record in ready.records):
                commits.drain()
                self._follow(ready)
                outgoing.append(commits.submit(ready))
                commits.drain()
                adopt(self.engine, self.stores, self.clock(), ready.records)
            elif ready.records or ready.messages or ready.events:
                outgoing.append(commits.submit(ready))
            self._turn_count += 1
            if self._turn_count % COMPACT_AFTER_TURNS == 0:
                commits.drain()
                self.compact()
        while outgoing and (outgoing[0].done() or len(outgoing) >= COMMITS_AHEAD_MAX or not inbox.messages):
            await _send_first(outgoing, transport, tell)

    def _follow(self, ready: Ready) -> None:
        if any(isinstance(record, _PLACES_CHANGE) for record in ready.records):
            self.stores.follow(places_of(self.engine))

    def _patience_s(self) -> float | None:
        """How long nothing is due; None: until a message comes."""
        deadline = self.engine.next_deadline()
        return None if deadline is None else max(0.0, (deadline - self.clock()) / SECOND_NS)


class _Inbox:
    """Messages that arrived and were not received yet."""

    def __init__(self) -> None:
        self.messages: list[Inbound] = []
        self.ended = False
        self._arrived = anyio.Event()

    def put(self, messages: Iterable[Inbound]) -> None:
        self.messages.extend(messages)
        self._arrived.set()

    def end(self) -> None:
        self.ended = True
        self._arrived.set()

    def take(self) -> list[Inbound]:
        messages, self.messages = self.messages, []
        if not self.ended:
            self._arrived = anyio.Event()
        return messages

    async def wait(self, patience_s: float | None) -> None:
        """Until there is a message, the peer is gone, or time is up."""
        with anyio.move_on_after(patience_s):
            await self._arrived.wait()


@asynccontextmanager
async def _inbox_of(transport: Transport) -> AsyncIterator[_Inbox]:
    """An inbox that a task of its own fills from the transport."""
    inbox = _Inbox()

    async def fill() -> None:
        while messages := await transport.receive():
            inbox.put(messages)  # type: ignore[arg-type]
        inbox.end()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fill)
        yield inbox
        tasks.cancel_scope.cancel()


async def _send_first(outgoing: deque[Future[Ready]], transport: Transport, tell: TellEvents) -> None:
    """Wait for the oldest commit, then send and tell what it covers."""
    future = outgoing.popleft()
    ready = future.result() if future.done() else await anyio.to_thread.run_sync(future.result)
    if ready.messages:
        await transport.send(ready.messages)
    if ready.events:
        tell(ready.events)


def _up_to_each_creation(inbox: Sequence[Inbound]) -> Iterable[Sequence[Inbound]]:
    """The inbox in parts, each ending with a command that creates a queue; one part at least."""
    start = 0
    for at, message in enumerate(inbox):
        if isinstance(message, CommandRequest) and isinstance(message.command, CreateQueue | CreateSubscriber):
            yield inbox[start : at + 1]
            start = at + 1
    if start < len(inbox) or not inbox:
        yield inbox[start:]
