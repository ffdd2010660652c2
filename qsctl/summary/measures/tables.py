"""The schemas of the pipeline's tables: the tables that are read, and the results of the measures.

The key columns of a result are always the same five. A column that the user did not group by is null, so that a result
has the same schema for any `--by`. Counts are messages, times nanoseconds, depths work units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from qsctl.eventlog.outcomes import LOSS_COLUMNS
from qsctl.summary.measures.by_run import RUN_NUMBER, by_run
from qsctl.summary.measures.observation import literal
from qsctl.summary.run_summary import COUNTS

_STRING: Final = StringType()
_INT: Final = IntegerType()
_LONG: Final = LongType()
_DOUBLE: Final = DoubleType()
_TIME: Final = TimestampType()


def _table(fields: dict[str, DataType], *, nullable: Sequence[str] = ()) -> StructType:
    return StructType([StructField(name, kind, name in nullable) for name, kind in fields.items()])


MESSAGES: Final = StructType(
    [
        StructField("run_id", _STRING),
        StructField("client_id", _INT),
        StructField("queue", _STRING),
        StructField("topic_id", _INT),
        StructField("size_bytes", _INT),
        StructField("work_units", _INT),
        StructField("enqueued_ns", _LONG),
        StructField("enter_ns", _LONG),
        StructField("wait_ns", _LONG),
        StructField("send_ns", _LONG),
        StructField("acknowledge_ns", _LONG),
        StructField("outcome", _STRING),
        StructField("discard_indication", BooleanType()),
        StructField("attempts", _INT),
        StructField("replication", _INT),
    ]
)
"""The message log as Spark reads it: the Arrow schema of `eventlog` and the folder's `replication`."""

COUNTERS: Final = StructType(
    [
        StructField("run_id", _STRING),
        StructField("client_id", _INT),
        StructField("client", _STRING),
        StructField("queue", _STRING),
        *(
            StructField(name, _LONG)
            for name in (
                *(name for name in COUNTS if name != "wait_sum_ns"),
                "high_water_mark_work_units",
                "max_depth_work_units",
                "first_discard_ns",
                "wait_sum_ns",
                "wait_max_ns",
                "observed_ns",
            )
        ),
        StructField("histogram_bucket", ArrayType(_INT)),
        StructField("histogram_count", ArrayType(_LONG)),
        *(StructField(name, _LONG) for name in ("done_messages", "done_sum_ns", "done_max_ns")),
        StructField("done_bucket", ArrayType(_INT)),
        StructField("done_count", ArrayType(_LONG)),
        *(StructField(name, _LONG) for name in ("unfinished_messages", "unfinished_max_ns")),
        StructField("unfinished_bucket", ArrayType(_INT)),
        StructField("unfinished_count", ArrayType(_LONG)),
        StructField("replication", _INT),
    ]
)
"""The simulator's own counters as Spark reads them."""

EVENTS: Final = StructType(
    [
        StructField("run_id", _STRING),
        StructField("at_ns", _LONG),
        StructField("client_id", _INT),
        StructField("queue", _STRING),
        StructField("event", _STRING),
        StructField("value", _LONG),
        StructField("replication", _INT),
    ]
)

KEYS: Final[dict[str, tuple[str, DataType]]] = {
    "run": ("run_id", _STRING),
    "replication": ("replication", _INT),
    "client": ("client", _STRING),
    "queue": ("queue", _STRING),
    "topic": ("topic_id", _INT),
}
"""The words of `--by`, and the column of each."""

_KEY_FIELDS: Final[dict[str, DataType]] = dict(KEYS.values())


def _result(fields: dict[str, DataType], *, nullable: Sequence[str] = ()) -> StructType:
    return _table({**_KEY_FIELDS, **fields}, nullable=[*_KEY_FIELDS, *nullable])


QUEUES: Final = _result(
    {
        "replications": _LONG,
        **dict.fromkeys(COUNTS, _LONG),
        "high_water_mark_work_units": _LONG,
        "max_depth_work_units": _LONG,
        "first_discard_ns": _LONG,
        "wait_max_ns": _LONG,
        "observed_ns": _LONG,
    },
    nullable=["high_water_mark_work_units", "max_depth_work_units", "first_discard_ns", "wait_max_ns"],
)
"""One row for each group: the counters after the warm-up, as in `show client … stats queue`.

Counts are sums over the replications, marks and maxima the largest, `first_discard_ns` the earliest instant;
`observed_ns` is the time observed, summed over the replications. `redelivered_messages` counts deliveries after a
message's first, including those of unfinished messages; the sum from the log equals the simulator's counter exactly.
"""

