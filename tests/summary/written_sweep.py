"""A part of a sweep's folder, as a worker and its driver write it."""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.eventlog.location import Location
from qsctl.summary.sweeps.sweep_folder import (
    PointResult,
    encode_part,
    list_parts,
    store_part,
    sweep_identity,
    written,
)


def write_results(folder: Location, results: Sequence[PointResult]) -> None:
    """Add finished replications as one part, and list it."""
    content = encode_part(results, sweep_identity(folder))
    with written(folder):
        store_part(folder, content)
    list_parts(folder)
