"""A queue of messages, by priority, and first in, first out within a priority [CLOVERLEAF].

Decides: the order only. A message keeps its `position` while it is in work elsewhere, so that it returns to its former
place if the work has no result.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from qsctl.core.integration._lifecycle import HeldMessage
from qsctl.core.integration.message import MessageId, State


class MessageQueue:
    """One queue.

    Args:
        state: the state of the messages in it.
        process: the process whose memory holds it.
        owner: the thread to which it belongs; of a post-translation queue, the destination.
    """

    __slots__ = ("_held", "_order", "owner", "process", "state")

    def __init__(self, state: State, process: str, owner: str) -> None:
        self.state = state
        self.process = process
        self.owner = owner
        self._order: list[tuple[int, int, MessageId]] = []
        self._held: dict[MessageId, HeldMessage] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[HeldMessage]:
        """Iterate over its messages in order."""
        return iter(sorted(self._held.values(), key=_order_of))

    def put(self, held: HeldMessage) -> None:
        """Insert a message by its priority and position."""
        message = held.message
        assert message.state is self.state, f"{message.mid} in state {message.state.name} in a {self.state.name} queue"
        assert message.mid not in self._held, f"{message.mid} is in the queue already"
        self._held[message.mid] = held
        heapq.heappush(self._order, (-message.priority, message.position, message.mid))

    def first(self) -> HeldMessage | None:
        """Return the next message; None: the queue is empty."""
        order = self._order
        while order:
            found = self._held.get(order[0][2])
            if found is not None and _order_of(found) == order[0]:
                return found
            heapq.heappop(order)
        return None

    def take(self) -> HeldMessage | None:
        """Remove and return the next message; None: the queue is empty."""
        found = self.first()
        if found is not None:
            heapq.heappop(self._order)
            del self._held[found.message.mid]
        return found

    def remove(self, mid: MessageId) -> HeldMessage | None:
        """Remove and return a message at any position; None: it is not in this queue."""
        return self._held.pop(mid, None)

    def highest_priority(self) -> int | None:
        """Return the priority of the next message; None: the queue is empty."""
        found = self.first()
        return None if found is None else found.message.priority

    def clear(self) -> None:
        """Remove all messages."""
        self._held.clear()
        self._order.clear()


def _order_of(held: HeldMessage) -> tuple[int, int, MessageId]:
    message = held.message
    return (-message.priority, message.position, message.mid)
