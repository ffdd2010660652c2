"""The log of a model in plain Python: rows until they are collected, and counters of every queue after the warm-up.

Decides: when the statistics of a queue restart, and that a message's row and its counters record the same outcome.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import numpy as np

from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.queue_counts import QueueCounts
from qsctl.instant import Nanoseconds
from qsctl.sim.model import LOG_ROW, OUTCOMES, Rows

Key = TypeVar("Key")

_INDEX: Final = {outcome: index for index, outcome in enumerate(OUTCOMES)}


class QueueLog(Generic[Key]):
    """The log of a model's queues, each identified by a key.

    Args:
        warm_up_ns: messages that leave a queue before this instant are not counted.
        keeps_rows: whether rows are recorded, or counters only.
        rows_max: number of rows at which the log is full.
        tries: a message delivered without an acknowledgment is redelivered, and is not unfinished itself.
    """

    def __init__(self, warm_up_ns: Nanoseconds, *, keeps_rows: bool, rows_max: int, tries: bool = False) -> None:
        self._warm_up_ns = warm_up_ns
        self._is_warm = warm_up_ns == 0
        self._keeps_rows = keeps_rows
        self._rows_max = rows_max
        self._tries = tries
        self._rows: list[tuple[int, ...]] = []
        self.counts: dict[Key, QueueCounts] = {}
        """The counters of each queue by key, in the order in which they were first requested."""

    @property
    def is_warm(self) -> bool:
        """Return whether the warm-up is over."""
        return self._is_warm

    @property
    def is_full(self) -> bool:
        """Return whether the log has `rows_max` rows, so that they must be collected."""
        return len(self._rows) >= self._rows_max

    def collect(self) -> Rows:
        """Return the rows since the last call."""
        rows = np.array(self._rows, LOG_ROW)
        self._rows = []
        return rows

    def of(self, key: Key) -> QueueCounts:
        """Return the counters of a queue; the first access creates them."""
        counts = self.counts.get(key)
        if counts is None:
            counts = self.counts[key] = QueueCounts(self._warm_up_ns, tries=self._tries)
        return counts

    def reach(self, now: Nanoseconds) -> bool:
        """Restart the statistics, but not the state, if the warm-up ends now; return whether it did."""
        if self._is_warm or now < self._warm_up_ns:
            return False
        self._is_warm = True
        for counts in self.counts.values():
            counts.warm_up()
        return True

    def end(
        self,
        key: Key,
        queue: int,
        outcome: Outcome,
        enqueued_ns: Nanoseconds,
        enter_ns: Nanoseconds,
        wait_ns: Nanoseconds,
        send_ns: Nanoseconds,
        acknowledge_ns: Nanoseconds,
        client_id: int,
        topic_id: int,
        size_bytes: int,
        attempts: int,
    ) -> None:
        """Count the outcome of a message and append its row; all arguments but `key` are fields of `LOG_ROW`."""
        self.of(key).count(enqueued_ns, size_bytes, wait_ns, outcome, acknowledge_ns)
        if self._keeps_rows:
            self._rows.append(
                (
                    enqueued_ns, enter_ns, wait_ns, send_ns, acknowledge_ns, client_id, topic_id, size_bytes, attempts,
                    queue, _INDEX[outcome], 0,
                )
            )  # fmt: skip
