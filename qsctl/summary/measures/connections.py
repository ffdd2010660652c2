"""Connection events of each client: blocked or slow periods, losses of its link, and moved messages.

Runs at level `events` record them; in some of these events the value is a total that is recorded once, at the end. A
durable queue records the number of messages moved to its dead message queue, by cause; these are not losses, and no
counter of losses includes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from qsctl.sim.model import EVENT_NAMES, Event
from qsctl.summary.measures.observation import Observation, listed

TOTALS: Final = {
    "blocked_ns": Event.BLOCKED_TIME,
    "retransmissions": Event.RETRANSMISSIONS,
    "time_outs": Event.TIME_OUTS,
    "expired_to_dmq_messages": Event.EXPIRED_TO_DMQ,
    "redelivered_to_dmq_messages": Event.REDELIVERED_TO_DMQ,
    "rejected_to_dmq_messages": Event.REJECTED_TO_DMQ,
}
"""Columns that are the sum of an event's values. Those of a link cover the whole run, including its warm-up."""


def connections(events: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """Return one row for each client (or for all together) and replication, in the schema `tables.CONNECTIONS`.

    Args:
        events: rows of `tables.EVENTS`.
        observation: the observed part of the run; earlier events are not counted.
        keys: the grouping columns; `replication` is always an additional one.
    """
    each = listed(*keys, "replication")
    slow, *gone = (EVENT_NAMES[event] for event in (Event.SLOW_SUBSCRIBER, Event.DISCONNECTED, Event.DISCONNECTED_SLOW))
    sums = {name: f"sum(if(event = '{EVENT_NAMES[event]}', value, 0))" for name, event in TOTALS.items()}
    made = {
        "blocked_ns": sums.pop("blocked_ns"),
        "slow_periods": f"count_if(event = '{slow}')",
        "first_slow_ns": f"min(if(event = '{slow}', at_ns, null))",
        "disconnections": f"count_if(event in {tuple(gone)})",
        **sums,
    }
    wanted = (slow, *gone, *(EVENT_NAMES[event] for event in TOTALS.values()))
    return events.sparkSession.sql(
        f"""select {each}, {", ".join(f"{sql} as {name}" for name, sql in made.items())}
        from {{events}} where event in {wanted} and client_id >= 0 and {observation.counts("at_ns")}
        group by {each}""",
        events=events,
    )
