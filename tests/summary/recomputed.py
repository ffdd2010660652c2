"""Every table of a summary once more, from the same Parquet files, in DuckDB and as plainly as it can be said.

Nothing here knows how qsctl counts: a row of the log is taken at its word, percentiles are DuckDB's own, depth is what
is there at an instant, a blocked half second is looked at one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qsctl.eventlog.outcomes import DISCARDS, LOSSES, column_of

KEYS = {"replication": "replication", "client": "client_id", "queue": "queue", "topic": "topic_id"}
S = 1_000_000_000


@dataclass(frozen=True)
class Log:
    """A run's log in DuckDB; `gone_ns` is when a message left its queue, as a text of SQL."""

    connection: Any
    warm_up_ns: int
    horizon_ns: int
    gone_ns: str

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query over `m`."""
        found = self.connection.execute(sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def open_log(folder: Path, warm_up_ns: int, horizon_ns: int, held: str) -> Log:
    """The log of a run folder; `held` is the condition that a queue keeps a message until it is acknowledged."""
    import duckdb

    connection = duckdb.connect()
    gone = (
        f"case when not ({held}) then enqueued_ns + wait_ns when outcome = 'held' then null "
        "when outcome = 'delivered' then enqueued_ns + coalesce(acknowledge_ns, wait_ns) else enqueued_ns + wait_ns end"
    )
    connection.execute(
        f"""create table m as select *, enqueued_ns + wait_ns as left_ns, enqueued_ns + enter_ns as entered_ns,
            {gone} as gone_ns, wait_ns is not null and enqueued_ns + wait_ns >= {warm_up_ns} as counts
        from read_parquet('{folder}/messages/*/*.parquet', hive_partitioning = true)"""
    )
    return Log(connection, warm_up_ns, horizon_ns, gone)


def grouped_by(by: Sequence[str], *more: str) -> str:
    """The columns that the words of `--by` stand for."""
    return ", ".join(dict.fromkeys([*(KEYS[word] for word in by), *more]))


def figures(log: Log, by: Sequence[str]) -> list[dict[str, Any]]:
    """`queues`, `losses` and `delays` in one."""
    keys = grouped_by(by)
    losses = ", ".join(f"count(*) filter (counts and outcome = '{loss.value}') as {column_of(loss)}" for loss in LOSSES)
    discards = ", ".join(f"'{each.value}'" for each in DISCARDS)
    there = "(outcome = 'held')"
    return log.rows(
        f"""select {keys}, count(*) filter (enqueued_ns >= {log.warm_up_ns}) as arrived_messages,
            count(*) filter (counts and outcome = 'delivered') as delivered_messages, {losses},
            count(*) filter (counts and outcome = 'elided') as elided_messages,
            coalesce(sum(greatest(attempts - 1, 0)) filter (counts or wait_ns is null or outcome = 'held'), 0)
                as redelivered_messages,
            count(*) filter (counts and discard_indication) as discard_indications,
            coalesce(sum(size_bytes) filter (counts and outcome = 'delivered'), 0) as delivered_bytes,
            count(*) filter ({there}) as length_messages,
            coalesce(sum(work_units) filter ({there}), 0) as length_work_units,
            count(*) filter (outcome = 'held' and wait_ns is not null) as unacknowledged_messages,
            count(*) filter (outcome = 'waiting') as waiting_messages,
            coalesce(sum(wait_ns) filter (counts and outcome = 'delivered'), 0) as wait_sum_ns,
            max(wait_ns) filter (counts and outcome = 'delivered') as wait_max_ns,
            min(left_ns) filter (counts and outcome in ({discards})) as first_discard_ns,
            avg(wait_ns) filter (counts and outcome = 'delivered') as wait_mean_ns,
            quantile_disc(wait_ns, [0.5, 0.9, 0.95, 0.99, 0.999]) filter (counts and outcome = 'delivered') as ranks
        from m group by {keys}"""
    )


def windows(log: Log, by: Sequence[str], window_ns: int) -> list[dict[str, Any]]:
    """What moved in each window in which anything did."""
    keys = grouped_by(by, "replication")
    lost = ", ".join(f"'{loss.value}'" for loss in LOSSES if loss.value != "discarded")

    def moved(instant: str, columns: Mapping[str, str]) -> str:
        made = ", ".join(f"{expression} as {name}" for name, expression in columns.items())
        start = f"{instant} // {window_ns} * {window_ns} as window_start_ns"
        return f"select {keys}, {start}, {made} from m where {instant} is not null group by all"

    left = {
        "left_messages": "count(*)", "left_work_units": "sum(work_units)",
        "delivered_messages": "count(*) filter (outcome = 'delivered')",
        "discarded_messages": "count(*) filter (outcome = 'discarded')",
        "elided_messages": "count(*) filter (outcome = 'elided')",
        "lost_messages": f"count(*) filter (outcome in ({lost}))",
        "delivered_bytes": "coalesce(sum(size_bytes) filter (outcome = 'delivered'), 0)",
    }  # fmt: skip
    entered = {"entered_messages": "count(*)", "entered_work_units": "sum(work_units)"}
    place = f"{keys}, window_start_ns"
    names = ["arrived_messages", *entered, *left]
    filled = ", ".join(f"coalesce({name}, 0) as {name}" for name in names)
    return log.rows(
        f"""select {place}, {filled} from ({moved("enqueued_ns", {"arrived_messages": "count(*)"})})
        full join ({moved("entered_ns", entered)}) using ({place})
        full join ({moved("gone_ns", left)}) using ({place})"""
    )


def depth(log: Log, by: Sequence[str], window_ns: int) -> list[dict[str, Any]]:
    """What is in the queue at the end of each window in which anything moved: counted at the instant."""
    keys = grouped_by(by, "replication")
    same = " and ".join(f"m.{key} = ends.{key}" for key in keys.split(", "))
    return log.rows(
        f"""with ends as (
            select distinct {keys}, (moved // {window_ns} + 1) * {window_ns} as at_ns
            from (select {keys}, unnest([enqueued_ns, entered_ns, gone_ns]) as moved from m) where moved is not null
        )
        select {", ".join("ends." + key for key in keys.split(", "))}, at_ns, count(entered_ns) as depth_messages,
            coalesce(sum(work_units), 0) as depth_work_units
        from ends left join m on {same} and entered_ns < at_ns and (gone_ns is null or gone_ns >= at_ns)
        group by all"""
    )


def littles_law(log: Log, by: Sequence[str]) -> list[dict[str, Any]]:
    """Both sides of the law over all replications."""
    keys = grouped_by(by)
    each = grouped_by(by, "replication")
    observed = log.horizon_ns - log.warm_up_ns
    end = f"least(coalesce(gone_ns, {log.horizon_ns}), {log.horizon_ns})"
    inside = f"greatest(0, {end} - greatest(entered_ns, {log.warm_up_ns}))"
    return log.rows(
        f"""with each as (
            select {each}, count(*) filter (entered_ns >= {log.warm_up_ns}) as entered,
                count(*) filter (gone_ns >= {log.warm_up_ns}) as gone, sum({inside}) as inside,
                sum(gone_ns - entered_ns) filter (gone_ns >= {log.warm_up_ns}) as stayed
            from m where entered_ns is not null group by {each}
        )
        select {keys}, sum(inside)::double / (count(*) * {observed}) as mean_depth_messages,
            sum(entered)::double * {S} / (count(*) * {observed}) as arrivals_per_second,
            coalesce(sum(stayed), 0)::double / greatest(sum(gone), 1) as mean_wait_ns
        from each where entered + gone + inside > 0 group by {keys}"""
    )


def times_to_done(log: Log, by: Sequence[str], acknowledged: str) -> dict[tuple[Any, ...], tuple[list[int], list[int]]]:
    """Of each group the times to done, and the ages of what has no acknowledgment, message by message."""
    keys = grouped_by(by)
    there = "outcome in ('held', 'waiting')"
    found: dict[tuple[Any, ...], tuple[list[int], list[int]]] = {}
    for row in log.rows(
        f"""select {keys}, acknowledge_ns, {log.horizon_ns} - enqueued_ns as age_ns from m
        where ({acknowledged}) and ({there} or outcome = 'delivered' and counts)"""
    ):
        *place, acknowledge_ns, age_ns = row.values()
        done, ages = found.setdefault(tuple(place), ([], []))
        if acknowledge_ns is None:
            ages.append(age_ns)
        else:
            done.append(acknowledge_ns)
    return found


def law_of_done(log: Log, by: Sequence[str], acknowledged: str) -> list[dict[str, Any]]:
    """Little's law from arrival to acknowledgment, over replications in which anything came."""
    keys, each = grouped_by(by), grouped_by(by, "replication")
    end = f"least(enqueued_ns + coalesce(acknowledge_ns, {log.horizon_ns}), {log.horizon_ns})"
    done = f"enqueued_ns + acknowledge_ns >= {log.warm_up_ns}"
    return log.rows(
        f"""with each as (
            select {each}, sum(greatest(0, {end} - greatest(enqueued_ns, {log.warm_up_ns}))) as inside,
                count(*) filter ({done}) as done, sum(acknowledge_ns) filter ({done}) as total
            from m where ({acknowledged}) and outcome in ('held', 'waiting', 'delivered') group by {each}
        )
        select {keys}, sum(inside)::double as inside_ns,
            coalesce(sum(total), 0)::double / nullif(sum(done), 0) as mean_ns
        from each group by {keys}"""
    )


def connections(folder: Path, log: Log, by: Sequence[str]) -> list[dict[str, Any]]:
    """What happened at each client, event by event."""
    keys = grouped_by([word for word in by if word == "client"], "replication")
    log.connection.execute(
        f"""create or replace view e as select * from
            read_parquet('{folder}/events/*/*.parquet', hive_partitioning = true)
        where client_id >= 0 and at_ns >= {log.warm_up_ns}"""
    )
    values = {
        "blocked_ns": "blocked-time", "retransmissions": "retransmissions", "time_outs": "time-outs",
        "expired_to_dmq_messages": "expired-to-dmq", "redelivered_to_dmq_messages": "redelivered-to-dmq",
        "rejected_to_dmq_messages": "rejected-to-dmq",
    }  # fmt: skip
    sums = ", ".join(f"coalesce(sum(value) filter (event = '{name}'), 0)::bigint as {column}"
                     for column, name in values.items())  # fmt: skip
    return log.rows(
        f"""select {keys}, {sums}, count(*) filter (event = 'slow-subscriber') as slow_periods,
            min(at_ns) filter (event = 'slow-subscriber') as first_slow_ns,
            count(*) filter (event = 'disconnected' or event = 'disconnected-slow') as disconnections
        from e where event in ('slow-subscriber', 'disconnected', 'disconnected-slow',
            {", ".join(f"'{name}'" for name in values.values())}) group by {keys}"""
    )


def slow_seconds(log: Log, by: Sequence[str]) -> dict[tuple[Any, ...], set[int]]:
    """The blocked seconds of each client and replication (or replication alone, where clients are told together)."""
    keys = grouped_by([word for word in by if word == "client"], "replication")
    half = S // 2
    found: dict[tuple[Any, ...], set[int]] = {}
    for row in log.rows(f"select distinct {keys} from m"):
        found[tuple(row.values())] = set()
    blocked = log.rows(
        f"""select distinct {keys}, unnest(range((entered_ns + {half - 1}) // {half},
            coalesce(left_ns, {log.horizon_ns}) // {half})) // 2 as second
        from m where entered_ns is not null"""
    )
    for row in blocked:
        *place, second = row.values()
        found[tuple(place)].add(second)
    return found
