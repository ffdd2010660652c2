"""The table of directions: whether a measure increases or decreases with a setting, with the reason, or is unknown.

A row names a setting, the measures, whether they are of the queue that is set or of another, and how they change as the
setting grows with everything else the same. The search of `qsctl size` uses the direction. Without a row the direction
is unknown: the search then tries settings over the whole range. A row is our interpretation of the rules that its
reason names; `qsctl size` reports results that contradict it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.sim.sizing.targets import Target, VariedSetting


class Change(StrEnum):
    """The direction in which a measure changes as a setting grows; one that does not change counts as either."""

    RISES = "rises"
    FALLS = "falls"
    UNKNOWN = "unknown"


class Direction(StrEnum):
    """The effect of a larger setting on a target."""

    BETTER = "better"
    WORSE = "worse"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a larger value of a setting on a target, with the reason."""

    target: Target
    setting: VariedSetting
    direction: Direction
    reason: str


@dataclass(frozen=True, slots=True)
class _Row:
    setting: str
    own: bool
    """Whether the measure is of the queue that is set; else it is of another queue."""
    measures: frozenset[str]
    change: Change
    reason: str


_LOSS: Final = frozenset({"discards", "discarded_messages", "lost", "lost_messages", "loss_ratio"})
_DELIVERY: Final = frozenset(
    {"delivered", "delivered_messages", "delivered_bytes", "throughput", "delivered_per_second"}
)
_FIGURES: Final = ("mean", "p50", "p90", "p99", "p999", "max")
_WAIT: Final = frozenset({*(f"time_in_queue_{what}" for what in _FIGURES), *(f"wait_{what}_ns" for what in _FIGURES)})
_DONE: Final = frozenset({*(f"time_to_done_{what}" for what in _FIGURES), *(f"done_{what}_ns" for what in _FIGURES)})
_CONTENT: Final = frozenset({"high_water_mark", "high_water_mark_work_units"})

_DEPTH: Final = "a deeper queue discards later: it keeps and delivers more"
_LONGER: Final = "a deeper queue holds more messages before each one, so that what is delivered has waited longer"
_BURST: Final = "up to the minimum burst a message enters whatever the depth, so that a larger one acts as more depth"
_ADMITTED: Final = "what the queue admits does not wait at the endpoint"
_OTHERS: Final = "what a queue keeps instead of discarding is sent over the window and the port that all queues share"
_CONSUMERS: Final = "more consumers serve the same samples side by side"
_COUNT: Final = "a queue that may hold more accepts samples earlier"
_LATER: Final = "a sample that was accepted earlier waits in the queue instead of at its producer"
_THRESHOLD: Final = "a consumer that accepts more samples ahead is sent them earlier; the time in the queue ends there"
_AHEAD: Final = (
    "what a consumer accepts ahead waits for it while another one may be idle, or is at hand when it is done"
)
_RETRIES: Final = "a sample that may be delivered more often is dead-lettered later, or not at all"
_REDELIVERIES: Final = "a message that may be redelivered more often is dead later, or not at all"
_LIVES: Final = "a message that may wait longer is over later, or delivered before"

_ROWS: Final[Sequence[_Row]] = (
    *(
        row
        for setting, keeps, waits in (("max-depth", _DEPTH, _LONGER), ("min-msg-burst", _BURST, _BURST))
        for row in (
            _Row(setting, True, _LOSS, Change.FALLS, keeps),
            _Row(setting, True, _DELIVERY, Change.RISES, keeps),
            _Row(setting, True, _WAIT | _DONE, Change.RISES, waits),
            _Row(setting, True, _CONTENT, Change.RISES, keeps),
            _Row(setting, True, frozenset({"waiting_messages"}), Change.FALLS, _ADMITTED),
            _Row(setting, False, _LOSS | _WAIT | _DONE | _CONTENT, Change.RISES, _OTHERS),
            _Row(setting, False, _DELIVERY, Change.FALLS, _OTHERS),
        )
    ),
    _Row("consumers", True, _LOSS | _WAIT | _DONE | _CONTENT, Change.FALLS, _CONSUMERS),
    _Row("consumers", True, _DELIVERY, Change.RISES, _CONSUMERS),
    _Row("max-count", True, _LOSS, Change.FALLS, _COUNT),
    _Row("max-count", True, _DELIVERY, Change.RISES, _COUNT),
    _Row("max-count", True, _WAIT | _DONE | _CONTENT, Change.RISES, _LATER),
    _Row("unacked-threshold", True, _WAIT, Change.FALLS, _THRESHOLD),
    _Row("unacked-threshold", True, _DONE, Change.UNKNOWN, _AHEAD),
    _Row("max-delivery-retries", True, frozenset({"dead", "dead_messages"}), Change.FALLS, _RETRIES),
    _Row("max-delivery-retries", True, frozenset({"redelivered", "redelivered_messages"}), Change.RISES, _RETRIES),
    _Row("max-redelivery", True, frozenset({"dead", "dead_messages"}), Change.FALLS, _REDELIVERIES),
    _Row("max-redelivery", True, frozenset({"redelivered", "redelivered_messages"}), Change.RISES, _REDELIVERIES),
    _Row("max-ttl", True, frozenset({"expired", "expired_messages"}), Change.FALLS, _LIVES),
)
_GUARANTEED: Final = "G-1"
_PLACE: Final = re.compile(r"(?:.*/)?queue\[(?P<queue>[^\]*]+)\]/(?:.*/)?(?P<setting>[a-z-]+)")
_DURABLE: Final = re.compile(r"durable-queue\[[^\]]+\]/(?P<setting>[a-z-]+)")
"""Whose messages are G-1's of its clients, and of the queue."""


def effect_of(setting: VariedSetting, target: Target) -> Effect:
    """Return the effect of a larger value of a setting on a target, by the table."""
    change, reason = change_of(setting.path, target.measure, target.queue)
    if change is Change.UNKNOWN:
        return Effect(target, setting, Direction.UNKNOWN, reason)
    better = (change is Change.FALLS) == target.at_most
    return Effect(target, setting, Direction.BETTER if better else Direction.WORSE, reason)


def change_of(path: str, measure: str, queue: str) -> tuple[Change, str]:
    """Return how a measure of a queue changes as the setting at a path grows, and the reason."""
    place = _PLACE.fullmatch(path)
    if place is None and (durable := _DURABLE.fullmatch(path)) is not None:
        return _change_by_row(durable["setting"], measure, _GUARANTEED, queue)
    if place is None:
        return Change.UNKNOWN, f"no direction is known of {path}"
    setting, of = place["setting"], place["queue"]
    if of == _GUARANTEED and queue == of and measure in _WAIT | _DONE:
        # What G-1 does not admit waits at the endpoint, and both are the wait of the message.
        return (
            Change.UNKNOWN,
            "what G-1 does not admit waits at the endpoint instead, so that neither of its times has a direction",
        )
    return _change_by_row(setting, measure, of, queue)


def _change_by_row(setting: str, measure: str, of: str, queue: str) -> tuple[Change, str]:
    for row in _ROWS:
        if row.setting == setting and row.own == (of == queue) and measure in row.measures:
            return row.change, row.reason
    whose = "its queue" if of == queue else f"queue {of}"
    return Change.UNKNOWN, f"no direction is known of {measure}({queue}) in {setting} of {whose}"