_OF_TIMES: Final = {
    "mean_ns": _DOUBLE,
    "p50_ns": _LONG,
    "p90_ns": _LONG,
    "p95_ns": _LONG,
    "p99_ns": _LONG,
    "p999_ns": _LONG,
    "max_ns": _LONG,
    "relative_error": _DOUBLE,
}
"""Summary figures of a list of times."""

DELAYS: Final = _result({"messages": _LONG, **_OF_TIMES})
"""Nearest-rank percentiles of the wait of delivered messages.

`relative_error` is 0 if they are exact, else the largest relative error of a figure.
"""

TIMES_TO_DONE: Final = _result({"done_messages": _LONG, "unfinished_messages": _LONG, **_OF_TIMES})
"""Times from a message's arrival to its acknowledgment, if messages are acknowledged; unfinished ones are censored.

Percentiles and, where messages are unfinished, the mean are product-limit estimates from a histogram
(`sim.done_times`); `max_ns` is the longest time or age, and a lower bound of percentiles that the estimate does not
reach.
"""

WINDOWS: Final = _result(
    {
        "window_start_ns": _LONG,
        "window_start_time": _TIME,
        "window_ns": _LONG,
        "arrived_messages": _LONG,
        "delivered_messages": _LONG,
        "discarded_messages": _LONG,
        "elided_messages": _LONG,
        "lost_messages": _LONG,
        "delivered_bytes": _LONG,
        "entered_messages": _LONG,
        "entered_work_units": _LONG,
        "left_messages": _LONG,
        "left_work_units": _LONG,
    },
    nullable=["window_start_time"],
)
"""Throughput and discards: the messages that arrived, entered their queue and left it in each window, if there are any.

A message arrives when it reaches the broker, and enters its queue then or later: a guaranteed one waits at its endpoint
until G-1 admits it. Windows count from the start of the run, warm-up included; `window_start_time` is the start as a
timestamp, null for a simulation, whose time is virtual. `discarded_messages` are those of a full queue; `lost_messages`
all others that were lost.
"""

DEPTH: Final = _result(
    {"at_ns": _LONG, "at_time": _TIME, "depth_messages": _LONG, "depth_work_units": _LONG}, nullable=["at_time"]
)
"""The content of the queue at each window's end; between two rows it has not changed at any window's end.

`at_time` is `at_ns` as a timestamp, null for a simulation. The content of G-1 includes the messages that it holds until
they are acknowledged, but not those that wait at its endpoint; at the end of the run it equals `length_messages`.
"""

CHANGES: Final = _result(
    {
        "measure": _STRING,
        "from_ns": _LONG,
        "until_ns": _LONG,
        "from_time": _TIME,
        "inside": _DOUBLE,
        "outside": _DOUBLE,
        "explained_share": _DOUBLE,
    },
    nullable=["from_time"],
)
"""The stretch of a replication in which a queue's arrivals, deliveries, losses or content differ most from the rest,
over all chosen clients and topics together.

`inside` and `outside` are the means there and elsewhere; `explained_share` is the part of the variation between some
dozens of equal blocks that this difference explains, at least 0.6; it is not a probability (`finishing/changes.py`).
`from_time` is `from_ns` as a timestamp, null for a simulation.
"""

LOSSES: Final = _result(
    {
        "arrived_messages": _LONG,
        **dict.fromkeys(LOSS_COLUMNS, _LONG),
        "elided_messages": _LONG,
        "loss_ratio": _DOUBLE,
        "first_discard_ns": _LONG,
    },
    nullable=["first_discard_ns"],
)
"""The losses by cause, the instant of the first discard, and the loss ratio: the fraction of the messages that left the
queue and did not reach the client.

An elided message is not a loss: a newer one of its topic replaced it.
"""

