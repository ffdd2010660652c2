"""A run of the kernel beside the plain model of a Solace broker, message by message."""

from __future__ import annotations

from collections import Counter
from typing import Any

from qsctl.eventlog.schema import SINCE_DONE, bucket_of
from qsctl.sim.scenario.scenario import QUEUE_ORDER, Scenario
from tests.sim.oracle_connection import Connection
from tests.sim.oracle_durable import PlainQueue
from tests.sim.oracle_solace import SolaceOracle
from tests.sim.random_scenarios import Ran, arrivals_of

TOTALS = {
    "congestion-discards", "not-connected-discards", "disconnect-discards", "spool-discards", "returned",
    "retransmissions", "time-outs", "slow-percent", "paused", "resumed", "depth-changed", "burst-changed",
    "expired-to-dmq", "redelivered-to-dmq", "rejected-to-dmq", "blocked-time",
}  # fmt: skip

CAUSES = ("not_connected", "disconnected", "spool_refused", "expired", "dead", "rejected")
UNKNOWN_TO_THE_ORACLE = {
    "max_depth_work_units", "observed_ns", "ingress_refused_messages", "too_big_messages", *SINCE_DONE,
}  # fmt: skip


def counted(oracle: SolaceOracle) -> dict[tuple[int, str], dict[str, Any]]:
    found = {}
    for (c, q), counts in oracle.counters.items():
        holder = oracle.holder(c)
        queue = holder.queues[q]
        held = holder.held_by(q)
        waiting = [*holder.waiting, *holder.returned] if q == 0 else []
        moved = isinstance(holder, PlainQueue) and any(holder.moved.values())
        # All that arrived may have arrived before the end of the warm-up, and be dead or expired afterwards.
        ended = any(counts[name] for name in (*CAUSES, "redelivered", "discarded", "elided", "evicted"))
        if counts["arrived"] or counts["delivered"] or held or waiting or moved or ended:
            histogram = Counter(bucket_of(wait) for wait in counts["waits"])
            found[c, QUEUE_ORDER[q].value] = {
                "arrived_messages": counts["arrived"],
                "delivered_messages": counts["delivered"],
                "discarded_messages": counts["discarded"],
                **{f"{cause}_messages": counts[cause] for cause in CAUSES},
                "elided_messages": counts["elided"],
                "evicted_messages": counts["evicted"],
                "redelivered_messages": counts["redelivered"],
                "discard_indications": counts["indications"],
                "delivered_bytes": counts["bytes"],
                "length_messages": len(held),
                "length_work_units": sum(message.work for message in held),
                "unacknowledged_messages": len(held) - len(queue),
                "waiting_messages": len(waiting),
                "high_water_mark_work_units": counts["high"],
                "first_discard_ns": counts["first"],
                "wait_sum_ns": sum(counts["waits"]),
                "wait_max_ns": max(counts["waits"], default=0),
                "histogram": dict(histogram),
            }
    return found


def kernel_counted(ran: Ran) -> dict[tuple[int, str], dict[str, Any]]:
    columns = ran.counters
    found = {}
    for i, (c, queue) in enumerate(zip(columns["client_id"], columns["queue"], strict=True)):
        entry = {
            name: int(values[i])
            for name, values in columns.items()
            if name.endswith(("_messages", "_units", "_bytes", "_ns", "indications"))
            and name not in UNKNOWN_TO_THE_ORACLE
        }
        pairs = zip(columns["histogram_bucket"][i], columns["histogram_count"][i], strict=True)
        entry["histogram"] = {int(bucket): int(count) for bucket, count in pairs}
        found[int(c), queue] = entry
    return found


def told_by_the_log(ran: Ran, warm_up_ns: int) -> tuple[Counter[tuple[int, str]], Counter[tuple[int, str]]]:
    """Redeliveries and what is queued at the end, out of the rows alone, as `eventlog.schema.MESSAGES` says."""
    again: Counter[tuple[int, str]] = Counter()
    held: Counter[tuple[int, str]] = Counter()
    for client, queue, _, _, born, wait, _, _, outcome, _, attempts in ran.rows:
        key = (client, QUEUE_ORDER[queue].value)
        if wait < 0 or born + wait >= warm_up_ns:
            again[key] += max(0, attempts - 1)
        held[key] += outcome == "held"
    return again, held


def moved_by(ran: Ran) -> dict[tuple[int, str], int]:
    """What durable queues moved to their dead message queues, by the events at the end."""
    return {(client, name): value for _, client, _, value, name in ran.events if name.endswith("-to-dmq")}


def blocked_ns(connection: Connection, scenario: Scenario) -> int:
    """How long a client had data to send and could not, from the end of the warm-up on."""
    spans = [*connection.blocked]
    if connection.blocked_from is not None:
        spans.append((connection.blocked_from, scenario.horizon_ns))
    return sum(max(0, end - max(start, scenario.warm_up_ns)) for start, end in spans)


def compare(scenario: Scenario, chunk_rows: int = 64) -> None:
    oracle = SolaceOracle(scenario, arrivals_of(scenario))
    oracle.run()
    ran = Ran(scenario, chunk_rows=chunk_rows)
    # The kernel learns of an acknowledgment that nothing waits for only when the client is next looked at.
    assert sorted(ran.rows) == sorted(oracle.rows)
    assert kernel_counted(ran) == counted(oracle)
    again, held = told_by_the_log(ran, scenario.warm_up_ns)
    for key, counters in counted(oracle).items():
        assert (counters["redelivered_messages"], counters["length_messages"]) == (again[key], held[key]), key
    assert sorted(event for event in ran.events if event[4] not in TOTALS) == sorted(oracle.events)
    assert moved_by(ran) == {
        (queue.number, name): queue.moved[cause]
        for queue in oracle.durable_queues
        for cause, name in (
            ("expired", "expired-to-dmq"),
            ("dead", "redelivered-to-dmq"),
            ("rejected", "rejected-to-dmq"),
        )
        if queue.moved[cause]
    }
    assert list(ran.run.slow_percent[: len(oracle.percent)]) == oracle.percent
    blocked = {c: value for _, c, _, value, name in ran.events if name == "blocked-time"}
    assert blocked == {each.number: blocked_ns(each, scenario) for each in oracle.connections
                       if blocked_ns(each, scenario)}  # fmt: skip
    for kind, counted_by in (("retransmissions", "retransmissions"), ("time-outs", "time_outs")):
        counts = {each.number: getattr(each.net, counted_by) for each in oracle.connections if each.net is not None}
        raised = {c: value for _, c, _, value, name in ran.events if name == kind}
        assert raised == {c: value for c, value in counts.items() if value}
