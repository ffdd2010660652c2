"""What the plain Solace model keeps of a message and of a connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Any

from qsctl.instant import INFINITE_NS
from qsctl.sim.scenario.scenario import Endpoint, GuaranteedOverflow
from tests.sim.oracle_receiver import Receiver
from tests.sim.oracle_tcp import PlainTcp

NEVER = -1


@dataclass(eq=False)
class Message:
    born: int
    client: int
    size: int
    topic: int
    queue: int
    moved: int = NEVER
    sent: int = NEVER
    acked: int = NEVER
    attempts: int = 1
    indication: bool = False
    arrived: int = NEVER
    """When the client has it whole, over a connection that loses segments."""
    done: int = NEVER
    """When the application has done it, as the broker may learn of it."""
    due: int = NEVER
    traffic: Any = None
    spooled: bool = False
    """It came to a durable queue."""
    expires: int = INFINITE_NS
    spooled_as: int = 0
    """The place among messages that expire at one instant."""
    deliveries: int = 0
    rejected: bool = False
    """Begun since it came to its queue."""

    @property
    def work(self) -> int:
        return max(1, ceil(self.size / 2048))


@dataclass(eq=False)
class Connection:
    number: int
    group: Any
    profile: Any
    endpoint: Endpoint | None
    tracked: bool
    receiver: Receiver
    net: PlainTcp | None = None
    """Of a connection that loses segments."""
    present: bool = True
    epoch: int = 0
    queues: list[list[Message]] = field(default_factory=lambda: [[] for _ in range(5)])
    pending: list[bool] = field(default_factory=lambda: [False] * 5)
    tcp: list[Message] = field(default_factory=list)
    sent: int = 0
    window: int = 0
    link_free: int = 0
    turn: int = 0
    credit: int = 0
    waiting: list[Message] = field(default_factory=list)
    returned: list[Message] = field(default_factory=list)
    unread: list[Message] = field(default_factory=list)
    """Acknowledged by TCP; no reader has begun them, as far as the broker knows."""
    reading: list[Message] = field(default_factory=list)
    batch: list[Message] = field(default_factory=list)
    """Of those read: what the client's library has not acknowledged."""
    batches: int = 0
    outstanding: int = 0
    unacknowledged: int = 0
    """Delivered, and not acknowledged by the application."""
    held: int = 0
    held_bytes: int = 0
    wakes: set[int] = field(default_factory=set)
    topics: dict[int, int | None] = field(default_factory=dict)
    one_shot: bool = False
    blocked_from: int | None = None
    blocked: list[tuple[int, int]] = field(default_factory=list)
    retransmitted_by_second: list[int] = field(default_factory=list)
    buffered: int = 0
    durable: Any = None
    """The durable queue that its flow is bound to."""
    fails: int = 0
    refuses: int = 0
    fail_key: int = 0
    answered: int = 0

    @property
    def holds(self) -> bool:
        """G-1 holds what the client has not acknowledged."""
        return self.profile.guaranteed_overflow is GuaranteedOverflow.HOLD

    def held_by(self, queue: int) -> list[Message]:
        """What a queue holds: those waiting in it and, of G-1, those sent and not acknowledged."""
        sent = [message for message in [*self.tcp, *self.unread] if message.queue == 0] + self.batch
        return [*self.queues[queue], *(sent if queue == 0 and self.holds else [])]

    @property
    def window_messages(self) -> int:
        return INFINITE_NS if self.endpoint is None else self.endpoint.flows * self.endpoint.window_messages

    @property
    def limit_messages(self) -> int:
        limit = -1 if self.endpoint is None else self.endpoint.unacknowledged_limit_messages
        return INFINITE_NS if self.endpoint is None or limit < 0 else self.endpoint.flows * limit

    @property
    def library_threshold(self) -> int:
        """Messages read at which the client's library acknowledges them."""
        if self.endpoint is None:
            return 1
        return max(1, ceil(self.window_messages * self.endpoint.library_threshold_percent / 100))

    @property
    def occupied(self) -> int:
        """Bytes that the receive buffer has or will have; the library takes guaranteed messages off as they come."""
        unread = sum(message.size for message in self.unread if not (message.queue == 0 and self.tracked))
        if self.net is not None:
            return unread + sum(message.size for message in self.tcp) - sum(left for _, left in self.net.stream)
        return unread + sum(message.size for message in self.tcp[: self.sent])

    @property
    def retransmissions(self) -> int:
        return 0 if self.net is None else self.net.retransmissions

    @property
    def in_flight(self) -> int:
        return sum(message.size for message in self.tcp[: self.sent])


def is_full(limits: Any, holder: Any, message: Message) -> bool:
    """Return whether an endpoint or a durable queue with these limits has no room for one more message."""
    too_many = 0 <= limits.max_messages <= holder.held
    return too_many or 0 <= limits.max_spool_usage_bytes < holder.held_bytes + message.size
