"""The Spark data source `qsctl`: simulated counters as a table, and a recording in progress as a stream.

    spark.read.format("qsctl").load("burst").groupBy("queue").sum("delivered_messages").show()
    spark.readStream.format("qsctl").option("table", "arrivals").load("recording")

Spark finds the format by the module `pyspark_qsctl` of an installation (`found_by_name.py`); without that module,
`spark.dataSource.register(QsctlDataSource)` registers it.

A table is simulated when its rows are computed: the path is a scenario file or the name of a built-in scenario, and
each task simulates one replication. Options: `seed`, `replications`, `set` with PATH=VALUE of each override, separated
by semicolons or line ends, or `set.PATH` for one, whose path must be in lower case, since Spark converts the names of
options.

A stream has the rows of a recording, part by part (`_recording_stream.py`). Options: `table`, `columns`, and
`maxPartsPerTrigger`.

A run folder as a table does not need this format: it is Parquet for Spark, and `read_runs` prunes columns and pushes
filters down, which a data source in Python cannot; through one, one queue's rows of 1.4 million took 13.4 s instead of
0.8 s.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from qsctl.errors import UsageError
from qsctl.eventlog.location import location
from qsctl.eventlog.run_folder import RUN_FILE
from qsctl.identity import decimal_from_text
from qsctl.summary.measures.tables import COUNTERS
from qsctl.summary.spark._recording_stream import TABLE, RecordingStream, check_columns, stream_schema
from qsctl.summary.spark._shown_remedies import remedies_shown

if TYPE_CHECKING:
    import pyarrow as pa

    from qsctl.sim.scenario.scenario import Scenario

FORMAT: Final = "qsctl"
OVERRIDE: Final = "set."
OVERRIDES: Final = "set"
OPTIONS: Final = ("path", "seed", "replications", OVERRIDES)
STREAM_OPTIONS: Final = ("path", "table", "columns", "maxPartsPerTrigger")
_LARGEST: Final = {"seed": 2**63 - 1, "replications": 1_000_000, "maxPartsPerTrigger": 2**31 - 1}


@dataclasses.dataclass
class _Replication(InputPartition):
    """One replication of a scenario."""

    number: int
    scenario: Scenario


class QsctlDataSource(DataSource):
    """The data source: a table has the rows of `tables.COUNTERS`, a stream those of a table of a recording."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    @remedies_shown()
    def schema(self) -> StructType:
        """Return the declared schema of the table or stream.

        Raises:
            UsageError: the path is missing, or a table or column does not exist.
        """
        path = self._path()
        if "table" in self.options or "columns" in self.options or _is_run_folder(path):
            return stream_schema(self.options.get("table", TABLE), self.options.get("columns", ""))
        return COUNTERS

    @remedies_shown()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a table; created on the driver, so that a wrong path or option is reported before a task
        runs.

        Raises:
            UsageError: the path is missing or is a run folder, or an option is unknown or not a number.
            NotFound: the scenario does not exist.
            InvalidInput: the scenario is invalid.
        """
        from qsctl.sim.scenario.overrides.set_values import apply_overrides
        from qsctl.sim.scenario.rules.scenario import check_rules
        from qsctl.sim.scenario.xml import find_scenario, read_scenario

        path = self._path()
        if _is_run_folder(path):
            raise UsageError(
                f"{path} is a run folder, which Spark reads by itself",
                remedy=f"Use qsctl.summary.read_runs(spark, [{path!r}]), or spark.readStream for one that grows.",
            )
        for name in self.options:
            if name not in OPTIONS and not name.startswith(OVERRIDE):
                raise UsageError(
                    f"there is no option {name!r} of a simulated table",
                    remedy=f"Use {', '.join(OPTIONS[1:])}, and {OVERRIDE}PATH for a value of the scenario.",
                )
        scenario = apply_overrides(read_scenario(find_scenario(path)), self._overrides())
        scenario = dataclasses.replace(
            scenario,
            seed=self._number("seed", 0, scenario.seed),
            replications=self._number("replications", 1, scenario.replications),
        )
        check_rules(scenario)
        return _RunReader(
            [field.name for field in schema.fields],
            [_Replication(number, scenario) for number in range(scenario.replications)],
        )

    @remedies_shown()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a stream; a wrong path or option is reported before a task runs.

        Raises:
            UsageError: the path is missing, an option is unknown or has a wrong value, or the table lacks a column.
            NotFound: the path is not a run folder.
            Damaged: its `run.json` was changed.
            InvalidInput: it is not a recording, or its level lacks the table.
        """
        path = self._path()
        for name in self.options:
            if name not in {each.lower() for each in STREAM_OPTIONS}:
                raise UsageError(
                    f"there is no option {name!r} of a stream", remedy=f"Use {', '.join(STREAM_OPTIONS[1:])}."
                )
        table = self.options.get("table", TABLE)
        parts_at_once = self._number("maxPartsPerTrigger", 1, 0) or None
        # Open the folder before its columns are checked: for a missing folder the schema is that of a scenario's table.
        stream = opened_stream(path, table, [field.name for field in schema.fields], parts_at_once)
        check_columns(table, schema)
        return stream

    def _overrides(self) -> dict[str, str]:
        found = {
            name.removeprefix(OVERRIDE): value for name, value in self.options.items() if name.startswith(OVERRIDE)
        }
        for assignment in re.split(r"[;\n]", self.options.get(OVERRIDES, "")):
            if not assignment.strip():
                continue
            path, equals, value = assignment.partition("=")
            if not equals or not path.strip():
                raise UsageError(
                    f"option {OVERRIDES} has {assignment.strip()!r}, which is not PATH=VALUE",
                    remedy="Write it as in .option('set', 'horizon=2s; profile/queue[D-1]/max-depth=100').",
                )
            found[path.strip()] = value.strip()
        return found

    def _path(self) -> str:
        path = self.options.get("path", "")
        if not path:
            raise UsageError(
                "no scenario and no recording is named",
                remedy="Write .load('burst'), .load('my-scenario.xml'), or with readStream .load('recording').",
            )
        return path

    def _number(self, option: str, least: int, otherwise: int) -> int:
        written = self.options.get(option)
        if written is None:
            return otherwise
        number = decimal_from_text(written, _LARGEST[option])
        if number is None or number < least:
            raise UsageError(
                f"option {option} is {written!r}", remedy=f"Write a whole number from {least} to {_LARGEST[option]}."
            )
        return number


