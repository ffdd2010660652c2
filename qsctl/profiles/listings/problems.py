"""The error of a listing of which nothing can be read.

A value that cannot be read loses only that value: it is a finding, a line among the notes.
"""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.declared.problems import InvalidFile, Problem


def unread(problems: Sequence[Problem]) -> InvalidFile:
    """Return the error of a text that is not a listing, or of one that cannot be understood at all."""
    return InvalidFile(problems, "the listing", "Capture the command's whole output, as it is.")
