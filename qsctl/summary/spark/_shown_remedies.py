"""Errors in code that Spark calls: the remedy is added to the traceback that Spark prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from qsctl.errors import QsctlError


@contextmanager
def remedies_shown() -> Iterator[None]:
    """Add the remedy of a `QsctlError` raised in the block to its traceback.

    Raises:
        QsctlError: the error raised in the block.
    """
    try:
        yield
    except QsctlError as error:
        if error.remedy and error.remedy not in getattr(error, "__notes__", ()):
            error.add_note(error.remedy)
        raise
