"""P15: forged frames never make a replica store an epoch that no election reached."""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.sim.world.faults.stranger import EPOCH_NEVER_REACHED
from qsctl.sim.world.invariants.base import Invariant
from qsctl.sim.world.services.stored import Operation, SetHardState


class StrangersChangeNothing(Invariant):
    """P15: frames of processes outside of the cluster change no replica's epoch.

    A role that such a frame changed breaks another rule: no master, or two.
    """

    name = "P15"
    rule = "a stranger raises no epoch"

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Test the epochs that replicas store."""
        for operation in operations:
            if isinstance(operation, SetHardState):
                self.checked_count += 1
                if operation.state.epoch >= EPOCH_NEVER_REACHED:
                    self.violate(f"{operation.stream}: {service} is in epoch {operation.state.epoch}")
