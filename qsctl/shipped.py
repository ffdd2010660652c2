"""Data files installed with qsctl: schemas, fixtures, completions; a wheel contains them inside the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def _root() -> Path:
    package = Path(__file__).resolve().parent
    inside = package / "_data"
    return inside if inside.is_dir() else package.parent


def shipped(path: str) -> Path:
    """Return the path of a data file or folder, such as `schemas/qsctl_simulation.xsd`, in a wheel or in a checkout."""
    return _root() / path
