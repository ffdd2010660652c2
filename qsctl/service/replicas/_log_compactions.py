"""The compactions of the replicas' log, one at a time [QS 7.1].

Decides: what of a compaction the writes wait for: two steps, each about as long as a sync. The streams are written in
another thread, beside the writes: votes and confirmations go on. A compaction that fails leaves the log as it is, and
the replicas go on; it is begun again once the log has doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from qsctl.errors import Damaged
from qsctl.service.run.environment import Syncs
from qsctl.storage.base import Sync
from qsctl.storage.replicas.log_compaction import LogCompaction
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_stream import StoredStream


class LogCompactions:
    """The compactions of one log.

    Args:
        log: the log.
        syncs: the runner of what the writes do not wait for.
    """

    def __init__(self, log: ReplicaLog, syncs: Syncs) -> None:
        self._log = log
        self._syncs = syncs
        self._current: LogCompaction | None = None
        self._steps: Iterator[Sync | None] = iter(())
        self._error: Damaged | None = None
        self.report_failure: Callable[[Damaged], None] = lambda _: None

    def is_due(self, live_bytes: Callable[[], int]) -> bool:
        """Return whether the log is worth compacting, see there, and no compaction is in progress."""
        return self._current is None and self._log.is_worth_compacting(live_bytes)

    def begin(self, streams: Mapping[str, StoredStream]) -> None:
        """Begin a compaction; the log must contain these streams once what is being written is durable."""
        self._current = self._log.compact(streams)
        self._steps = self._steps_of(self._current)

    def next_step(self) -> Sync | None:
        """Return a step of the compaction in progress that no write may overlap; None: none is due."""
        if self._current is None:
            return None
        if not self._log.has_failed:
            try:
                return next(self._steps)
            except StopIteration:
                pass
            except Damaged as error:
                self.report_failure(error)
        self._current = None
        return None

    def close(self) -> None:
        """Give up the compaction in progress."""
        if self._current is not None:
            self._current.cancel()
        self._syncs.close()
        if self._current is not None:
            self._current.abandon()

    def _steps_of(self, compaction: LogCompaction) -> Iterator[Sync | None]:
        yield partial(self._try, compaction.begin)
        self._raise_error()
        if not self._syncs.begin(compaction.write):
            while not self._syncs.is_done:
                yield None
            self._syncs.end()
        yield partial(self._try, compaction.put)
        self._raise_error()

    def _try(self, step: Sync) -> None:
        """Run a step; keep its error: it is not one of the writes."""
        try:
            step()
        except Damaged as error:
            self._error = error

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