SLOW_SUBSCRIBERS: Final = _result(
    {"blocked_seconds": _LONG, "seconds": _LONG, "slow_percent": _DOUBLE, "slow_percent_max": _DOUBLE},
)
"""The slowness of each client: the percentage of 60 whole seconds in which it was blocked, the last and the worst."""

CONNECTIONS: Final = _result(
    {
        "blocked_ns": _LONG,
        "slow_periods": _LONG,
        "first_slow_ns": _LONG,
        "disconnections": _LONG,
        "retransmissions": _LONG,
        "time_outs": _LONG,
        "expired_to_dmq_messages": _LONG,
        "redelivered_to_dmq_messages": _LONG,
        "rejected_to_dmq_messages": _LONG,
    },
    nullable=["first_slow_ns"],
)
"""Connection events of each client that has any; see `connections.py`."""

LITTLES_LAW: Final = _result(
    {
        "mean_depth_messages": _DOUBLE,
        "arrivals_per_second": _DOUBLE,
        "mean_wait_ns": _DOUBLE,
        "expected_depth_messages": _DOUBLE,
        "relative_difference": _DOUBLE,
        "mean_unfinished_messages": _DOUBLE,
        "mean_done_ns": _DOUBLE,
        "expected_unfinished_messages": _DOUBLE,
        "done_relative_difference": _DOUBLE,
    },
    nullable=[
        "mean_unfinished_messages", "mean_done_ns", "expected_unfinished_messages", "done_relative_difference",
    ],
)  # fmt: skip
"""Little's law as a check of the log: the mean depth against messages entering × mean time in the queue.

The last four columns check the time to done in the same way: arrived and unfinished messages against arrivals × mean
time to done; null if messages are not acknowledged.
"""

RUNS: Final = _table(
    {
        "run_id": _STRING,
        "folder": _STRING,
        "scenario": _STRING,
        "model": _STRING,
        "seed": _LONG,
        "is_complete": BooleanType(),
        "level": _STRING,
        "warm_up_ns": _LONG,
        "horizon_ns": _LONG,
        "replications": _LONG,
        "started_at": _TIME,
    },
    nullable=["started_at"],
)
"""One row for each run: its facts, to be joined with any other table by `run_id`. `started_at` is the timestamp of
instant 0, null for a simulation, whose time is virtual.
"""

INTERVALS: Final = _result(
    {
        "measure": _STRING,
        "replications": _LONG,
        "mean": _DOUBLE,
        "standard_deviation": _DOUBLE,
        "half_width": _DOUBLE,
        "confidence": _DOUBLE,
        "method": _STRING,
        "relative_error": _DOUBLE,
    },
    nullable=["standard_deviation", "half_width"],
)
"""Means over replications with their interval: mean ± half_width, null with one replication.

`replications` is the number of values, `method` the method of the interval, and `relative_error` the largest additional
relative error of the values, upwards: 0 except for percentiles from a histogram.
"""

CELLS: Final = _result(
    {
        "fate": _STRING,
        "arrived": BooleanType(),
        "bucket": _INT,
        "messages": _LONG,
        "again": _LONG,
        "indications": _LONG,
        "bytes": _LONG,
        "work_units": _LONG,
        "wait_sum_ns_high": _LONG,
        "wait_sum_ns_low": _LONG,
        "wait_max_ns": _LONG,
        "first_left_ns": _LONG,
    },
    nullable=["wait_sum_ns_high", "wait_sum_ns_low", "wait_max_ns", "first_left_ns"],
)
"""Messages of one fate and latency bucket (`cells.py`): from which queues, delays, losses and intervals are computed.

`fate` is the outcome, or a word of `cells`; `arrived`: whether it arrived in the observed part; `bucket`: the bucket of
a delivered message's wait, else -1; `again`: deliveries after the first.
"""

