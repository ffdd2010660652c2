"""Drivers that are broken on purpose, each in one rule of stores, files or letters: what worlds must catch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest

from qsctl.core.ready import Ready
from qsctl.service.replicas import _replica_stores as replica_stores
from qsctl.service.replicas._replica_writes import ReplicaWrites
from qsctl.service.stores._failures import Failures
from qsctl.service.stores.stores import Stores
from qsctl.sim.world.environment.disk import MountedDisk
from qsctl.sim.world.programs.producing import ProducerProgram
from qsctl.storage.base import Sync
from qsctl.storage.log._written_file import WrittenFile
from qsctl.storage.log.segment_log import SegmentLog
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_stream import Appended, StateSet
from qsctl.storage.streams._checkpoints import Checkpoints
from qsctl.transport.dds.peers.correspondents import Correspondents
from tests.core.high_availability.rules import Mutant, breaks, mutants_of


@breaks(1)
def never_syncs_a_log(patch: pytest.MonkeyPatch) -> None:
    """What is written to a log is taken for durable once the system has it."""
    patch.setattr(WrittenFile, "sync", WrittenFile.flush)


@breaks(1)
def never_syncs_a_directory(patch: pytest.MonkeyPatch) -> None:
    """A file is taken for durable with its name."""
    patch.setattr(MountedDisk, "sync_directory", lambda self, directory: None)


@breaks(1)
def reports_replicas_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    """Replicas confirm what is being written."""
    following = ReplicaWrites._next

    def begin(self: ReplicaWrites) -> Any:
        sync, syncs = following(self)
        if sync is not None and self._numbers:
            for stream, number in self._numbers.items():
                self._member.stored(self._clock(), stream, number)
        return sync, syncs

    patch.setattr(ReplicaWrites, "_next", begin)


@breaks(1)
def forgets_the_hard_state(patch: pytest.MonkeyPatch) -> None:
    """Epoch and vote are not written."""
    operations = replica_stores.operations

    def without(log: Any, writes: Any) -> Any:
        return (each for each in operations(log, writes) if not isinstance(each, StateSet))

    patch.setattr(replica_stores, "operations", without)


@breaks()
def releases_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    """A queue that is not replicated accepts samples while they are being written."""
    write = Stores.write

    def written(self: Stores, turns: Sequence[Ready]) -> Sync | None:
        write(self, turns)
        return None

    patch.setattr(Stores, "write", written)


@breaks()
def withholds_nothing(patch: pytest.MonkeyPatch) -> None:
    """What rests on records that a disk refused leaves all the same."""
    patch.setattr(Failures, "withhold", lambda self, turns: None)


@breaks(11)
def drops_deleted_logs_too_late(patch: pytest.MonkeyPatch) -> None:
    """The log of a deleted queue stays in the store, and its name is given again."""
    patch.setattr(ReplicaWrites, "_end", lambda self, stream: iter(()))


@breaks(15)
def hears_nobody_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A process that took the place of another one of its name is never heard."""

    def accepts(self: Correspondents, now: int, name: str, run: str) -> bool:
        first = self.__dict__.setdefault("first", {}).setdefault(name, run)
        return bool(first == run)

    patch.setattr(Correspondents, "accepts", accepts)


@breaks(1)
def adopts_nothing(patch: pytest.MonkeyPatch) -> None:
    """Changes of the service's configuration are not stored."""
    patch.setattr(Stores, "_change", lambda self, record: None)


@breaks()
def recovers_from_memory_alone(patch: pytest.MonkeyPatch) -> None:
    """A queue whose store failed goes on without its records having been stored anew."""

    def recover(self: Stores, name: str, snapshot: Any) -> None:
        del self.failures.queues[name]

    patch.setattr(Stores, "recover", recover)


@breaks(1)
def relies_on_what_a_failed_sync_left(patch: pytest.MonkeyPatch) -> None:
    """What a log has behind its last durable mark is not written again when it is opened."""
    init = SegmentLog.__init__

    def sure(self: SegmentLog, *given: Any, **named: Any) -> None:
        init(self, *given, **(named | {"unsure_from": lambda _: -1}))

    patch.setattr(SegmentLog, "__init__", sure)


@breaks(10)
def takes_a_damaged_log_for_whole(patch: pytest.MonkeyPatch) -> None:
    """A replica votes with what is left of its log."""
    patch.setattr(ReplicaLog, "is_damaged", False)


@breaks()
def checkpoints_without_a_sync(patch: pytest.MonkeyPatch) -> None:
    """What leaves the write-ahead log is taken for durable in the queues' own files."""
    patch.setattr(Checkpoints, "sync", lambda self: None)


@breaks(1)
def truncates_in_memory_alone(patch: pytest.MonkeyPatch) -> None:
    """The entries that a new master takes back stay in the log of the process."""
    operations = replica_stores.operations

    def without(log: Any, writes: Any) -> Any:
        for each in operations(log, writes):
            yield msgspec.structs.replace(each, truncates=False) if isinstance(each, Appended) else each

    patch.setattr(replica_stores, "operations", without)


@breaks(5)
def forgets_whom_it_sent_a_sample(patch: pytest.MonkeyPatch) -> None:
    """A producer waits for the refusals of the services alone that it reaches with the latest attempt."""
    write_again = ProducerProgram._write_again

    def again(self: ProducerProgram, samples: Sequence[Any]) -> None:
        self._holders.clear()
        write_again(self, samples)

    patch.setattr(ProducerProgram, "_write_again", again)


MUTANTS: Final[dict[str, Mutant]] = mutants_of(__name__)
