"""The resource limits of a service and of one peer of it: `<service_limits>`, an extension [QS has none].

Decides: the limits and their defaults, which `serve`, an embedded service, CREATE and `validate` share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qsctl.core.queue.settings import UNLIMITED

MEMORY_PERCENT: Final = 60
QUEUES_MAX: Final = 10_000
CONSUMERS_PER_PEER_MAX: Final = 4_096
ENDPOINTS_PER_PEER_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """`<service_limits>`: bounds of a whole service, and of one peer, which is a DDS participant.

    Memory is that of each process of the service: at the smaller of the two bounds producers are held back.
    """

    max_memory_percent: int = MEMORY_PERCENT
    """Of what the machine has, or the container may use."""
    max_memory_bytes: int = UNLIMITED
    max_queues: int = QUEUES_MAX
    max_consumers_per_peer: int = CONSUMERS_PER_PEER_MAX
    max_endpoints_per_peer: int = ENDPOINTS_PER_PEER_MAX

    def too_many_queues(self, count: int) -> str:
        """Return why a service cannot host this number of queues; empty: it can."""
        if self.max_queues == UNLIMITED or count <= self.max_queues:
            return ""
        return f"{count} queues are more than <service_limits><max_queues> allows, which is {self.max_queues}"


TOO_MANY_QUEUES_REMEDY: Final = "Delete queues that are not used, or raise <max_queues> in <service_limits>."
