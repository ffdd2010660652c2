"""The tables of a simulated broker's queue: its depth, messages processed twice, and the utilization of its
consumers.
"""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.eventlog.run_folder import QueueWorker, WorkedQueue
from qsctl.instant import HOUR_NS
from qsctl.report._words import count_text, duration_text
from qsctl.report.page import PageTable


def worked_tables(queues: Sequence[WorkedQueue], workers: Sequence[QueueWorker]) -> list[PageTable]:
    """Return the tables of queues and of consumers; an empty list for a run of another model."""
    if not queues:
        return []
    rows = [
        [
            each.queue, f"{each.backlog_mean:.3g}", count_text(each.backlog_max), duration_text(each.oldest_ns),
            count_text(each.duplicates), count_text(each.parallel_duplicates), duration_text(each.drain_ns),
            _percent(each.within_objective), _percent(each.utilization), count_text(each.requests),
            f"{each.worker_ns / HOUR_NS:.4g}", f"{each.cost:.6g}",
        ]
        for each in queues
    ]  # fmt: skip
    headings = [
        "Queue", "Backlog, mean", "Backlog, max", "Oldest", "Done again", "Worked on twice at once", "Drained within",
        "Within objective", "Consumers working", "Requests", "Consumer hours", "Cost",
    ]  # fmt: skip
    note = (
        "Backlog: messages in the queue, those that are with consumers too. Done again: work that succeeded on a "
        "message that was done before. Counts are sums over the replications, times the longest of one."
    )
    of_workers = [
        [
            each.consumer, duration_text(each.present_ns), _percent(each.utilization), count_text(each.succeeded),
            count_text(each.failed),
        ]
        for each in workers
    ]  # fmt: skip
    return [
        PageTable("The queue and its consumers", headings, rows, frozenset(range(1, 12)), note),
        PageTable(
            "Consumers", ["Consumer", "There", "Working", "Succeeded", "Failed"], of_workers, frozenset(range(1, 5))
        ),
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.3g} %"
