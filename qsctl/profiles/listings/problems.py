"""The error for a listing of which nothing can be read.

A single value that cannot be read is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.declared.problems import InvalidFile, Problem


def unread(problems: Sequence[Problem]) -> InvalidFile:
    """Return the error for a text that is not a listing, or that cannot be understood at all."""
    return InvalidFile(problems, "the listing", "Capture the command's whole output, as it is.")
