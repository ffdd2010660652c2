"""Checks of options for the commands that simulate many times."""

from __future__ import annotations

from qsctl.errors import UsageError


def checked_confidence(confidence: float) -> float:
    """Return the confidence level, when it is one.

    Raises:
        UsageError: it is not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"--confidence {confidence} is not between 0 and 1", remedy="Write it as in 0.95.")
    return confidence
