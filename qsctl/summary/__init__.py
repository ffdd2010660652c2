"""The Spark pipeline over run folders.

In goes a run folder (`eventlog.schema`): Parquet of messages, counters and events. Out come the tables of
`tables.SCHEMAS`. Read `tables.py` first, then `observation.py`, the few expressions of SQL that all measures use, then
any measure; `job.py` last.

- `cells.py`: messages to cells, the one grouping that counters, losses and the histogram of waits come from.
- `ranks.py`: messages to the exact waits at given ranks.
- `throughput.py`, `depth.py`, `littles_law.py`, `slow_subscriber.py`: each a table that Spark finishes by itself.
- `recorded_counters.py`: the simulator's counters, for a run without a log.
- `finishing/`: what is small is finished on the driver, in Arrow, and nowhere else.
- `job.py`: the only reads and writes, and the order of the steps; `output.py` is how tables get into a folder.

Invariants. A measure is a function from frames to a frame with a declared schema (`tables.measured`); it reads
nothing, writes nothing, changes no setting, and needs no `sparkContext`, so that it runs on Spark Connect. It scans the
log once; it has no cross join and no sort or running sum without a partition (`tests/summary/test_frames.py` looks at
the plans). There is one implementation of each, and DuckDB makes the same figures of the same files
(`tests/summary/test_duckdb.py`). The run is one in a frame of messages: several are summarized one after the other.

Sweeps, comparisons, sizes and the session are beside: `sweep.py`, `compare.py`, `size.py`, `session.py`.
"""

import warnings

# No frame of ours goes through pandas; pyspark warns about its newest release whenever it is imported beside it.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