MOVES: Final = _result(
    {
        "outcome": _STRING,
        "arrived_window": _LONG,
        "entered_window": _LONG,
        "left_window": _LONG,
        "waited_from_half": _LONG,
        "waited_until_half": _LONG,
        "messages": _LONG,
        "work_units": _LONG,
        "bytes": _LONG,
        "counted_entries": _LONG,
        "counted_exits": _LONG,
        "stayed_ns": _DOUBLE,
        "inside_ns": _DOUBLE,
        "counted_arrivals": _LONG,
        "counted_done": _LONG,
        "done_ns": _DOUBLE,
        "unfinished_ns": _DOUBLE,
    },
    nullable=["entered_window", "left_window", "waited_from_half", "waited_until_half", "stayed_ns", "inside_ns"],
)
"""Messages that arrived, entered their queue and left it in the same windows (`moves.py`): the source of `windows`,
`depth`, `littles_law` and `slow_subscribers`.

Windows count from the start of the run; one is null if the message did not arrive, enter or leave, respectively. From
`waited_from_half` to before `waited_until_half` are the half seconds through which the message waited to be sent, null
if there is none. `counted_entries` and `counted_exits` are those after the warm-up; `stayed_ns` is the time in the
queue of those that left after it, `inside_ns` the time that all of them were in the queue while it was observed. The
last four columns are the same for acknowledged messages, from arrival to acknowledgment; 0 for others.
"""

BLOCKS: Final = _result(
    {
        "block": _LONG,
        "arrived_messages": _LONG,
        "delivered_messages": _LONG,
        "lost_messages": _LONG,
        "growth_messages": _LONG,
    }
)
"""The movements in each block of windows (`blocks.py`); `growth_messages` is the increase of the queue's depth."""

DONE_CELLS: Final = _result(
    {
        "is_done": BooleanType(),
        "bucket": _INT,
        "messages": _LONG,
        "time_sum_ns_high": _LONG,
        "time_sum_ns_low": _LONG,
        "time_max_ns": _LONG,
    }
)
"""Acknowledged messages by the histogram's bucket of their time to done, and unfinished ones by that of their age."""

PLACES: Final = _result({"bucket": _INT, "cell": _INT})
"""Buckets that contain a percentile's rank (`ranks.py`), and the number of the cell in which their messages are
counted.
"""

WANTED_RANKS: Final = _table({"cell": _INT, "rank": _LONG})
"""Ranks that are searched for in each cell, from 1."""

RANKED: Final = _table({"cell": _INT, "rank": _LONG, "value_ns": _LONG})
"""The wait at each rank."""

SCHEMAS: Final[dict[str, StructType]] = {
    "queues": QUEUES,
    "delays": DELAYS,
    "times_to_done": TIMES_TO_DONE,
    "losses": LOSSES,
    "windows": WINDOWS,
    "depth": DEPTH,
    "changes": CHANGES,
    "slow_subscribers": SLOW_SUBSCRIBERS,
    "connections": CONNECTIONS,
    "littles_law": LITTLES_LAW,
    "intervals": INTERVALS,
}
"""The schema of each result by its name, which is also the name of its folder in `--out`."""


def key_columns(by: Sequence[str], *, several: bool = False) -> list[str]:
    """Return the columns of the log for the words of `--by`, in the order of the result.

    With one run, `run` is omitted from the keys unless only replications would be left, since a constant lengthens
    every key. Runs and clients are numbers until `shaped` replaces them by names.

    Args:
        by: the words of `--by`.
        several: whether the frame has several runs, which are never grouped together.
    """
    columns = [column for word, (column, _) in KEYS.items() if word in by and word != "run"]
    names = ["client_id" if name == "client" else name for name in columns]
    return names if set(names) - {"replication"} and not several else [RUN_NUMBER, *names]


@dataclass(frozen=True, slots=True)
class Names:
    """The names of runs and clients, for the numbers that frames have.

    `clients` has `run_number`, `client_id` and `client`; a client that it lacks keeps its number.
    """

    runs: tuple[str, ...]
    clients: pa.Table
    started_ns: tuple[int | None, ...]
    """Unix nanoseconds of each run's instant 0; None for a simulation, whose time is virtual."""


_TIMES_OF: Final = {"window_start_time": "window_start_ns", "at_time": "at_ns", "from_time": "from_ns"}
"""Each timestamp column, with the column of the instant from which it is computed."""


