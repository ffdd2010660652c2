"""The loop of a service: turns of the engine, writes to the stores, and syncs in the background.

Decides: when the records of turns are written, and in which thread they are synced. `qsctl.core.turn` defines the order
of all steps; this is its driver, in the embedded service (`turn`, one after the other) and in a running one (`begin`
and `pop_finished`, with one sync in progress while further turns accumulate).
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
from qsctl.storage.base import Sync

Clock: TypeAlias = Callable[[], Nanoseconds]
"""Unix nanoseconds."""

COMPACT_AFTER_RECORDS: Final = 500_000
"""Default number of stored records after which a busy service checks whether to compact a store."""

COMPACT_QUIET_AFTER_RECORDS: Final = 5_000
"""The same number when the service is idle."""

_NOTHING: Final = object()


class ServiceLoop:
    """The driver of one engine. Restore the engine before the first turn, see `restore`; close the loop before the
    stores.

    A failing disk affects the queues, or the changes of the configuration, whose stores fail, see `recovery`. Any other
    failure, such as one to create the files of a new queue, ends the loop: every later call raises the same error.

    Args:
        engine: the engine whose turns are run.
        stores: the stores of its records.
        clock: Unix nanoseconds: the wall clock, or one that ignores changes of it.
        on_finished: called in another thread when `pop_finished` has results; must not block.
        turns_ahead_max, records_ahead_max: bounds on the turns and records that wait for the disk.
        quick_sync_s: a faster sync runs in the calling thread; 0: none does. By default every sync does.
        replication: the member of a cluster, which is stepped instead of the engine; None: no queue is replicated.
        limits: returns the service's limits.
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
        """Return whether all begun turns are durable and were returned by `pop_finished`."""
        return self._turn.is_idle and not self._finished

    def turn(self, inbox: Sequence[Inbound] = ()) -> Released:
        """Run one whole turn, and return its messages and events, whose records are durable.

        Raises:
            Damaged: an I/O error occurs.
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
        """Run one pass: receive messages and process deadlines; return finished turns, and whether there was any work.

        Between two passes a running service sleeps until `next_deadline`, or until a message arrives.

        Args:
            poll: returns a share of what has come for the engine.

        Raises:
            Damaged: an I/O error occurs; the service must stop.
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
        """Let the engine receive messages and process deadlines, and start to store its records.

        Raises:
            Damaged: an I/O error occurs.
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
        """Return the finished turns, in order: send their messages, report their events.

        Raises:
            Damaged: an I/O error occurred; the service must stop.
        """
        self._go_on()
        if self._replication is not None:
            self._replication.go_on()  # a sync of the replicas' log may be over
        return self._pop_finished()

    def _pop_finished(self) -> list[Released]:
        finished, self._finished = self._finished, []
        for released in finished:
            self.stores.failures.explain(released.messages)
        return finished

    def finish(self) -> None:
        """Wait until all begun turns are durable; `pop_finished` returns them.

        Raises:
            Damaged: an I/O error occurs.
        """
        self._go_on()
        while self._syncing is not None:
            self._go_on(waits=True)

    def drain(self) -> list[Released]:
        """Wait until all begun turns are durable, and return those that were not returned yet.

        Raises:
            Damaged: an I/O error occurred; the service must stop.
        """
        self.finish()
        return self.pop_finished()

    def sync_deferred(self) -> None:
        """Sync deferred writes, which wait for the next turn's sync, if no turn is in progress.

        Raises:
            Damaged: an I/O error occurs; the service must stop.
        """
        if self.is_idle:
            self.stores.sync()

    def rest(self) -> None:
        """Do the work that is postponed to idle times: deferred syncs, and a compaction if worthwhile.

        Raises:
            Damaged: an I/O error occurs; the service must stop.
        """
        self.sync_deferred()
        if self.recovery.is_needed:
            self._recover()
        if self._record_count >= COMPACT_QUIET_AFTER_RECORDS and self.is_idle:
            self.compact_on()

    def close(self) -> None:
        """Finish the begun turns and end the sync thread; `pop_finished` still returns them."""
        with contextlib.suppress(Damaged):
            self.finish()
        self._syncs.close()

    # The driver's half of a turn.

    def _go_on(self, *, waits: bool = False) -> None:
        """Write accumulated turns, unless a sync is in progress; with `waits`, wait for that first."""
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
        """Write the records of a group and return the pending sync; a group that changes queues is synced here."""
        opened = self.stores.follow(places_of(self.engine.hosted)) if group.changes_queues else []
        sync = self.stores.write(group.turns)
        self.stores.failures.withhold(group.turns)
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
        self.stores.failures.withhold(group.turns)
        for ready in group.turns:
            for batch in ready.batches:
                self._turn.durable(batch.stream, batch.last_index)
                self._record_count += batch.record_count
        self._finished += self._turn.to_send()

    def next_deadline(self) -> Nanoseconds | None:
        """Return the next instant at which the engine or the member has work without a message, or None."""
        return self._stepped.next_deadline() if self._replication is None else self._replication.next_deadline()

    def _local_refusal_of(self, request: CommandRequest) -> CommandReply | None:
        """Return the refusal of a change that this service's disk, files or domain do not permit, or None."""
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
        """Suspend or resume queues after failures of their stores, once all records of the engine are stored."""
        self.finish()
        self.recovery.heed()
        self.recovery.attempt()

    # Stores that stay small.

    @property
    def is_compacting(self) -> bool:
        """Return whether a compaction is in progress, for `compact_on` to continue."""
        return self._compaction is not None

    def compact_on(self) -> None:
        """Run the next step of the compaction in progress, or start one of the stores that are worth it."""
        if self._compaction is None:
            self._record_count = 0
            self._compaction = self._compact_in_shares()
        self.finish()
        if next(self._compaction, _NOTHING) is _NOTHING:
            self._compaction = None

    def compact_every_store(self) -> None:
        """Start a compaction of every store; `compact_on` continues it."""
        if self._compaction is None:
            self._record_count = 0
            self._compaction = self._compact_in_shares(every=True)

    def compact(self, *, all_damaged: bool = False) -> None:
        """Compact the stores that are worth it, completely. Allowed between turns only."""
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
