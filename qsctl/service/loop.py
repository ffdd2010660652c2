"""One turn of a service on the wall clock (ARCHITECTURE: the seams).

Decides: the order of a turn. Take what is in the inbox, let the engine receive each message and do what is due, store
the records, only then hand on the messages and events. The embedded service and a running one take the same turns;
`pipeline` takes them with one commit under way while the next gathers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteQueue, DeleteSubscriber
from qsctl.core.engine import ServiceEngine
from qsctl.core.messages import CommandRequest, Inbound, QueueName
from qsctl.core.ready import Ready
from qsctl.core.records import QueueCreated, QueueDeleted, SubscriberCreated, SubscriberDeleted
from qsctl.instant import Nanoseconds
from qsctl.service.admission import EndpointTrial, refusal_of
from qsctl.service.places import places_of
from qsctl.service.recovery import Recovery
from qsctl.service.restore import adopt
from qsctl.service.stores import Stores

Clock: TypeAlias = Callable[[], Nanoseconds]
"""Unix nanoseconds."""

_CHANGING = CreateQueue | CreateSubscriber | DeleteQueue | DeleteSubscriber
_CHANGES = frozenset({QueueCreated, QueueDeleted, SubscriberCreated, SubscriberDeleted})


class ServiceLoop:
    """An engine, its stores and a clock. Restore the engine before the first turn, see `restore`.

    A disk that refuses concerns the queues whose stores it refuses, see `recovery`.
    """

    def __init__(self, engine: ServiceEngine, stores: Stores, clock: Clock = time.time_ns) -> None:
        self.engine = engine
        self.stores = stores
        self.clock = clock
        self.recovery = Recovery(engine, stores, clock)
        self.try_endpoints: EndpointTrial | None = None
        """Set where queues have endpoints: what a CREATE asks for is tried before the engine takes it."""

    def turn(self, inbox: Sequence[Inbound] = ()) -> Ready:
        """One whole turn: what it gives is stored and may be sent; its records are done with."""
        done = Ready([], [], [])
        changes_service = False
        for part in up_to_each_change(inbox):
            if self.recovery.is_needed:
                self.recovery.heed()
            ready = self.take(part)
            opened = self.follow() if changes_queues(ready) else []
            (ready,) = self.stores.commit([ready])
            done.records.extend(ready.records)
            done.messages.extend(ready.messages)
            done.events.extend(ready.events)
            changes_service |= ready.changes_service
            if opened:
                self.adopt(opened)
        if self.stores.is_log_long:
            for _ in self.stores.keep_logs_short():
                pass
        if self.recovery.is_needed:
            self.recovery.heed()
            self.recovery.attempt()
        return done._replace(changes_service=changes_service)

    def take(self, inbox: Sequence[Inbound]) -> Ready:
        """The engine's half of a turn. Call `follow` and then store the records before anything leaves.

        `inbox` is one part of `up_to_each_change`: only its last message can ask for what cannot be stored.
        """
        now = self.clock()
        last = inbox[-1] if inbox else None
        refusal = (
            refusal_of(self.engine, self.stores, last, self.try_endpoints) if isinstance(last, CommandRequest) else None
        )
        self.engine.receive_all(now, inbox if refusal is None else inbox[:-1])
        self.engine.advance(now)
        ready = self.engine.take_ready()
        if refusal is not None:
            ready.messages.append(refusal)
        return ready

    def follow(self) -> list[QueueName]:
        """Open the stores of created queues, and return which; those of deleted ones go once that is stored."""
        return self.stores.follow(places_of(self.engine))

    def adopt(self, opened: Sequence[QueueName]) -> None:
        """Give created queues, once the creation is stored, the samples found in their newly opened files."""
        adopt(self.engine, self.stores, self.clock(), opened)

    def compact(self, *, all_damaged: bool = False) -> None:
        """Reclaim the room of what no longer matters, in the stores where it pays. Between turns only."""
        self.stores.compact(self.engine.snapshot_queue, self.engine.snapshot_service(), all_damaged=all_damaged)

    def compact_in_shares(self) -> Iterator[None]:
        """The same for a service that goes on: a share between two yields. Each between turns, with all stored."""
        return self.stores.compact_in_shares(self.engine.capture_queue, self.engine.snapshot_service())


def changes_queues(ready: Ready) -> bool:
    """Whether a queue was created or deleted."""
    return ready.changes_service and not _CHANGES.isdisjoint(map(type, ready.records))


def up_to_each_change(inbox: Sequence[Inbound]) -> Iterator[Sequence[Inbound]]:
    """The inbox in parts, each ending with a command that creates or deletes queues; one part at least.

    The samples that an earlier run left in a queue's files must be in it before others are (section 2.14.2). A queue
    that is deleted and created again has new files, which it gets only where its former ones went in between.
    """
    start = 0
    if CommandRequest not in set(map(type, inbox)):
        yield inbox
        return
    for at, message in enumerate(inbox):
        if isinstance(message, CommandRequest) and isinstance(message.command, _CHANGING):
            yield inbox[start : at + 1]
            start = at + 1
    if start < len(inbox) or not inbox:
        yield inbox[start:]
