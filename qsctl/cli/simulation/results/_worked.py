"""The results of a broker's queue with simulated consumers: duplicates, backlog, utilization of consumers, costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qsctl.cli.output.results import Block, Column, Plain, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.simulation.results.durations import short_duration
from qsctl.instant import HOUR_NS

if TYPE_CHECKING:
    from qsctl.eventlog.run_folder import QueueWorker, WorkedQueue

_MOST_WORKERS = 20
"""Number of consumers above which the screen shows sums by group."""


def worked_fields(queues: Sequence[WorkedQueue], workers: Sequence[QueueWorker]) -> dict[str, Plain]:
    """Return these fields of a document; empty for a run of another model."""
    if not queues:
        return {}
    return {"worked_queues": [_queue_row(each) for each in queues], "workers": [_worker_row(each) for each in workers]}


def worked_blocks(queues: Sequence[WorkedQueue], workers: Sequence[QueueWorker], *, is_summed: bool) -> list[Block]:
    """Return the tables; `is_summed`: counts are sums over repetitions, other figures the largest of one."""
    if not queues:
        return []
    return [TextBlock("\n".join(_sentence(each, is_summed=is_summed) for each in queues)), *_worker_blocks(workers)]


def _queue_row(queue: WorkedQueue) -> Row:
    return {
        **fields_of(queue),
        "utilization": queue.utilization,
        "within_objective": queue.within_objective,
        "worker_hours": queue.worker_ns / HOUR_NS,
    }


def _sentence(queue: WorkedQueue, *, is_summed: bool) -> str:
    all_runs = " in all replications" if is_summed else ""
    found = [
        f"{queue.queue}: {queue.backlog_mean:.3g} messages in the queue on average, {queue.backlog_max:,} at most; the "
        f"oldest ready one was {short_duration(queue.oldest_ns)} old."
    ]
    if queue.duplicates or queue.parallel_duplicates:
        found.append(
            f"Work succeeded on messages that were done already {queue.duplicates:,} times{all_runs}, and began "
            f"{queue.parallel_duplicates:,} times while another consumer worked on the message."
        )
    if queue.within_objective is not None:
        found.append(f"Done within the objective: {100 * queue.within_objective:.4g} %.")
    if queue.drain_ns is not None:
        found.append(
            f"After an outage or absence the backlog was as before within {short_duration(queue.drain_ns)} at most."
        )
    if queue.utilization is not None:
        found.append(f"Consumers worked {100 * queue.utilization:.3g} % of their time.")
    cost = f", which cost {queue.cost:.6g}" if queue.cost else ""
    found.append(f"{queue.requests:,} requests and {queue.worker_ns / HOUR_NS:.4g} hours of consumers{all_runs}{cost}.")
    return " ".join(found)


def _worker_row(worker: QueueWorker) -> Row:
    return {**fields_of(worker), "utilization": worker.utilization}


def _worker_blocks(workers: Sequence[QueueWorker]) -> list[Block]:
    if not workers:
        return []
    rows: list[Row] = []
    if len(workers) <= _MOST_WORKERS:
        rows = [
            _shown(
                each.consumer,
                each.present_ns,
                each.busy_ns,
                each.present_ns * each.servers,
                each.succeeded,
                each.failed,
            )
            for each in workers
        ]
    else:
        for group in dict.fromkeys(each.group for each in workers):
            own = [each for each in workers if each.group == group]
            rows.append(
                _shown(
                    f"{group} ({len(own)})", sum(each.present_ns for each in own), sum(each.busy_ns for each in own),
                    sum(each.present_ns * each.servers for each in own), sum(each.succeeded for each in own),
                    sum(each.failed for each in own),
                )
            )  # fmt: skip
    columns = [
        Column("consumer", "Consumer"),
        Column("present", "There", "right"),
        Column("busy", "Working %", "right"),
        Column("succeeded", "Succeeded", "right"),
        Column("failed", "Failed", "right"),
    ]
    return [TableBlock(columns, rows, title="Consumers")]


def _shown(name: str, present_ns: int, busy_ns: int, served_ns: int, succeeded: int, failed: int) -> Row:
    return {
        "consumer": name,
        "present": short_duration(present_ns),
        "busy": f"{100 * busy_ns / served_ns:.1f}" if served_ns else "",
        "succeeded": succeeded,
        "failed": failed,
    }
