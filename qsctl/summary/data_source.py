"""`spark.read.format("qsctl")`: a simulation, or a run folder, as a table of Spark.

    from qsctl.summary.data_source import QsctlDataSource
    spark.dataSource.register(QsctlDataSource)
    spark.read.format("qsctl").load("burst").groupBy("queue").sum("delivered_messages").show()
    spark.read.format("qsctl").option("table", "messages").load("qsctl-runs/burst-1").show()

The path is a run folder, a scenario file or the name of a ready scenario. A scenario is simulated where the rows are
needed, one task a replication; a run folder is read, one task a file, which is compared with its checksum first.
Options: `table` (`counters`, or `messages` of a run folder), `replications`, `seed`, and `set.PATH` for each override.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from qsctl.errors import UsageError
from qsctl.eventlog.checked_files import Part, listed_parts
from qsctl.eventlog.run_folder import RUN_FILE, read_run_info
from qsctl.summary.tables import COUNTERS, MESSAGES

if TYPE_CHECKING:
    import pyarrow as pa

    from qsctl.sim.scenario import Scenario

FORMAT: Final = "qsctl"
TABLES: Final = {"counters": COUNTERS, "messages": MESSAGES}
_OVERRIDE: Final = "set."


@dataclasses.dataclass
class _Part(InputPartition):
    """One file of a run folder, or one replication of a scenario."""

    replication: int
    file: Part | None = None
    scenario: Scenario | None = None
    table: str = "counters"


class QsctlDataSource(DataSource):
    """The format; its rows are those of `eventlog.schema`, with the replication."""

    @classmethod
    def name(cls) -> str:
        """The word behind `format`."""
        return FORMAT

    def schema(self) -> StructType:
        """The table's declared schema."""
        return TABLES[self._table()]

    def reader(self, schema: StructType) -> DataSourceReader:
        """What makes the rows; planned on the driver, so that a wrong path or option is told before a task runs.

        Raises:
            UsageError: no path, an unknown table, or a message table of a scenario, which has no folder.
            NotFound: there is no such run or scenario.
            Damaged: `run.json` was changed, or a file that it lists is missing, or one is there that it does not list.
        """
        table = self._table()
        path = self.options.get("path", "")
        if not path:
            raise UsageError("nothing to read is named", remedy="Write .load('burst') or .load('qsctl-runs/burst-1').")
        folder = Path(path)
        if (folder / RUN_FILE).exists():
            parts: Sequence[_Part] = [
                _Part(part.replication, file=part, table=table)
                for part in listed_parts(folder, read_run_info(folder), table)
            ]
        else:
            parts = self._replications(path, table)
        return _Reader([field.name for field in schema.fields], parts)

    def _table(self) -> str:
        table = self.options.get("table", "counters")
        if table not in TABLES:
            raise UsageError(f"there is no table {table!r}", remedy=f"Use {' or '.join(TABLES)}.")
        return table

    def _replications(self, path: str, table: str) -> list[_Part]:
        from qsctl.sim.overrides import apply_overrides
        from qsctl.sim.scenario_xml import find_scenario, read_scenario

        if table != "counters":
            raise UsageError(
                "a scenario gives counters; messages are read from a run folder",
                remedy="Simulate it with `qsctl simulate`, then load its folder.",
            )
        overrides = {
            name.removeprefix(_OVERRIDE): value for name, value in self.options.items() if name.startswith(_OVERRIDE)
        }
        scenario = apply_overrides(read_scenario(find_scenario(path)), overrides)
        seed, replications = self.options.get("seed"), self.options.get("replications")
        try:
            scenario = dataclasses.replace(
                scenario,
                seed=scenario.seed if seed is None else int(seed),
                replications=scenario.replications if replications is None else int(replications),
            )
        except ValueError as error:
            raise UsageError(f"seed and replications are whole numbers: {error}") from None
        return [_Part(number, scenario=scenario) for number in range(scenario.replications)]


class _Reader(DataSourceReader):
    def __init__(self, columns: list[str], parts: Sequence[_Part]) -> None:
        self._columns = columns
        self._parts = parts

    def partitions(self) -> Sequence[InputPartition]:
        return list(self._parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        if partition.scenario is not None:
            from qsctl.sim.run import simulate_counters

            batches: Iterator[pa.RecordBatch] = iter(
                simulate_counters(partition.scenario, partition.replication).to_batches()
            )
        else:
            from qsctl.eventlog.reader import part_batches

            assert partition.file is not None
            partition.file.check()
            batches = part_batches(partition.file.path, partition.replication, partition.table)
        for batch in batches:
            yield self._shaped(batch, partition.replication)

    def _shaped(self, batch: pa.RecordBatch, replication: int) -> pa.RecordBatch:
        """The table's columns in order, names as plain text: Spark takes no dictionaries."""
        import pyarrow as pa

        columns = []
        for name in self._columns:
            if name == "replication":
                columns.append(pa.array([replication] * batch.num_rows, pa.int32()))
                continue
            column = batch.column(name)
            columns.append(column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column)
        return pa.RecordBatch.from_arrays(columns, names=self._columns)
