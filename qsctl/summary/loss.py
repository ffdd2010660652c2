"""What share of the messages was lost: the one definition, for tables and for intervals."""

from __future__ import annotations

from typing import Final

_LOST: Final = "(discarded_messages + expired_messages + dead_messages)"
_SETTLED: Final = f"({_LOST} + delivered_messages + elided_messages)"

LOSS_RATIO: Final = f"if({_SETTLED} > 0, double({_LOST}) / {_SETTLED}, 0d)"
"""The lost among the messages whose fate is settled; an elided one is settled and not lost."""
