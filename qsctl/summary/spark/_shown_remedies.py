"""Errors of code that Spark calls: Spark shows a traceback, where the remedy of an error would be missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from qsctl.errors import QsctlError


@contextmanager
def remedies_shown() -> Iterator[None]:
    """Add the remedy to what a traceback shows of an error of ours.

    Raises:
        QsctlError: the one that was raised within.
    """
    try:
        yield
    except QsctlError as error:
        if error.remedy and error.remedy not in getattr(error, "__notes__", ()):
            error.add_note(error.remedy)
        raise
