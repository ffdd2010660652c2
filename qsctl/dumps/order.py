"""The order of a list of messages: by a time, or as the queues will deliver them.

Decides: the order of a queue is that of the engine: by priority, and inside a priority by place [CLOVERLEAF]. A listing
prints no place; its times are used instead, then the ids, which are given in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

from qsctl.core.integration.message import PRIORITY_DEFAULT, State
from qsctl.dumps.groups import thread_of
from qsctl.dumps.model import ListedMessage

_LEAVING: Final = (State.DELIVERED, State.FAILED_DELIVERY, State.RESERVED_FOR_REPLY, State.PRE_WRITE)
"""Out of their queue already: they are before all that wait in it."""


class ListOrder(StrEnum):
    """The sort key of a list."""

    INBOUND = "i"
    """The time at which the inbound message was received."""
    OUTBOUND = "o"
    """The order in which outbound threads will send the messages; those not yet at an outbound thread are last."""
    QUEUE = "queue"
    """Queue by queue, each in the order in which its messages will leave it."""


def in_order(messages: Iterable[ListedMessage], order: ListOrder) -> list[ListedMessage]:
    """Return the messages sorted by an order; the sort is stable."""
    return sorted(messages, key=_KEYS[order])


def _inbound(message: ListedMessage) -> tuple[object, ...]:
    created = message.created
    return created is None, 0 if created is None else created.at_ns


def _outbound(message: ListedMessage) -> tuple[object, ...]:
    return message.outbound is None, *_place(message)


def _queue(message: ListedMessage) -> tuple[object, ...]:
    stage = State.OUTBOUND_POST_TPS if message.state in _LEAVING else message.state
    return -stage, thread_of(message), message.queue if stage == State.IN_TRANSLATION else "", *_place(message)


def _place(message: ListedMessage) -> tuple[object, ...]:
    """Return the sort key of a message inside its queue."""
    priority = PRIORITY_DEFAULT if message.priority is None else message.priority
    moment = message.outbound or message.entered or message.created
    at_ns = 0 if moment is None else moment.at_ns
    place = (0, message.place, 0) if message.place is not None else (1, at_ns, message.mid)
    return message.state not in _LEAVING, -priority, place


_KEYS: Final[dict[ListOrder, Callable[[ListedMessage], tuple[object, ...]]]] = {
    ListOrder.INBOUND: _inbound,
    ListOrder.OUTBOUND: _outbound,
    ListOrder.QUEUE: _queue,
}
