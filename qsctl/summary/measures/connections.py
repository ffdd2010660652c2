"""The events at each client beside its messages: blocked or slow, losses of its link, moved messages.

A run at level `events` records it, in some of which the value is a total that is raised once, at the end. A durable
queue has the number it moved to its dead message queue, by cause: these are not losses, and so in no counter of losses.
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
"""Columns that are the sum of an event's values. Those of a link are of the whole run, its warm-up included."""


def connections(events: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """Return one row a client (or of all together) and replication: a table of `tables.CONNECTIONS`, with these keys.

    Args:
        events: of `tables.EVENTS`.
        observation: what happened before is not counted.
        keys: the columns grouped by; `replication` is always one of the groups besides.
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
