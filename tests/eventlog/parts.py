"""The parts of a table as they lie in a run folder, whatever `run.json` says of them."""

from __future__ import annotations

from pathlib import Path


def parts_of(folder: Path, table: str) -> list[Path]:
    """Replications in numerical order."""
    return sorted(
        (folder / table).glob("replication=*/part-*.parquet"),
        key=lambda path: (int(path.parent.name.partition("=")[2]), path.name),
    )
