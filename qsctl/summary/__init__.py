"""The Spark pipeline over run folders.

Its public surface is what `__all__` names:

- `summarize(spark, runs, …)`: the tables of some runs, on any session: your own, of a notebook, of `spark-submit`.
- `summary_frames(spark, runs, …)`: the same tables as frames, with any number of rows, and the facts of each run.
- `differing_runs(frames, …)`: which of these runs are outliers of their group, and from which on others follow.
- `read_runs(spark, runs, table)`: a table of many runs as one frame, with the facts of each run as columns.
- `spark_session(options)`: the session that the commands use, for those that have none; `SparkOptions` sets where.
- `RunSummary`: what `summarize` returns.

>>> import qsctl
>>> from qsctl.summary import spark_session, summarize
>>> run = qsctl.simulate("burst", settings={"horizon": "20ms"}, replications=2, level="messages", out="run")
>>> summary = summarize(spark_session(), [run.folder], by=["queue"], measures=["queues", "losses"], out="tables")
>>> sum(each.delivered_messages for each in summary.queues) == run.info.delivered_messages
True

Input: a run folder (`eventlog.schema`): Parquet of messages, counters and events. Output: the tables of
`measures.tables.SCHEMAS`. Read `measures/tables.py` first, then `measures/observation.py`, the few expressions of SQL
that all measures use, then any measure; `batch_tables.py` and `job.py` last.

- `measures/cells.py`: messages to cells, the one grouping that counters, losses and the histogram of waits come from.
- `measures/ranks.py`: messages to the exact waits at given ranks.
- `measures/moves.py`: messages to their movements, the one grouping that all tables over time come from.
- `throughput.py`, `depth.py`, `littles_law.py`, `slow_subscriber.py` beside them: each a table of the movements.
- `measures/blocks.py`: windows to equal blocks of each run, in which `finishing/changes.py` looks for what differs.
- `measures/connections.py`: events to the totals of each client.
- `measures/recorded_counters.py`: the simulator's counters, for a run without a log.
- `finishing/`: small tables are finished on the driver, in Arrow, and nowhere else.
- `engine.py`: what computes frames: `spark/engine.py`, or `local/`, DuckDB in this process for runs of one machine.
- `log_frames.py`: the only reads of logs on Spark; `run_batch.py`: the runs of one plan, and what differs between them.
- `batch_tables.py`: the order of the steps; `job.py`: from runs to a summary; `table_frames.py`: to frames of programs;
  `output.py` writes tables into a folder.

Invariants. A measure is a function from frames to a frame with a declared schema (`tables`); it reads nothing, writes
nothing, changes no setting, and needs no `sparkContext`, so that it runs on Spark Connect. It scans the log at most
once; it has no cross join and no sort or running sum without a partition (`tests/summary/test_frames.py` checks the
plans). There is one text of each, which `local/dialect.py` translates for DuckDB; it keeps to what both understand (no
`inline`, `explode_outer`, `arrays_zip`). Plain statements of DuckDB compute the same figures from the same files, too
(`tests/summary/test_duckdb.py`). Several runs are one plan: each measure groups by `run_number`, and what differs
between the runs is an element of a literal array (`measures/by_run.py`), so that each run has the figures that it has
alone. No figure depends on the session's settings: sums that could overflow are made in two parts
(`observation.exact_sum`).

The plan of each measure, as `EXPLAIN` shows it; every scan reads the columns that the measure names and no others:

- `cells`: one scan, a partial and a final aggregation with one exchange between, by the group, fate and bucket.
- `ranks`: one scan, with the spans of waits as a filter; a broadcast join with the few wanted places, an aggregation by
  cell and wait, a running sum in each cell, a broadcast join with the ranks.
- `moves`: one scan, a partial and a final aggregation with one exchange between, by the group, outcome, windows and
  waited half seconds. It is computed once for all that follow, none of which reads the log.
- `windows`: an aggregation by window. `depth` is a running sum in each group over `windows`.
- `littles_law`: an aggregation by group and replication, and one of that by group.
- `slow_subscribers`: an aggregation by half seconds, running sums and a distinct in each client.
- `connections`: one scan of the events, an aggregation by client.
- The join with the clients' names, at the end of each table that Spark finishes, is a broadcast.

`sweeps` and `comparison` begin with `sweep.py`, `size.py` and `compare.py`; what may be stated of their figures, with
which error, is `inference`. `spark/session.py` makes the session; Java starts in `spark/gateway.py` (which one:
`spark/java.py`).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from qsctl.lazy import exports

__all__ = ["RunSummary", "SparkOptions", "differing_runs", "read_runs", "spark_session", "summarize", "summary_frames"]

if TYPE_CHECKING:
    from qsctl.summary._log_frames import read_runs
    from qsctl.summary._table_frames import summary_frames
    from qsctl.summary.differences import differing_runs
    from qsctl.summary.job import summarize
    from qsctl.summary.run_summary import RunSummary
    from qsctl.summary.spark.session import SparkOptions, spark_session

# No frame of ours goes through pandas; pyspark warns about its newest release whenever it is imported beside it.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)


__getattr__ = exports(
    __name__,
    {
        "RunSummary": "run_summary",
        "SparkOptions": "spark.session",
        "differing_runs": "differences",
        "read_runs": "_log_frames",
        "spark_session": "spark.session",
        "summarize": "job",
        "summary_frames": "_table_frames",
    },
)
