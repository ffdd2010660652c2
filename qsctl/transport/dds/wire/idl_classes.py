"""Classes of the DDS library for the structs of the IDL files that come with qsctl.

Decides: when a file is read and a class is made: once in a process, when the first endpoint or sample needs it. Reading
a file and making its classes takes some 15 ms, importing the reader 30 ms; only commands that need a class spend them.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, Final

from qsctl.shipped import shipped

if TYPE_CHECKING:
    from qsctl.config.sample_types.types import TypeLibrary

_LOCK: Final = threading.Lock()
"""Held while a class is looked up: a type has one class in a process, whichever thread needs it first."""


def idl_class(path: str, name: str) -> type[Any]:
    """Return the class of a struct, by the file (as in `schemas/qsctl_queue.idl`) and the struct's qualified name.

    Its constructor takes all members, in order or by their names.
    """
    with _LOCK:
        return _library(path).class_of(name)


@functools.cache
def _library(path: str) -> TypeLibrary:
    from qsctl.config.sample_types.type_file import read_type_file

    return read_type_file(shipped(path))
