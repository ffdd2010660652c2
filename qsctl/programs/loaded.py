"""`qsctl.load`: the tables of a run, a recording or a sweep, for Arrow, pandas, Polars and DuckDB, without Java.

A table is read when it is requested, and its files are verified against their checksums, as the commands do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.errors import NotFound, UsageError
from qsctl.programs._arguments import PathName
from qsctl.programs._optional_library import optional_library

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

    from qsctl.eventlog.location import Location
    from qsctl.eventlog.run_folder import RunInfo

Columns = Sequence[str] | None
"""Names of columns, or None for all."""


class LoadedTable:
    """A table of a folder, which is read when its rows are requested.

    Durations have a duration type in Arrow, pandas and Polars; in DuckDB they are 64-bit integers of nanoseconds, as
    when the files are read directly. Instants are nanoseconds since the beginning of the run.
    """

    def __init__(
        self,
        name: str,
        description: str,
        schema: Callable[[], pyarrow.Schema],
        batches: Callable[[Columns], Iterator[pyarrow.RecordBatch]],
        files: Callable[[], Sequence[str] | None],
    ) -> None:
        self.name: Final = name
        self.description: Final = description
        """A sentence about the table; the metadata of the `schema` fields describe the columns."""
        self._schema, self._batches, self._files = schema, batches, files

    @property
    def schema(self) -> pyarrow.Schema:
        """Return the schema, with descriptions and units in the fields' metadata."""
        return self._schema()

    def batches(self, columns: Columns = None) -> Iterator[pyarrow.RecordBatch]:
        """Return the rows in batches of bounded size, file by file.

        Args:
            columns: names of the columns to return, in this order; None: all.

        Raises:
            UsageError: a column does not exist.
            Damaged: a file of the folder is missing or was changed.
        """
        self._check(columns)
        return self._batches(columns)

    def arrow(self, columns: Columns = None) -> pyarrow.Table:
        """Return the rows as an Arrow table; raises as `batches`."""
        import pyarrow

        self._check(columns)
        schema = self.schema
        wanted = schema if columns is None else pyarrow.schema([schema.field(name) for name in columns])
        return pyarrow.Table.from_batches(self._batches(columns), wanted)

    def pandas(self, columns: Columns = None) -> pandas.DataFrame:
        """Return the rows as a pandas data frame; also raises as `batches`.

        Raises:
            Unavailable: pandas is not installed.
        """
        optional_library("pandas")
        frame: pandas.DataFrame = self.arrow(columns).to_pandas()
        return frame

    def polars(self, columns: Columns = None) -> polars.DataFrame:
        """Return the rows as a Polars data frame; also raises as `batches`.

        Raises:
            Unavailable: polars is not installed.
        """
        frame: polars.DataFrame = optional_library("polars").from_arrow(self.arrow(columns))
        return frame

    def duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the table as a DuckDB relation, which reads the files of a log when it is queried; also raises as
        `batches`.

        Args:
            connection: the connection to use; None: DuckDB's default connection.

        Raises:
            Unavailable: duckdb is not installed.
        """
        library = optional_library("duckdb")
        using = library if connection is None else connection
        files = self._files()
        if files:
            relation = using.read_parquet(list(files), hive_partitioning=True)
            return relation.project("* replace (replication::integer as replication)")
        from qsctl.eventlog.described import with_numbers

        return using.from_arrow(with_numbers(self.arrow()))

    def _check(self, columns: Columns) -> None:
        names = self.schema.names
        unknown = [each for each in columns or () if each not in names]
        if unknown or columns == []:
            raise UsageError(
                f"the table {self.name} has no column {(unknown or [''])[0]!r}", remedy=f"It has {', '.join(names)}."
            )

    def __repr__(self) -> str:
        return f"<table {self.name}: {', '.join(self.schema.names)}>"


class LoadedFolder(Mapping[str, LoadedTable]):
    """The tables of a run, a recording or a sweep, by name.

    >>> import qsctl
    >>> run = qsctl.simulate("burst", settings={"horizon": "20ms"}, level="messages", out="loaded")
    >>> data = qsctl.load("loaded")
    >>> data["messages"].arrow(["outcome"]).num_rows == run.info.done[0].message_rows
    True
    >>> data["clients"].arrow()["client"].to_pylist()[:2]
    ['desks/1', 'desks/2']
    """

    def __init__(self, folder: Location, tables: Mapping[str, LoadedTable], info: RunInfo | None) -> None:
        self.folder: Final = folder
        self.info: Final = info
        """The content of `run.json` when the folder was loaded; None for a sweep."""
        self._tables = tables

    def __getitem__(self, name: str) -> LoadedTable:
        """Return a table by name.

        Raises:
            NotFound: the folder has no such table; the exception is also a KeyError.
        """
        try:
            return self._tables[name]
        except KeyError:
            raise MissingTable(
                f"{self.folder} has no table {name!r}", remedy=f"It has {', '.join(self._tables)}."
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return f"<{self.folder}: {', '.join(self._tables)}>"


class MissingTable(NotFound, KeyError):
    """The folder has no table of the given name; also a KeyError, as `get` and `in` of a mapping require."""


def load(folder: PathName | Location, *, confidence: float | None = None) -> LoadedFolder:
    """Open the folder of a run, a recording or a sweep as tables, without Java and Spark.

    A recording in progress has the rows up to its latest closed part; each table is read from the folder's current
    state. Folders of earlier versions yield the same tables and types.

    Args:
        folder: path or URI of the folder, which may have been moved or copied.
        confidence: confidence level of a sweep's intervals; None: 0.95.

    Raises:
        NotFound: it is neither a run folder nor a sweep folder.
        Damaged: its `run.json` or `sweep.json` cannot be read, or was changed.
        UsageError: the confidence is not between 0 and 1, or is given for a run.

    >>> import qsctl
    >>> swept = qsctl.sweep(
    ...     "burst", grid={"max-depth(D-1)": [100, 5000]}, settings={"horizon": "20ms"}, replications=2, out="swept"
    ... )
    >>> sorted(set(qsctl.load("swept")["measures"].arrow()["profile[*]/queue[D-1]/max-depth"].to_pylist()))
    [100, 5000]
    """
    from qsctl.eventlog.location import RemotePath, location

    place = folder if isinstance(folder, RemotePath) else location(fspath(folder))
    if isinstance(place, Path) and not place.is_dir():
        raise NotFound(f"{place} is not a folder", remedy="Name the folder of a run, a recording or a sweep.")
    if (place / "sweep.json").is_file():
        return _sweep(place, confidence)
    if confidence is not None:
        raise UsageError("a run has no intervals: confidence is of a sweep", remedy="Leave it out.")
    return _run(place)


def _sweep(folder: Location, confidence: float | None) -> LoadedFolder:
    from qsctl.summary.finishing.intervals import DEFAULT_CONFIDENCE
    from qsctl.summary.sweeps.sweep_folder import read_sweep
    from qsctl.summary.sweeps.sweep_tables import SWEEP_TABLES, sweep_tables

    chosen = DEFAULT_CONFIDENCE if confidence is None else confidence
    if not 0.0 < chosen < 1.0:
        raise UsageError(f"a confidence of {chosen} is not inside 0 and 1", remedy="Write it as in 0.95.")
    read_sweep(folder)

    def table(name: str, description: str) -> LoadedTable:
        def read(columns: Columns = None) -> pyarrow.Table:
            whole = sweep_tables(folder, chosen)[name]
            return whole if columns is None else whole.select(list(columns))

        return LoadedTable(
            name, description, lambda: read().schema, lambda columns: iter(read(columns).to_batches()), lambda: None
        )

    return LoadedFolder(folder, {name: table(name, each) for name, each in SWEEP_TABLES.items()}, None)


def _run(folder: Location) -> LoadedFolder:
    from qsctl.eventlog.names import DESCRIPTIONS
    from qsctl.programs._loaded_run import RunTables

    run = RunTables(folder)
    tables = {
        name: LoadedTable(
            name,
            DESCRIPTIONS[name],
            lambda name=name: run.schema(name),  # type: ignore[misc]
            lambda columns, name=name: run.batches(name, columns),  # type: ignore[misc]
            lambda name=name: run.files(name),  # type: ignore[misc]
        )
        for name in run.names
    }
    return LoadedFolder(folder, tables, run.info)
