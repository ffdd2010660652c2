"""The tables of names beside the log, which give the meaning of numbers in its rows.

Each table is one file, `clients/part-00000.parquet` and so on, for all replications. The tables are made from the run's
description and its counters, never from its log; they contain no time of day and no path, so that the same run writes
the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qsctl.eventlog.described import (
    NAME,
    column,
    description_of,
    duration,
    instant,
    stored,
    time_of,
    unit_of,
    with_durations,
)
from qsctl.eventlog.location import Location, RemotePath, move, parquet_sink
from qsctl.eventlog.run_folder import FileInfo, RunInfo, describe_part
from qsctl.eventlog.schema import CLIENT_ID, RUN_ID
from qsctl.eventlog.tables import LOG_TABLES

CLIENTS: Final = pa.schema(
    [RUN_ID, CLIENT_ID, column("client", pa.string(), "Name of the client, or of a queue of the whole broker.")]
)
QUEUES: Final = pa.schema(
    [
        RUN_ID,
        column("queue", pa.string(), "Name of the queue in `messages`, `counters` and `events`."),
        column(
            "full_name", pa.string(), "Its full name in `arrivals`, `deliveries` and `peers`; null: of a simulation.",
            nullable=True,
        ),
    ]
)  # fmt: skip
TOPICS: Final = pa.schema(
    [
        RUN_ID,
        column("topic_id", pa.int32(), "Number of the topic in `messages`."),
        column(
            "topic", pa.string(), "Name of the topic: its traffic, with its number from 0 where the traffic has "
            "several; of a model `queue` the class of work; of a service the producer, by its topic or its GUID.",
        ),
    ]
)  # fmt: skip
SETTINGS: Final = pa.schema(
    [
        RUN_ID,
        column("setting", pa.string(), "Path of the setting, as `--set` has it."),
        column("value", pa.string(), "Value, as the scenario or the service's settings have it."),
        column("number", pa.float64(), "Value as a number in `unit`; null: it is not a number.", nullable=True),
        column("unit", pa.string(), "Unit of `number`; null: a plain number, or none.", nullable=True),
    ]
)
RUNS: Final = pa.schema(
    [
        RUN_ID,
        column("scenario", pa.string(), "Name of the scenario, of a recording that of the service."),
        column("model", pa.string(), "Model that was simulated; of a recording `shared_reader_queue`."),
        column("is_recording", pa.bool_(), "Whether a live service was recorded."),
        column("status", pa.string(), "`complete`, `partial` where it was stopped, `running` where it goes on."),
        column("seed", pa.int64(), "Seed of the random numbers; 0 of a recording."),
        column("replications", pa.int32(), "Number of replications that were asked for.", unit="replications"),
        column("log_level", pa.string(), "Level of the log: `counters`, `messages` or `events`."),
        column(
            "started_at", pa.timestamp("us", "UTC"), "Time of day of instant 0; null: of a simulation.", nullable=True
        ),
        instant("warm_up_ns", "End of the warm-up: what happened before is not counted."),
        duration("horizon_ns", "Length of the run, the warm-up included."),
        column("sample_share", pa.float64(), "Fraction of the samples that have rows in `messages`."),
    ]
)
COLUMNS: Final = pa.schema(
    [
        column("table_name", pa.string(), "Table of this folder."),
        column("column_name", pa.string(), "Column of the table."),
        column("type", pa.string(), "Arrow type in the file; durations are 64-bit integers for DuckDB and Spark."),
        column("unit", pa.string(), "Unit of its numbers; null: none.", nullable=True),
        column("time", pa.string(), "`instant` since the run began, or `duration`; null: neither.", nullable=True),
        column("nullable", pa.bool_(), "Whether a row may have no value."),
        column("description", pa.string(), "What it is, and how to decode it."),
    ]
)

NAME_TABLES: Final[dict[str, pa.Schema]] = {
    "clients": CLIENTS,
    "queues": QUEUES,
    "topics": TOPICS,
    "settings": SETTINGS,
    "runs": RUNS,
    "columns": COLUMNS,
}
"""The tables of names by their folders."""

DESCRIPTIONS: Final[dict[str, str]] = {
    "messages": "A row a message, from level `messages` on.",
    "counters": "A row a replication, client and queue: counts after the warm-up, at every level.",
    "events": "A row an event that is not a message's, at level `events`.",
    "arrivals": "Of a recording and a replay: a row a sample that reached a queue.",
    "deliveries": "Of a recording and a replay: a row a delivery.",
    "peers": "Of a recording and a replay: a row an action of a producer or consumer.",
    "commands": "Of a recording and a replay: a row a command that changes something.",
    "clients": "The names of the clients' numbers.",
    "queues": "The queues that have counters.",
    "topics": "The names of the topics' numbers.",
    "settings": "A row a setting that was simulated or recorded.",
    "runs": "One row: the run.",
    "columns": "A row a column of every table, with its description.",
}
"""Each table in a sentence."""

REPLICATION: Final = column(
    "replication", pa.int32(), "Replication from 0: the folder's name, not a column in the file."
)

TOPICS_MAX: Final = 100_000
"""Topics that have rows: a scenario may have millions, which matter to eliding alone."""


def names_from(
    info: RunInfo,
    counters: pa.Table,
    *,
    topics: Iterable[tuple[int, str]],
    settings: Iterable[tuple[str, str, float | None, str | None]],
    full_names: Mapping[str, str] | None = None,
) -> dict[str, pa.Table]:
    """Return the tables of names.

    Args:
        info: the run.
        counters: the counters of all its replications, with the names of clients and queues.
        topics: number and name of each topic.
        settings: path, text, number and unit of each setting.
        full_names: the full names of queues, where they differ.
    """
    numbers, clients = _clients_of(counters)
    queues = _texts_of(counters["queue"])
    full = full_names or {}
    paths = list(settings)
    named = list(topics)
    recording = info.recording or None
    return {
        "clients": _table(CLIENTS, info, client_id=numbers, client=clients),
        "queues": _table(QUEUES, info, queue=queues, full_name=[full.get(each) for each in queues]),
        "topics": _table(TOPICS, info, topic_id=[each for each, _ in named], topic=[name for _, name in named]),
        "settings": _table(
            SETTINGS, info, **dict(zip(("setting", "value", "number", "unit"), _transposed(paths, 4), strict=True))
        ),
        "runs": _table(
            RUNS, info, scenario=[info.scenario], model=[info.model], is_recording=[recording is not None],
            status=[str(info.status)], seed=[info.seed], replications=[info.replications], log_level=[info.log_level],
            started_at=[recording.started_at_ns // 1000 if recording else None], warm_up_ns=[info.warm_up_ns],
            horizon_ns=[info.horizon_ns], sample_share=[recording.sample_share if recording else 1.0],
        ),
        "columns": described_columns(),
    }  # fmt: skip


def described_columns() -> pa.Table:
    """Return a table with a row for each column of every table that a run folder may have."""
    logs = {name: schema.append(REPLICATION) for name, schema in LOG_TABLES.items()}
    rows = [
        {
            "table_name": table,
            "column_name": field.name,
            "type": "string" if field.type == NAME else str(field.type),
            "unit": unit_of(field) or None,
            "time": str(time_of(field)) or None,
            "nullable": field.nullable,
            "description": description_of(field),
        }
        for table, schema in {**logs, **NAME_TABLES}.items()
        for field in stored(schema)
    ]
    return pa.Table.from_arrays(
        [pa.array([row[field.name] for row in rows], field.type) for field in COLUMNS], schema=COLUMNS
    )


def write_names(folder: Location, tables: Mapping[str, pa.Table], number: int = 0) -> dict[str, FileInfo]:
    """Write the tables of names and return their files, by their path within the folder.

    Raises:
        OSError: the folder cannot be written.
    """
    written = {}
    for name, table in tables.items():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        hidden, final = place / f".part-{number:05}.parquet.tmp", place / f"part-{number:05}.parquet"
        sink = parquet_sink(hidden)
        made = with_durations(table)
        with pq.ParquetWriter(sink, made.schema, write_page_checksum=True) as writer:
            writer.write_table(made)
        if isinstance(hidden, RemotePath):
            sink.close()
        move(hidden, final)
        written[f"{name}/{final.name}"] = describe_part(final, table.num_rows)
    return written


def _table(schema: pa.Schema, info: RunInfo, **columns: Iterable[Any]) -> pa.Table:
    arrays = {name: pa.array(values, schema.field(name).type) for name, values in columns.items()}
    count = len(next(iter(arrays.values())))
    names = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([info.run_id]))
    return pa.Table.from_arrays([names, *(arrays[name] for name in schema.names[1:])], schema=schema)


def _transposed(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[at] for row in rows] for at in range(width)]


def _clients_of(counters: pa.Table) -> tuple[list[int], list[str]]:
    """Return the clients' numbers, ascending, and their names; a broker may have millions."""
    found: dict[int, str] = {}
    for batch in counters.select(["client_id", "client"]).to_batches():
        numbers, firsts = np.unique(batch["client_id"].to_numpy(), return_index=True)
        names = batch["client"].take(pa.array(firsts))
        found.update(zip(numbers.tolist(), names.to_pylist(), strict=True))
    ordered = sorted(found)
    return ordered, [found[each] for each in ordered]


def _texts_of(column: pa.ChunkedArray) -> list[str]:
    """Return the distinct texts of a column in the order of their first rows."""
    found: dict[str, None] = {}
    for chunk in column.chunks:
        found.update(dict.fromkeys(chunk.unique().to_pylist()))
    return list(found)