def shaped(frame: DataFrame, table: StructType, by: Sequence[str], names: Names) -> DataFrame:
    """Return the frame with exactly the table's columns, order and types; absent key columns become null.

    Args:
        frame: result of a measure.
        table: the declared schema.
        by: the words of `--by`; the other key columns are null.
        names: the names of runs and clients.
    """
    present = set(frame.columns)
    wanted = {column for word, (column, _) in KEYS.items() if word in by}
    by_client = "client" in wanted and "client_id" in present
    columns = []
    for field in table.fields:
        value = field.name if field.name in present else "null"
        if field.name == "client" and by_client:
            value = "coalesce(names.client, cast(made.client_id as string))"
        elif field.name in _KEY_FIELDS and field.name not in wanted and field.name != "replication":
            value = "null"
        elif field.name == "run_id":
            value = by_run([literal(each) for each in names.runs])
        elif field.name in _TIMES_OF:
            value = time_of_day(_TIMES_OF[field.name], names.started_ns)
        else:
            assert field.name in present or field.name in _KEY_FIELDS, f"the frame lacks {field.name}"
        columns.append(f"cast({value} as {field.dataType.simpleString()}) as {field.name}")
    if not by_client:
        return frame.selectExpr(*columns)
    # Other names for the joined columns: `run_number` in the expressions above would be ambiguous.
    own = {name: f"named_{name}" for name in (RUN_NUMBER, "client_id") if name in present}
    on = " and ".join(f"made.{name} = names.{other}" for name, other in own.items())
    named = ", ".join(f"{name} as {other}" for name, other in own.items())
    return frame.sparkSession.sql(
        f"select /*+ broadcast(names) */ {', '.join(columns)} from {{made}} as made "
        f"left join (select {named}, client from {{names}}) as names on {on}",
        made=frame,
        names=frame.sparkSession.createDataFrame(names.clients),
    )


def time_of_day(instant: str, started_ns: Sequence[int | None]) -> str:
    """Return the SQL expression of the timestamp of an instant, null for a simulation.

    It uses integer arithmetic, since Unix times are too large for floating-point numbers.

    Args:
        instant: SQL expression of nanoseconds since the beginning of the run.
        started_ns: for each run of the frame, the Unix nanoseconds of its instant 0; None: it has none.
    """
    if not any(each is not None for each in started_ns):
        return "cast(null as timestamp)"
    unix_ns = f"({by_run(['cast(null as bigint)' if each is None else f'{each}L' for each in started_ns])} + {instant})"
    return f"timestamp_micros(({unix_ns} - pmod({unix_ns}, 1000)) div 1000)"


_ARROW: Final[dict[DataType, pa.DataType]] = {
    _STRING: pa.string(),
    _INT: pa.int32(),
    _LONG: pa.int64(),
    _DOUBLE: pa.float64(),
}


def arranged(table: pa.Table, shape: StructType, by: Sequence[str], names: Names) -> pa.Table:
    """Return a table that was computed on the driver, in its declared schema, as `shaped` does for a frame.

    Args:
        table: result of a module of `finishing`.
        shape: the declared schema.
        by: the words of `--by`; the other key columns are null.
        names: the names of runs and clients.
    """
    present = set(table.column_names)
    wanted = {column for word, (column, _) in KEYS.items() if word in by}
    runs = table[RUN_NUMBER] if RUN_NUMBER in present else pa.chunked_array([pa.repeat(0, table.num_rows)])
    made = {}
    for field in shape.fields:
        kind = _ARROW[field.dataType]
        if field.name == "client" and "client" in wanted and "client_id" in present:
            place = pc.index_in(
                _run_and_client(runs, table["client_id"]),
                _run_and_client(names.clients[RUN_NUMBER], names.clients["client_id"]),
            )
            made["client"] = pc.coalesce(names.clients["client"].take(place), table["client_id"].cast(pa.string()))
        elif field.name in _KEY_FIELDS and field.name not in wanted and field.name != "replication":
            made[field.name] = pa.nulls(table.num_rows, kind)
        elif field.name == "run_id":
            made[field.name] = pa.array(names.runs, kind).take(runs)
        elif field.name in present:
            made[field.name] = table[field.name].cast(kind)
        else:
            assert field.name in _KEY_FIELDS, f"the table lacks {field.name}"
            made[field.name] = pa.nulls(table.num_rows, kind)
    return pa.table(made)


def _run_and_client(runs: pa.ChunkedArray, clients: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a number that identifies a run and a client; client numbers may be negative."""
    return pc.add(pc.shift_left(runs.cast(pa.int64()), 32), clients.cast(pa.int64()))
