"""The stores of a service kept small while it works, or between its turns [QS 2.14.2].

Decides: which stores are compacted when, and that the write-ahead logs stay short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from qsctl.core.messages import QueueName
from qsctl.core.records import QueueRecord, ServiceRecord
from qsctl.errors import Damaged
from qsctl.storage.base import Shares
from qsctl.storage.log_upkeep import keep_short
from qsctl.storage.log_upkeep import make_room as _make_room
from qsctl.storage.logged import LoggedStorage
from qsctl.storage.room import DiskFull
from qsctl.storage.write_ahead_log import FILES_MAX, WriteAheadLog

if TYPE_CHECKING:
    from qsctl.service.stores import Stores

_FILES_AT_REST: Final = 2
"""So many files may a log have when the service leaves: the next one reads them."""


def compact(
    stores: Stores,
    snapshot: Callable[[QueueName], Iterable[QueueRecord]],
    service: Iterable[ServiceRecord],
    *,
    all_damaged: bool = False,
) -> None:
    """Compact the stores for which it pays; with `all_damaged` also those in which damage was found.

    `service` is the whole configuration. The state must be the one that all stored records give.

    Raises:
        Damaged: the disk refuses.
    """
    if stores.service and (stores.service.worth_compacting() or (all_damaged and stores.service.damage)):
        stores.service.compact(service)
    damaged_logs = [log for log in stores.files.logs.values() if all_damaged and log.damage]
    compacted = []
    for name, store in stores.queues.items():
        is_damaged = all_damaged and (store.damage or (isinstance(store, LoggedStorage) and store.log in damaged_logs))
        if name not in stores.failures and (store.worth_compacting() or is_damaged):
            store.compact(snapshot(name))
            compacted.append(name)
    for log in damaged_logs:
        _make_room(log, partial(_streams, stores, log), partial(_fail, stores))
    if not stores.failures:
        for _ in keep_logs_short(stores, _FILES_AT_REST):
            pass
        for log in stores.files.logs.values():
            if log.extent.size_bytes > stores.files.filesystem.file_max_size_bytes:
                with suppress(Damaged):
                    _make_room(log, partial(_streams, stores, log), partial(_fail, stores))
    stores.note(compacted)


def compact_in_shares(
    stores: Stores, capture: Callable[[QueueName], Shares], service: Iterable[ServiceRecord], *, every: bool = False
) -> Iterator[None]:
    """Compact the stores for which it pays, or every one, a part between two yields; batches may be stored meanwhile.

    `service` and, before each part, `capture` must be the state that all stored records give. What the disk refuses is
    noted as a failure of the store.
    """
    if stores.service and (every or stores.service.worth_compacting()):
        try:
            stores.service.compact(service)
        except DiskFull:
            stores.files.room.release()
        except Damaged as error:
            stores.service_failure = error  # the whole of it is stored anew once the disk accepts it
    for name, store in list(stores.queues.items()):
        if stores.queues.get(name) is not store or name in stores.failures:
            continue
        if every or store.worth_compacting():
            try:
                yield from store.compact_in_shares(capture(name))
            except DiskFull:
                stores.files.room.release()  # the old content stays; another will find what this one left
            except Damaged as error:
                stores.guarded.fail(name, error)
            else:
                stores.note([name])
    yield from keep_logs_short(stores)


def keep_logs_short(stores: Stores, files_max: int = FILES_MAX) -> Iterator[None]:
    """Let the oldest files of the write-ahead logs go, a part between two yields; batches may be stored meanwhile."""
    for log in list(stores.files.logs.values()):
        with suppress(Damaged):  # the next group will meet it, and say so
            yield from keep_short(log, partial(_streams, stores, log), partial(_fail, stores), files_max)


def make_room(stores: Stores) -> None:
    """Give back the room of what is held no more."""
    for log in list(stores.files.logs.values()):
        with suppress(Damaged):
            stores.files.with_reserve(partial(_make_room, log, partial(_streams, stores, log), partial(_fail, stores)))


def _streams(stores: Stores, log: WriteAheadLog) -> Sequence[LoggedStorage] | None:
    """Return the streams of a log that are open; None where one of them has failed."""
    found = []
    for name, store in stores.queues.items():
        if isinstance(store, LoggedStorage) and store.log is log:
            if name in stores.failures:
                return None
            found.append(store)
    return found


def _fail(stores: Stores, stream: LoggedStorage, error: Damaged) -> None:
    for name, store in stores.queues.items():
        if store is stream:
            stores.guarded.fail(name, error)
