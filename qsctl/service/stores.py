"""Every store of a service: which record goes to which (manual, section 2.14).

Decides: the kind of store and the files of each queue, and the order in which the stores of one batch are written. A
persistent queue has its own files in the configured directory. A volatile one has none in a running service; the
embedded service keeps it in files of its own, for there the process ends with every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.messages import QueueName
from qsctl.core.payloads import with_payloads
from qsctl.core.ready import Ready
from qsctl.core.records import (
    Enqueued,
    QueueDeleted,
    QueueRecord,
    Record,
    Removed,
    ServiceRecord,
    SubscriberDeleted,
)
from qsctl.errors import Refused
from qsctl.service.places import Place, Places
from qsctl.storage.base import Shares, Storage, Sync
from qsctl.storage.damage import DamageReport
from qsctl.storage.names import private_stem, queue_stem, service_file
from qsctl.storage.segments import SegmentStorage
from qsctl.storage.sqlite import SqliteStorage

Snapshot: TypeAlias = Callable[[QueueName], Iterable[QueueRecord]]
"""The fewest records that give a queue's state."""

_QUEUE = attrgetter("queue")


class Stores:
    """The stores of one service instance. One thread at a time may use them.

    Args:
        directory: where persistent queues and the service state are kept; must exist.
        filesystem: how they are written (Table 3.9).
        application_name: part of every file's name.
        keeps_service_state: whether changes of the configuration survive (section 2.14.1).
        volatile_directory: where volatile queues are kept all the same; None: nowhere.
        holds_samples: whether the queues' own files are opened; False in a process that only coordinates those
            that hold them.

    Raises:
        InvalidInput: the directory does not exist, or a name cannot be part of a file name.
        Damaged: the disk refuses.
    """

    def __init__(
        self,
        directory: Path,
        filesystem: FilesystemSettings,
        application_name: str,
        *,
        keeps_service_state: bool,
        volatile_directory: Path | None = None,
        holds_samples: bool = True,
    ) -> None:
        self.directory = directory
        self.filesystem = filesystem
        self.application_name = application_name
        self._volatile_directory = volatile_directory
        self._holds_samples = holds_samples
        self._queues: dict[QueueName, Storage] = {}
        self._files: dict[Path, QueueName] = {}
        self._places: Places = {}
        self._closed_damage: list[DamageReport] = []
        self.service: Storage | None = None
        if keeps_service_state:
            self.service = SqliteStorage(service_file(directory, filesystem.file_prefix, application_name), filesystem)

    @property
    def damage(self) -> list[DamageReport]:
        """What every store found broken."""
        stores = [*([self.service] if self.service else []), *self._queues.values()]
        return [*self._closed_damage, *(report for store in stores for report in store.damage)]

    def follow(self, places: Places) -> None:
        """Take note of the queues there are; open the stores of those that are new.

        Raises:
            InvalidInput: a name of a persistent queue cannot be part of a file name.
            Refused: two persistent queues would have the same files.
        """
        self._places = places
        if not self._holds_samples:
            self._files = {}
            for name, place in places.items():
                if place.is_persistent:
                    self._files[self._stem(name, place)] = name
            return
        for name, place in places.items():
            if name not in self._queues and (place.is_persistent or self._volatile_directory):
                self._queues[name] = self._open(name, place)

    def check(self, name: QueueName, place: Place) -> None:
        """Whether a queue could be kept here.

        Raises:
            InvalidInput: a name of a persistent queue cannot be part of a file name.
            Refused: another persistent queue has the same files.
        """
        if place.is_persistent:
            self._stem(name, place)

    def load(self, queue: QueueName) -> Iterator[Record]:
        """What a queue's store holds; nothing where it has none."""
        return self._queues[queue].load() if queue in self._queues else iter(())

    def payload(self, queue: QueueName, position: int) -> bytes:
        """The payload of a sample that is held (`Storage.payload`).

        Raises:
            KeyError: the queue has no store, or no such sample is held.
            Damaged: its bytes do not match their checksum.
        """
        return self._queues[queue].payload(position)

    def commit(self, batches: Sequence[Ready]) -> list[Ready]:
        """Store several batches as one; give them back with every payload in them, ready to be sent.

        Raises:
            Damaged: the disk refuses; what was stored before may stay.
        """
        filled, sync = self.write(batches)
        (sync or self.settle)()
        return filled

    def write(self, batches: Sequence[Ready]) -> tuple[list[Ready], Sync | None]:
        """The first half of `commit`, and the second (see `Storage.write`).

        Raises:
            Damaged: the disk refuses; what was stored before may stay.
        """
        read = self._reader(batches)
        filled = [with_payloads(ready, read) for ready in batches]
        records = filled[0].records if len(filled) == 1 else [record for ready in filled for record in ready.records]
        # That a sample was settled is told to nobody: if it is lost, the sample comes again, marked.
        rides = not any(ready.messages for ready in filled) and set(map(type, records)) == {Removed}
        changes_service = any(ready.changes_service for ready in filled)
        return filled, self._write(records, changes_service=changes_service, rides=rides)

    def settle(self) -> None:
        """Make durable what waits for the sync of a next batch: none may come.

        Raises:
            Damaged: the disk refuses; what was stored before may stay.
        """
        for store in self._queues.values():
            store.settle()

    def _write(self, records: Sequence[Record], *, changes_service: bool, rides: bool) -> Sync | None:
        """Write records, each where it belongs: once a store.

        Dead-letter queues come first and are synced at once, so that no sample is gone from its queue before it is in
        the other; a change of the configuration waits for the records before it.
        """
        if not changes_service and len(names := set(map(_QUEUE, records))) == 1:
            # Nearly always: nothing but what happened in one queue.
            (name,) = names
            syncs = self._write_queues({name: records} if name in self._queues else {}, rides=rides)
            return syncs[0] if syncs else None
        batch: dict[QueueName, list[Record]] = {}
        for record in records:
            if isinstance(record, ServiceRecord):
                for sync in self._write_queues(batch):
                    sync()
                batch = {}
                self._change(record)
            elif record.queue in self._queues:
                batch.setdefault(record.queue, []).append(record)
        syncs = self._write_queues(batch, rides=rides)
        return partial(_do_all, syncs) if syncs else None

    def compact(self, snapshot: Snapshot, service: Iterable[ServiceRecord], *, all_damaged: bool = False) -> None:
        """Compact the stores for which it pays; with `all_damaged` also those in which damage was found.

        `service` is the whole configuration. The state must be the one that all stored records give.

        Raises:
            Damaged: the disk refuses.
        """
        if self.service and (self.service.worth_compacting() or (all_damaged and self.service.damage)):
            self.service.compact(service)
        for name, store in self._queues.items():
            if store.worth_compacting() or (all_damaged and store.damage):
                store.compact(snapshot(name))

    def compact_in_shares(
        self, capture: Callable[[QueueName], Shares], service: Iterable[ServiceRecord]
    ) -> Iterator[None]:
        """Compact the stores for which it pays, a share between two yields; batches may be stored meanwhile.

        `service` and, before each share, `capture` must be the state that all stored records give.

        Raises:
            Damaged: the disk refuses.
        """
        if self.service and self.service.worth_compacting():
            self.service.compact(service)
        for name, store in list(self._queues.items()):
            if self._queues.get(name) is store and store.worth_compacting():
                yield from store.compact_in_shares(capture(name))

    def forget(self, keep: Callable[[Place], bool]) -> None:
        """Delete the stores of the queues that are not to be kept."""
        for name in [name for name, place in self._places.items() if name in self._queues and not keep(place)]:
            self._destroy(name)

    def discard_left_over(self, deleted: Places) -> None:
        """Delete the files of queues that were deleted, should a crash have left them."""
        for name, place in deleted.items():
            if name not in self._places and (place.is_persistent or self._volatile_directory):
                self._open(name, place).destroy()
                self._files = {stem: owner for stem, owner in self._files.items() if owner != name}

    def close(self) -> None:
        """Let go of all files.

        Raises:
            Damaged: the disk refuses.
        """
        for store in self._queues.values():
            store.close()
        if self.service:
            self.service.close()

    def _open(self, name: QueueName, place: Place) -> Storage:
        settings = place.settings
        if not place.is_persistent:
            assert self._volatile_directory is not None
            return SegmentStorage(private_stem(self._volatile_directory, name), self.filesystem)
        stem = self._stem(name, place)
        self._files[stem] = name
        store: Storage
        if settings.persistence.in_memory_state:
            store = SegmentStorage(stem, self.filesystem)
        else:
            store = SqliteStorage(stem.with_name(stem.name + ".db"), self.filesystem)
        if not settings.persistence.restore and self._volatile_directory is None:
            store.compact([])  # a restart; between the commands of an embedded service there is none
        return store

    def _stem(self, name: QueueName, place: Place) -> Path:
        """What the files of a persistent queue are named after."""
        stem = queue_stem(
            self.directory,
            self.filesystem.file_prefix,
            place.settings.topic_name or place.settings.name,
            place.subscriber,
            place.domain_id,
            self.application_name,
        )
        other = self._files.get(stem, name)
        if other != name:
            raise Refused(
                f"the persistent queues {other} and {name} would share the file {stem.name}",
                remedy="Give them different topics, shared subscribers or domains.",
            )
        return stem

    def _write_queues(self, batch: Mapping[QueueName, Sequence[Record]], *, rides: bool = False) -> list[Sync]:
        """What is left to do for the queues' own stores."""
        for name in filter(self._is_dead_letter, batch):
            self._queues[name].append(batch[name])
        others = [name for name in batch if not self._is_dead_letter(name)]
        stores = [(self._queues[name], batch[name]) for name in others]
        written = [store.write_along(records) if rides else store.write(records) for store, records in stores]
        return [sync for sync in written if sync is not None]

    def _is_dead_letter(self, name: QueueName) -> bool:
        place = self._places.get(name)
        return place is not None and place.settings.is_dead_letter

    def _change(self, record: ServiceRecord) -> None:
        if self.service:
            self.service.append([record])
        if isinstance(record, QueueDeleted | SubscriberDeleted):
            for name in [name for name in self._queues if name not in self._places]:
                self._destroy(name)

    def _destroy(self, name: QueueName) -> None:
        store = self._queues.pop(name)
        self._closed_damage += store.damage
        self._files = {stem: owner for stem, owner in self._files.items() if owner != name}
        store.destroy()

    def _reader(self, batches: Sequence[Ready]) -> Callable[[QueueName, int], bytes]:
        """Reads a payload from its store, or from a batch that is about to be stored with this one."""
        fresh: dict[tuple[QueueName, int], bytes] = {}

        def read(queue: QueueName, position: int) -> bytes:
            try:
                return self._queues[queue].payload(position)
            except KeyError:
                if not fresh:
                    fresh.update(
                        ((record.queue, record.position), record.payload)
                        for ready in batches
                        for record in ready.records
                        if isinstance(record, Enqueued) and record.payload_from is None
                    )
                return fresh[queue, position]

        return read


def _do_all(syncs: Sequence[Sync]) -> None:
    for sync in syncs:
        sync()
