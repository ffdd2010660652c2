"""The behavior of a service on a full or failing disk: suspension of queues, and their recovery.

Decides: the contract of a failing store [QS 2.4, 2.14.2].

- Little space is left: stored queues enqueue no new samples and answer 0; they continue to deliver and remove, for
  which space is reserved. They enqueue again once there is enough space.
- A write or a sync fails nevertheless: the queue is suspended, the others continue. Records that were not durable by
  then count as never written: producers are answered 0 for it, consumers never see it. The queue is restored from its
  store, as at a restart. It enqueues and delivers nothing; acknowledgments are processed.
- A sync that failed is not repeated. The queue resumes once all of it was written to new files and synced.
- The service's state: the command whose change could not be stored is answered with an error, though it is in force;
  no other change is made before the whole configuration was stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from qsctl.core.engine import ServiceEngine
from qsctl.errors import Damaged
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.service.stores.restore import mended
from qsctl.service.stores.stores import Stores

AGAIN_AFTER_NS: Final[Nanoseconds] = 500 * MILLISECOND_NS
"""Time between two attempts at a failing disk."""

Report: TypeAlias = Callable[[str, str, str], None]
"""Called with what happened, the queue (empty: the service's state), and the reason."""


class Recovery:
    """The suspension and resumption of an engine's queues by the state of their stores. All records of the engine must
    be stored when a method is called.

    Args:
        engine: hosts the queues that are suspended and resumed.
        stores: the stores of the queues.
        clock: returns Unix nanoseconds.
    """

    def __init__(self, engine: ServiceEngine, stores: Stores, clock: Callable[[], Nanoseconds]) -> None:
        self._engine = engine
        self._stores = stores
        self._clock = clock
        self._refuses = False
        self._next_attempt_ns: Nanoseconds = 0
        self.report: Report = lambda *_: None

    @property
    def is_needed(self) -> bool:
        """Return whether a store has failed or space is scarce, so that the other methods must be called."""
        stores = self._stores
        return stores.failures.error is not None or stores.is_scarce or self._refuses

    def heed(self) -> None:
        """Suspend the queues whose stores have failed, and make all stored queues refuse samples while space is
        scarce.
        """
        failures, tried = self._stores.failures.queues, set[str]()
        while left := [name for name, each in failures.items() if not each.is_undone and name not in tried]:
            for name in left:  # to open one again may show that others lost records
                self._undo(name)
            tried.update(left)
        of_service = self._stores.failures.service
        if of_service is not None and not of_service.is_reported:
            of_service.is_reported = True
            self.report("storage_failed", "", of_service.error.message)
        if self._stores.is_scarce != self._refuses:
            self._refuses = self._stores.is_scarce
            self._engine.refuse_samples(self._clock(), self._stores.names, refuses=self._refuses)
            self.report("storage_scarce" if self._refuses else "storage_sufficient", "", "")

    def attempt(self, *, at_once: bool = False) -> None:
        """Try at intervals whether the disk accepts the writes that failed, and resume the queues then."""
        now = self._stores.environment.steady()
        if now < self._next_attempt_ns and not at_once:
            return
        self._next_attempt_ns = now + AGAIN_AFTER_NS
        if self._stores.is_scarce:
            self._stores.make_room()
        self._stores.files.room.keep()
        failures = self._stores.failures
        for name in list(failures.queues):
            self._recover(name)
        if failures.service is not None:
            try:
                self._stores.recover_service(self._engine.snapshot_service())
            except Damaged as error:
                failures.fail_service(error)
            else:
                self.report("storage_recovered", "", "")
        self.heed()

    def _undo(self, name: str) -> None:
        failure, now = self._stores.failures.queues[name], self._clock()
        try:
            records = list(mended(self._stores.reopen(name).load()))
        except Damaged as error:
            failure.note(error)  # it cannot be read either: its content is unknown until it can
            records = []
        else:
            failure.is_undone = True
        if failure.is_undone or not failure.is_reported:
            self._engine.suspend_queue(now, name, records, failure.refused, is_read=failure.is_undone)
        if not failure.is_reported:
            failure.is_reported = True
            self.report("storage_failed", name, failure.error.message)

    def _recover(self, name: str) -> None:
        failure = self._stores.failures.queues[name]
        if not failure.is_undone:
            self._undo(name)
        if not failure.is_undone:
            return
        try:
            if failure.was_attempted:
                self._stores.reopen(name)
            failure.was_attempted = True
            self._stores.recover(name, self._engine.snapshot_queue(name))
        except (Damaged, KeyError):
            return  # a queue that is not there any more has nothing to be stored
        self._engine.continue_queue(self._clock(), name)
        if self._refuses:
            self._engine.refuse_samples(self._clock(), (name,), refuses=True)
        self.report("storage_recovered", name, "")
