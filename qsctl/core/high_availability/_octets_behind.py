"""The octets of payloads that a replica lacks of its master's log."""

from __future__ import annotations

from array import array

from qsctl.core.high_availability._log import ReplicatedLog, count_of
from qsctl.core.records import Enqueued, EnqueuedRun


class OctetsBehind:
    """Sums over a log that is appended to and compacted; each entry is counted once, however often it is asked for.

    Args:
        log: the log, of which nothing is taken back.
    """

    def __init__(self, log: ReplicatedLog) -> None:
        self._log = log
        self._first = log.base.index
        self._sums = array("q", (0,))
        """At place i the octets in the entries up to `_first + i`, counted from an earlier one."""

    def of(self, index: int) -> int | None:
        """Return the octets in the entries behind one; None: a snapshot covers some of them."""
        base_index = self._log.base.index
        if index < base_index:
            return None
        if base_index >= self._first + len(self._sums):
            self._first, self._sums = base_index, array("q", (0,))
        else:
            del self._sums[: base_index - self._first]
            self._first = base_index
        total = self._sums[-1]
        counted_to = self._first + len(self._sums) - 1
        for record in self._log.records_from(counted_to + 1, self._log.last_index - counted_to):
            if type(record) is EnqueuedRun:
                for payload in record.payloads:
                    total += len(payload)
                    self._sums.append(total)
                continue
            total += len(record.payload) if type(record) is Enqueued else 0
            self._sums.extend([total] * count_of(record))
        return total - self._sums[index - self._first]
