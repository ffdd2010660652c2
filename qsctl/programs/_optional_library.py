"""Imports of optional libraries when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from qsctl.errors import Unavailable


def optional_library(name: str) -> Any:
    """Import and return a library.

    Raises:
        Unavailable: the library is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise Unavailable(f"{name} is not installed", remedy=f"Install it: pip install {name}.") from None
