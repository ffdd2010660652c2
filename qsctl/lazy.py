"""Lazy imports of a package's public names, since heavy libraries take longer to import than a program's start may."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def exports(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` function of a package whose names are imported at their first use.

    Args:
        package: the package's `__name__`.
        homes: the public names, each with the module of the package that defines it.
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
