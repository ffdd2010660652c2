"""The four groups of commands in `qsctl --help`, in its order."""

from __future__ import annotations

from typing import Final

SIMULATION_PANEL: Final = "See what happens before you change a queue"
SERVICE_PANEL: Final = "Run and administer a queuing service"
SAMPLES_PANEL: Final = "Produce, consume and watch"
MORE_PANEL: Final = "The integration engine, and help"
