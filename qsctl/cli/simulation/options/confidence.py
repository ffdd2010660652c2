"""The check of `--confidence`, for commands that simulate many replications."""

from __future__ import annotations

from qsctl.errors import UsageError


def checked_confidence(confidence: float) -> float:
    """Return the confidence level, after checking that it is between 0 and 1.

    Raises:
        UsageError: it is not.
    """
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"--confidence {confidence} is not between 0 and 1", remedy="Write it as in 0.95.")
    return confidence
