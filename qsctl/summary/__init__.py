"""The Spark pipeline that summarizes run folders.

Its public surface is what `__all__` names:

- `summarize(spark, runs, …)`: the tables of some runs, on any session: a program's own, of a notebook, of
  `spark-submit`.
- `summary_frames(spark, runs, …)`: the same tables as DataFrames, with any number of rows, and the facts of each run.
- `differing_runs(frames, …)`: which of these runs are outliers of their group, and at which runs a change begins.
- `read_runs(spark, runs, table)`: a table of many runs as one DataFrame, with the facts of each run as columns.
- `spark_session(options)`: the session of the commands, for programs without one; `SparkOptions` has its master.
- `RunSummary`: the result of `summarize`.

>>> import qsctl
>>> from qsctl.summary import spark_session, summarize
>>> run = qsctl.simulate("burst", settings={"horizon": "20ms"}, replications=2, level="messages", out="run")
>>> summary = summarize(spark_session(), [run.folder], by=["queue"], measures=["queues", "losses"], out="tables")
>>> sum(each.delivered_messages for each in summary.queues) == run.info.delivered_messages
True

Input: a run folder (`eventlog.schema`): Parquet of messages, counters and events. Output: the tables of
`measures.tables.SCHEMAS`. Read `measures/tables.py` first, then `measures/observation.py`, the few expressions of SQL
that all measures use, then any measure; `_batch_tables.py` and `job.py` last.

- `measures/cells.py`: the grouping of messages into cells, from which counters, losses and the histogram of waits
  follow.
- `measures/ranks.py`: the exact waits at given ranks.
- `measures/moves.py`: the grouping of messages into movements, from which all tables over time follow.
- `throughput.py`, `depth.py`, `littles_law.py`, `slow_subscriber.py` beside them: each a table of the movements.
- `measures/blocks.py`: equal blocks of each run, in which `finishing/changes.py` searches for deviating stretches.
- `measures/connections.py`: totals of each client's connection events.
- `measures/recorded_counters.py`: the simulator's counters, for a run without a log.
- `finishing/`: computations on small tables, on the driver, in Arrow.
- `_engine.py`: the interface of the engines: `spark/engine.py`, or `local/`, DuckDB in this process for local runs.
- `_log_frames.py`: the only reads of logs on Spark; `_run_batch.py`: the runs of one plan, and their differing
  constants.
- `_batch_tables.py`: the order of the steps; `job.py`: from runs to a summary; `_table_frames.py`: to DataFrames for
  programs; `_output.py`: writing of tables into a folder.

Invariants. A measure is a function from frames to a frame with a declared schema (`tables`); it reads nothing, writes
nothing, changes no setting, and needs no `sparkContext`, so that it runs on Spark Connect. It scans the log at most
once; it has no cross join and no sort or running sum without a partition (`tests/summary/test_frames.py` checks the
plans). Each measure is one SQL text, which `local/_dialect.py` translates for DuckDB; it uses only functions of both
(no `inline`, `explode_outer`, `arrays_zip`). Plain statements of DuckDB compute the same figures from the same files,
too (`tests/summary/test_duckdb.py`). Several runs are one plan: each measure groups by `run_number`, and constants that
differ between the runs are elements of a literal array (`measures/by_run.py`), so that the figures of a run do not
depend on the others. No figure depends on the session's settings: sums that could overflow are made in two parts
(`observation.exact_sum`).

The plan of each measure, as `EXPLAIN` shows it; every scan reads only the columns of the measure:

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

Read `sweep.py`, `size.py` and `compare.py` first in `sweeps` and `comparison`; `inference` has the intervals and tests
of their figures. `spark/session.py` creates the session; `spark/_gateway.py` starts the Java that `spark/java.py`
finds.
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

# No frame is converted to pandas; pyspark warns of the newest pandas when both are imported.
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
