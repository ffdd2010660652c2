"""The page of the event log: every table and column of a run folder, with the descriptions that its files contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qsctl.cli.help.reference.markdown import code, table, text_in_markdown

_HOW = """\
A run folder, of a simulation or a recording, holds Parquet files: those of the log in folders `replication=N`, as
`messages/replication=0/part-00000.parquet`, and one file of each table of names, as `clients/part-00000.parquet`. A
table exists without rows, too, where its level of the log has it. `qsctl.load(FOLDER)` reads all of them for Arrow,
pandas, Polars and DuckDB, also of folders that earlier versions wrote, which lack the tables of names and have their
durations as integers. The fields' metadata in the files, the table `columns` and `schemas/qsctl_event_log.json` have
the same descriptions.

Times are nanoseconds. An *instant* is an integer that counts since the run began, negative before; of a recording add
`started_at` of the table `runs` for the time of day. A *duration* has the Arrow type `duration[ns]`, so that pandas
and Polars refuse to subtract an instant from it; DuckDB and Spark read it as a 64-bit integer.

The bounds of a bucket of a histogram, in SQL (`//` is the whole quotient) and in nanoseconds, both included:

```sql
CASE WHEN b < 256 THEN b ELSE (128 + b % 128) << (b // 128 - 1) END AS first_ns,
CASE WHEN b < 256 THEN b ELSE ((129 + b % 128) << (b // 128 - 1)) - 1 END AS last_ns
```"""

_SWEEP = """\
`qsctl.load` of a sweep's folder has these tables. Each varied setting is a column of both, named by its path. The
measures are those of `qsctl sweep`; `MEASURE_half_width` beside `MEASURE` is half the width of its interval."""


def page() -> str:
    """Return the tables of the log, of names, and of sweeps."""
    # Imported here, since their libraries start threads, which a process that is forked later would lack.
    from qsctl.eventlog.names import DESCRIPTIONS, NAME_TABLES, described_columns
    from qsctl.summary.sweeps.sweep_tables import SWEEP_TABLES

    rows: dict[str, list[Mapping[str, Any]]] = {name: [] for name in DESCRIPTIONS}
    for row in described_columns().to_pylist():
        rows[row["table_name"]].append(row)
    sections = {name: _section(name, text, rows[name]) for name, text in DESCRIPTIONS.items()}
    log = "\n\n".join(text for name, text in sections.items() if name not in NAME_TABLES)
    names = "\n\n".join(sections[name] for name in NAME_TABLES)
    sweeps = table(("table", "what it is"), ((code(name), text) for name, text in SWEEP_TABLES.items()))
    return (
        f"{_HOW}\n\n## Tables of the log\n\n{log}\n\n## Tables of names\n\n{names}\n\n## Tables of a sweep\n\n{_SWEEP}"
        f"\n\n{sweeps}"
    )


def _section(name: str, text: str, rows: Sequence[Mapping[str, Any]]) -> str:
    return f"### {name}\n\n{text}\n\n{table(('column', 'type', 'unit', 'null', 'what it is'), map(_row, rows))}"


def _row(row: Mapping[str, Any]) -> Sequence[str]:
    kind = row["type"].replace("list<item: ", "list<")
    unit = " ".join(filter(None, (row["unit"], row["time"])))
    null = "yes" if row["nullable"] else ""
    return code(row["column_name"]), code(kind), unit, null, text_in_markdown(row["description"])
