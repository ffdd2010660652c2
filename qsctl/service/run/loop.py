"""A service on the wall clock: its turns, its stores, and syncs that run while it works on.

Decides: when the records of turns are written, and where their sync is done. The order of everything is
`qsctl.core.turn`'s: this is its driver, in the embedded service (`turn`, one after the other) and in a running one
(`begin` and `pop_finished`, with one sync in progress while the next turns gather).
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from qsctl.config.budgets import ServiceLimits
from qsctl.core.engine import ServiceEngine
from qsctl.core.messages import CommandReply, CommandRequest, Inbound
from qsctl.core.ready import Input
from qsctl.core.turn import RECORDS_AHEAD_MAX, TURNS_AHEAD_MAX, Group, Released, Stepped, Turn
from qsctl.errors import Damaged
from qsctl.instant import Nanoseconds
from qsctl.service.replicas.replication import Replication
from qsctl.service.replicas.samples_first import read_samples_first
from qsctl.service.run._admission import EndpointTrial, refusal_of
from qsctl.service.stores.places import places_of
from qsctl.service.stores.recovery import Recovery
from qsctl.service.stores.restore import adopt, incarnations_of
from qsctl.service.stores.stores import Stores
from qsctl.service.stores.withholding import explained
from qsctl.storage.base import Sync

Clock: TypeAlias = Callable[[], Nanoseconds]
"""Unix nanoseconds."""

COMPACT_AFTER_RECORDS: Final = 500_000
"""Default number of stored records after which a busy service checks whether to compact a store."""

COMPACT_QUIET_AFTER_RECORDS: Final = 5_000
"""The same number when the service is idle."""

_NOTHING: Final = object()


class ServiceLoop:
    """An engine, its stores and a clock. Restore the engine before the first turn, see `restore`; close it before the
    stores.

    A failing disk affects the queues, or the changes of the configuration, whose stores fail, see `recovery`. What
    fails beside that, such as the files of a queue that is created, ends the loop: every later call raises the same
    error.

    Args:
        engine: the engine whose turns are run.
        stores: the stores of its records.
        clock: Unix nanoseconds: the wall clock, or one that ignores changes of it.
        on_finished: called in another thread when `pop_finished` has something; must not block.
        turns_ahead_max, records_ahead_max: bounds on the turns and records that wait for the disk.
        quick_sync_s: a sync on a disk that takes less is waited for; 0: none. By default every sync is waited for.
        replication: what steps the engine as a member of a cluster; None: nothing is replicated.
        limits: gives those of the service.
        compact_after_records: number of stored records after which a busy service checks whether to compact a store.
    """

    def __init__(
        self,
        engine: ServiceEngine,
        stores: Stores,
        clock: Clock = time.time_ns,
        *,
        on_finished: Callable[[], object] = lambda: None,
        turns_ahead_max: int = TURNS_AHEAD_MAX,
        records_ahead_max: int = RECORDS_AHEAD_MAX,
        quick_sync_s: float = math.inf,
        replication: Replication | None = None,
        limits: Callable[[], ServiceLimits] = ServiceLimits,
        compact_after_records: int = COMPACT_AFTER_RECORDS,
    ) -> None:
        self.engine = engine
        self.stores = stores
        self.clock = clock
        self.recovery = Recovery(engine, stores, clock)
        self.try_endpoints: EndpointTrial | None = None
        """Set where queues have endpoints: what a CREATE asks for is tried before the engine receives it."""
        self._replication = replication
        self._limits = limits
        self._stepped: Stepped = engine if replication is None else replication.member
        if replication is not None and replication.member.configuration is not None:
            replication.member.configuration.admit = self._local_refusal_of
        self._turn = Turn(
            self._stepped, self._refusal_of, turns_ahead_max=turns_ahead_max, records_ahead_max=records_ahead_max
        )
        self._syncs = stores.environment.open_syncs(on_finished, quick_sync_s=quick_sync_s)
        self._syncing: Group | None = None
        self._finished: list[Released] = []
        self._failure: BaseException | None = None
        self._may_ride = False
        """Whether the latest group was not synced: its sync may be deferred to that of the next group."""
        self._compact_after_records = compact_after_records
        self._record_count = 0
        self._compaction: Iterator[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether everything that was begun is durable, and was given by `pop_finished`."""
        return self._turn.is_idle and not self._finished

    def turn(self, inbox: Sequence[Inbound] = ()) -> Released:
        """Return what one whole turn gives. All of it is durable, and its messages may leave.

        Raises:
            Damaged: the disk refuses.
        """
        self.begin(inbox)
        self.finish()
        if self._may_ride:
            self.stores.sync()
        while self._compaction is not None:
            self.compact_on()
        if self.recovery.is_needed:
            self._recover()
        inputs: list[Input] = []
        done = Released([], [], [], inputs)
        for released in self.pop_finished():
            inputs += [each._replace(events_before=each.events_before + len(done.events)) for each in released.inputs]
            done.messages.extend(released.messages)
            done.events.extend(released.events)
            done.service_records.extend(released.service_records)
        return done

    def serve(self, poll: Callable[[], list[Inbound]]) -> tuple[list[Released], bool]:
        """Let in what has come, and do what is due; return what may leave, and whether there was anything.

        This is one pass of a running service; it sleeps between two until `next_deadline`, or until something comes.

        Args:
            poll: returns a share of what has come for the engine.

        Raises:
            Damaged: the disk refuses; the service must stop.
        """
        hears = False
        if self._replication is None:
            inbox = poll()
        else:
            letters = self._replication.poll()
            inbox = read_samples_first(letters, poll, self.begin)
            hears = self._replication.receive(letters)
        if inbox or hears or self._is_due:
            self.begin(inbox)
            finished = self._pop_finished()
        else:
            finished = self.pop_finished()
        return finished, bool(inbox or hears or finished)

    @property
    def _is_due(self) -> bool:
        deadline = self.next_deadline()
        return deadline is not None and deadline <= self.clock()

    def begin(self, inbox: Sequence[Inbound] = ()) -> None:
        """Let the engine receive messages and do what is due, and have its records stored.

        Raises:
            Damaged: the disk refuses.
        """
        self._turn.receive(inbox)
        while True:
            if self.recovery.is_needed:
                self._recover()
            if self._turn.step(self.clock()):
                self._go_on()
                if self._replication is not None:
                    self._replication.go_on()
                self._keep_small()
            elif self._turn.waits_for_disk:
                self._go_on(waits=True)
            else:
                return

    def pop_finished(self) -> list[Released]:
        """Return what may leave now, in order: send its messages, report its events.

        Raises:
            Damaged: the disk refused; the service must stop.
        """
        self._go_on()
        if self._replication is not None:
            self._replication.go_on()  # a sync of the replicas' log may be over
        return self._pop_finished()

    def _pop_finished(self) -> list[Released]:
        finished, self._finished = self._finished, []
        if self.stores.failures:
            for released in finished:
                released.messages[:] = [explained(each, self.stores.failures) for each in released.messages]
        return finished

    def finish(self) -> None:
        """Wait until everything that was begun is durable; `pop_finished` gives it.

        Raises:
            Damaged: the disk refuses.
        """
        self._go_on()
        while self._syncing is not None:
            self._go_on(waits=True)

    def drain(self) -> list[Released]:
        """Wait for everything that was begun, and return what of it has not left.

        Raises:
            Damaged: the disk refused; the service must stop.
        """
        self.finish()
        return self.pop_finished()

    def sync_deferred(self) -> None:
        """Sync what waits for the next turn's sync: none may come.

        Raises:
            Damaged: the disk refuses; the service must stop.
        """
        if self.is_idle:
            self.stores.sync()

    def rest(self) -> None:
        """Do what waits for a quiet moment: deferred syncs, and a compaction that is worth it.

        Raises:
            Damaged: the disk refuses; the service must stop.
        """
        self.sync_deferred()
        if self.recovery.is_needed:
            self._recover()
        if self._record_count >= COMPACT_QUIET_AFTER_RECORDS and self.is_idle:
            self.compact_on()

    def close(self) -> None:
        """Store what was begun and end the thread; `pop_finished` still gives what may leave."""
        with contextlib.suppress(Damaged):
            self.finish()
        self._syncs.close()

    # The driver's half of a turn.

    def _go_on(self, *, waits: bool = False) -> None:
        """Write what gathered, unless a sync is in progress that is not waited for."""
        if self._failure is not None:
            raise self._failure
        try:
            if self._syncing is not None and (waits or self._syncs.is_done):
                self._syncs.end()
                self._end(self._syncing)
            while self._syncing is None and (group := self._turn.to_write()) is not None:
                sync = self._write(group)
                self._syncing = group
                self._may_ride = sync is None
                if sync is None or self._syncs.begin(sync):
                    self._end(group)
            self._finished += self._turn.to_send()
        except BaseException as error:
            self._failure = error
            raise

    def _write(self, group: Group) -> Sync | None:
        """Write the records of a group; those of one that changes queues are durable when this returns."""
        opened = self.stores.follow(places_of(self.engine.hosted)) if group.changes_queues else []
        sync = self.stores.write(group.turns)
        self.stores.withhold(group.turns)
        if not group.changes_queues:
            return sync
        if sync is not None:
            sync()
        if opened:
            adopt(self.engine, self.stores, self.clock(), opened)
            self.stores.know(incarnations_of(self.engine))
        return None

    def _end(self, group: Group) -> None:
        self._syncing = None
        self.stores.withhold(group.turns)
        for ready in group.turns:
            for batch in ready.batches:
                self._turn.durable(batch.stream, batch.last_index)
                self._record_count += len(batch.records)
        self._finished += self._turn.to_send()

    def next_deadline(self) -> Nanoseconds | None:
        """Return when the engine, or what is replicated of it, next has something to do; None: only a message changes
        that.
        """
        return self._stepped.next_deadline() if self._replication is None else self._replication.next_deadline()

    def _local_refusal_of(self, request: CommandRequest) -> CommandReply | None:
        """Return why the disk, the files or the domain here do not take a change; None: they do."""
        return refusal_of(
            self.engine,
            self.stores,
            request,
            self.try_endpoints,
            limits=self._limits,
            replicates=self._replication is not None,
        )

    def _refusal_of(self, request: CommandRequest) -> CommandReply | None:
        member = None if self._replication is None else self._replication.member
        refusal = self._local_refusal_of(request)
        return member.admit(request) if refusal is None and member is not None else refusal

    def _recover(self) -> None:
        """Bring the engine in step with stores that fail, or have little room. All that it gave is stored before."""
        self.finish()
        self.recovery.heed()
        self.recovery.attempt()

    # Stores that stay small.

    @property
    def is_compacting(self) -> bool:
        """Return whether `compact_on` has more to do."""
        return self._compaction is not None

    def compact_on(self) -> None:
        """Compact a share more of the stores for which it pays; begin with it, if none is in progress."""
        if self._compaction is None:
            self._record_count = 0
            self._compaction = self._compact_in_shares()
        self.finish()
        if next(self._compaction, _NOTHING) is _NOTHING:
            self._compaction = None

    def compact_every_store(self) -> None:
        """Begin to compact every store, whether it pays or not; `compact_on` goes on with it."""
        if self._compaction is None:
            self._record_count = 0
            self._compaction = self._compact_in_shares(every=True)

    def compact(self, *, all_damaged: bool = False) -> None:
        """Reclaim the room of what no longer matters, in the stores where it pays. Between turns only."""
        self.stores.compact(self.engine.snapshot_queue, self.engine.snapshot_service(), all_damaged=all_damaged)

    def _compact_in_shares(self, *, every: bool = False) -> Iterator[None]:
        service = self.engine.snapshot_service()
        return self.stores.compact_in_shares(self.engine.capture_queue, service, every=every)

    def _keep_small(self) -> None:
        if self._compaction is not None or self._record_count >= self._compact_after_records:
            self.compact_on()
        elif self.stores.is_log_long:
            self._compaction = self.stores.keep_logs_short()
            self.compact_on()
