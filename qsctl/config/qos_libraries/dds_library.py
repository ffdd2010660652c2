"""The features of the installed DDS library, found without starting it.

Decides: how a build without TCP is recognized, so that `validate`, `serve` and `doctor` agree before a socket is
opened. The wheels of Cyclone DDS 11 are built without TCP and without DDS Security; a library that is built with
TCP has the elements of its `<TCP>` configuration in the binary.
"""

from __future__ import annotations

import mmap
import runpy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_TCP_ELEMENT: Final = b"AlwaysUsePeeraddrForUnicast"
"""The name of an element inside `<TCP>`: a build that cannot read it has no TCP transport."""


@cache
def library_path() -> Path | None:
    """Return the shared library that the Python package `cyclonedds` loads; None where there is none."""
    found = find_spec("cyclonedds")
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        # The package names the library there; importing it would load the library.
        place = Path(folder) / "__library__.py"
        if place.is_file():
            path = Path(str(runpy.run_path(str(place)).get("library_path", "")))
            return path if path.is_file() else None
    return None


@cache
def has_tcp() -> bool:
    """Return whether the installed DDS library was built with its TCP transport."""
    path = library_path()
    return path is not None and built_with_tcp(path)


def built_with_tcp(library: Path) -> bool:
    """Return whether a Cyclone DDS library was built with its TCP transport."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(_TCP_ELEMENT) >= 0
