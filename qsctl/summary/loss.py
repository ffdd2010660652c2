"""What share of the messages was lost: the one definition, for tables and for intervals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from qsctl.eventlog.outcomes import LOSS_COLUMNS
from qsctl.summary.groups import whole


def loss_ratio(counters: pa.Table) -> pa.Array:
    """The lost among the messages whose fate is settled; an elided one is settled and not lost. 0 where none is."""
    lost = sum(whole(counters, name) for name in LOSS_COLUMNS)
    settled = lost + whole(counters, "delivered_messages") + whole(counters, "elided_messages")
    return pa.array(lost / np.maximum(settled, 1))