def opened_stream(path: str, table: str, columns: Sequence[str], parts_at_once: int | None) -> RecordingStream:
    """Return the stream of a recording.

    Args:
        path: path or URI of the recording's folder.
        table: name of a table of the recording.
        columns: names of the columns of the rows.
        parts_at_once: largest number of parts that a trigger reads; None: all.

    Raises:
        UsageError: a limit is given, and this PySpark does not support one for Python sources.
        NotFound: the path is not a run folder.
        Damaged: its `run.json` was changed.
        InvalidInput: it is not a recording, or its level lacks the table.
    """
    folder = location(path).absolute()
    try:
        from qsctl.summary.spark._limited_stream import LimitedStream
    except ImportError:  # PySpark 4.0 and 4.1
        if parts_at_once is not None:
            import pyspark

            raise UsageError(
                f"PySpark {pyspark.__version__} cannot limit the parts of a streaming trigger",
                remedy="Leave out the option maxPartsPerTrigger, or install PySpark 4.2 or later.",
            ) from None
        return RecordingStream(folder, table, columns)
    return LimitedStream(folder, table, columns, parts_at_once)


def _is_run_folder(path: str) -> bool:
    return bool((location(path) / RUN_FILE).is_file())


class _RunReader(DataSourceReader):
    def __init__(self, columns: list[str], replications: Sequence[_Replication]) -> None:
        self._columns = columns
        self._replications = replications

    def partitions(self) -> Sequence[InputPartition]:
        return list(self._replications)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from qsctl.sim.run import simulate_counters

        assert isinstance(partition, _Replication)
        table = simulate_counters(partition.scenario, partition.number)
        table = table.append_column("replication", pa.array([partition.number] * table.num_rows, pa.int32()))
        for batch in table.select(self._columns).to_batches():
            # Spark reads no dictionaries.
            columns = [
                column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column for column in batch.columns
            ]
            yield pa.RecordBatch.from_arrays(columns, names=self._columns)
