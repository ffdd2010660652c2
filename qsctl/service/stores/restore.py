"""The restoration of an engine from its stores at a start [QS 2.14.1, 2.14.2.1].

Decides: the order in which the stores are read, and the treatment of files whose queue no longer exists.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain

from qsctl.core.engine import ServiceEngine
from qsctl.core.messages import QueueName
from qsctl.core.records import (
    Assigned,
    Enqueued,
    QueueCreated,
    QueueDeleted,
    Record,
    Removed,
    Returned,
    ServiceStarted,
    SubscriberCreated,
    SubscriberDeleted,
)
from qsctl.core.settings import ServiceSettings, queues_of
from qsctl.errors import QsctlError
from qsctl.identity import NIL_INCARNATION, Incarnation
from qsctl.instant import Nanoseconds
from qsctl.service.stores.places import HostedPlace, Places, places_of
from qsctl.service.stores.stores import Stores


def restore(engine: ServiceEngine, stores: Stores, now: Nanoseconds) -> None:
    """Replay the stored configuration, then every queue's records into a fresh engine, and start the service.

    The records that the restart itself produces are in the engine's next `take_ready`.

    Nothing is deleted before everything was read: stores that are not restored are emptied, and the register is
    written, once no store prevents the start.

    Raises:
        InvalidInput, Refused: a persistent queue cannot have files of its own.
        Damaged: stored records are lost and the user has not accepted that, or an I/O error occurs.
    """
    with _many_new_objects():
        service_records = list(stores.load_service())
        stores.refuse_loss()
        _replay_configuration(engine, service_records, is_whole=stores.service is None or not stores.service.damage)
        places = places_of(engine.hosted)
        stores.follow(places)
        found: dict[QueueName, Incarnation] = {}
        for name in places:
            records = stores.load(name)
            first = next(records, None)
            if first is not None:
                engine.replay_all(mended(chain((first,), records)))
                queue = engine.hosted.by_name[name]
                if engine.hosted.restores(queue):
                    found[name] = queue.incarnation
        stores.judge(found)
        stores.discard_left_over(_deleted_places(service_records))
        stores.checkpoint_unhosted()
        engine.finish_restore(now)
        stores.know(incarnations_of(engine))


def _replay_configuration(engine: ServiceEngine, records: Iterable[Record], *, is_whole: bool) -> None:
    """Replay the stored configuration; from a damaged one, replay the changes that the remaining records permit.

    A queue whose dead-letter queue or subscriber is lost is not created.
    """
    if is_whole:
        engine.replay_all(records)
        return
    for record in records:
        with suppress(KeyError, QsctlError):
            engine.replay(record)


def incarnations_of(engine: ServiceEngine) -> dict[QueueName, Incarnation]:
    """Return the incarnation of each queue that has one, by its full name."""
    queues = engine.hosted.by_name
    return {name: queue.incarnation for name, queue in queues.items() if queue.incarnation != NIL_INCARNATION}


def adopt(engine: ServiceEngine, stores: Stores, now: Nanoseconds, opened: Iterable[QueueName]) -> None:
    """Restore into queues that were just created the samples that an earlier run left in their files [QS 2.14.2].

    Args:
        engine: the engine that hosts the queues.
        stores: the stores, in which the queues' are open.
        now: the instant of the restoration.
        opened: the queues whose stores were opened for their creation; the others have their samples already.
    """
    found = False
    for name in opened:
        records = mended(stores.load(name))
        for first in records:
            engine.replay_all(chain((first,), records))
            found = True
    if found:
        engine.finish_restore(now)


def mended(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records, with lost ones inferred: a sample that was sent again must have returned before."""
    sent: set[int] = set()
    for record in records:
        if type(record) is Enqueued:  # most of them
            pass
        elif isinstance(record, Assigned):
            if record.position in sent:
                yield Returned(record.queue, record.position, record.attempt - 1, redelivered=True)
            sent.add(record.position)
        elif isinstance(record, Returned | Removed):
            sent.discard(record.position)
        yield record


def _deleted_places(records: Iterable[Record]) -> Places:
    """Return the places of the queues that the records delete, whose files may still exist."""
    known: dict[QueueName, HostedPlace] = {}
    deleted: dict[QueueName, HostedPlace] = {}
    domains: dict[str, int] = {}
    for record in records:
        match record:
            case ServiceStarted(settings):
                domains = {participant.name: participant.domain_id for participant in settings.participants}
                known = dict(_configured_places(settings))
            case SubscriberCreated(participant, settings):
                for queue in settings.queues:
                    place = HostedPlace(domains.get(participant, 0), settings.name, queue)
                    known[f"{participant}/{settings.name}/{queue.name}"] = place
            case QueueCreated(participant, subscriber, settings):
                known[f"{participant}/{subscriber}/{settings.name}"] = HostedPlace(
                    domains.get(participant, 0), subscriber, settings
                )
            case QueueDeleted(participant, subscriber, name):
                full_name = f"{participant}/{subscriber}/{name}"
                if full_name in known:
                    deleted[full_name] = known[full_name]
            case SubscriberDeleted(participant, subscriber):
                inside = f"{participant}/{subscriber}/"
                deleted |= {name: place for name, place in known.items() if name.startswith(inside)}
            case _:
                pass
    return deleted


def _configured_places(settings: ServiceSettings) -> Iterator[tuple[QueueName, HostedPlace]]:
    for participant, subscriber, queue in queues_of(settings):
        name = f"{participant.name}/{subscriber.name}/{queue.name}"
        yield name, HostedPlace(participant.domain_id, subscriber.name, queue)


@contextmanager
def _many_new_objects() -> Iterator[None]:
    """Pause garbage collection while millions of lasting objects are created.

    They are not frozen afterwards: an embedded service is closed again, in a process that may open many.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
