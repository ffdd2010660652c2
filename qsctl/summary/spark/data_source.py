"""`spark.read.format("qsctl")`: the counters of a scenario that is simulated where the rows are needed, as a table.

    spark.read.format("qsctl").load("burst").groupBy("queue").sum("delivered_messages").show()

Spark finds the format by the module `pyspark_qsctl` of an installation (`found_by_name.py`);
`spark.dataSource.register(QsctlDataSource)` registers it where there is none. The path is a scenario file or the name
of a ready scenario; each task simulates one replication. Options: `seed`, `replications`, and `set.PATH` for each
override. A run folder needs no format of ours: it is Parquet for Spark, and
`spark.read.schema(tables.MESSAGES).parquet(folder + "/messages")` prunes columns and pushes filters down, which a data
source in Python cannot; through one, one queue's rows of 1.4 million took 13.4 s instead of 0.8 s.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from qsctl.errors import UsageError
from qsctl.eventlog.run_folder import RUN_FILE
from qsctl.identity import decimal_from_text
from qsctl.summary.measures.tables import COUNTERS

if TYPE_CHECKING:
    import pyarrow as pa

    from qsctl.sim.scenario.scenario import Scenario

FORMAT: Final = "qsctl"
OVERRIDE: Final = "set."
OPTIONS: Final = ("path", "seed", "replications")
_LARGEST: Final = {"seed": 2**63 - 1, "replications": 1_000_000}


@dataclasses.dataclass
class _Replication(InputPartition):
    """One replication of a scenario."""

    number: int
    scenario: Scenario


class QsctlDataSource(DataSource):
    """The format; its rows are those of `tables.COUNTERS`."""

    @classmethod
    def name(cls) -> str:
        """Return the word behind `format`."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the table's declared schema."""
        return COUNTERS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader, planned on the driver: a wrong path or option is reported before a task runs.

        Raises:
            UsageError: no path, an unknown option or one that is not a number, or a run folder.
            NotFound: there is no such scenario.
            InvalidInput: the scenario is not valid.
        """
        from qsctl.sim.scenario.overrides import apply_overrides
        from qsctl.sim.scenario.rules import check_rules
        from qsctl.sim.scenario.xml import find_scenario, read_scenario

        for name in self.options:
            if name not in OPTIONS and not name.startswith(OVERRIDE):
                raise UsageError(
                    f"there is no option {name!r}",
                    remedy=f"Use {', '.join(OPTIONS[1:])}, and {OVERRIDE}PATH for a value of the scenario.",
                )
        path = self.options.get("path", "")
        if not path:
            raise UsageError("no scenario is named", remedy="Write .load('burst') or .load('my-scenario.xml').")
        if (Path(path) / RUN_FILE).exists():
            raise UsageError(
                f"{path} is a run folder, which Spark reads by itself: "
                f"use spark.read.schema(qsctl.summary.measures.tables.MESSAGES).parquet('{path}/messages')"
            )
        overrides = {
            name.removeprefix(OVERRIDE): value for name, value in self.options.items() if name.startswith(OVERRIDE)
        }
        scenario = apply_overrides(read_scenario(find_scenario(path)), overrides)
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
