"""Libraries that a program may have beside qsctl: imported when they are asked for."""

from __future__ import annotations

import importlib
from typing import Any

from qsctl.errors import Unavailable


def optional_library(name: str) -> Any:
    """Return the library.

    Raises:
        Unavailable: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise Unavailable(f"{name} is not installed", remedy=f"Install it: pip install {name}.") from None
