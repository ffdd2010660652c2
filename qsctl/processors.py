"""The number of processors that this process may use."""

from __future__ import annotations

import os


def processors() -> int:
    """Return the number of processors that this process may use: its affinity, else those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
