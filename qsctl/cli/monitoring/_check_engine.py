"""The measures of `qsctl check engine`: queues, ages, errors and rates of an integration engine.

Decides the names of measures, which queues a filter selects, and that an empty selection has the value 0, since empty
queues are not listed. A thread without any message is reported, since its name may be wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.engine.looks import LookOptions, WatchedEngine
from qsctl.cli.monitoring._check_values import Checked
from qsctl.cli.monitoring.show_engine import MINUTE_S, empty_at
from qsctl.errors import InvalidInput, UsageError

if TYPE_CHECKING:
    from qsctl.dumps.choice import StateRange
    from qsctl.dumps.figures import QueueTrend

ANY: Final = "*"


@dataclass(frozen=True)
class EngineFilter:
    """A selection of queues or errors by thread and state number."""

    thread: str = ANY
    states: tuple[StateRange, ...] = ()

    def fits_thread(self, thread: str) -> bool:
        """Return whether a thread is selected."""
        from qsctl.profiles.listings.wildcard import matches

        return matches(self.thread, thread)

    def fits_state(self, state: int) -> bool:
        """Return whether a state number is selected."""
        return not self.states or any(first <= state <= last for first, last in self.states)


def _of_queues(watched: WatchedEngine, chosen: EngineFilter) -> list[QueueTrend]:
    found = watched.history.trends()
    return [each for each in found if chosen.fits_thread(each.key.thread) and chosen.fits_state(each.key.state)]


def _queue_messages(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    now = watched.history.now
    found = []
    for each in _of_queues(watched, chosen):
        empty_ns = each.empty_after_ns
        more = "" if empty_ns is None else f", empty at {empty_at(now, empty_ns)} at this rate"
        found.append(Checked(_label(each), each.messages, more=more))
    return found


def _oldest_age(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    return [
        Checked(_label(each), each.oldest_age_ns / 1e9)
        for each in _of_queues(watched, chosen)
        if each.oldest_age_ns is not None
    ]


def _growth(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    return _rate(watched, chosen, lambda each: each.growth_per_s)


def _arrived(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    return _rate(watched, chosen, lambda each: _per_s(each.arrived, each))


def _left(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    return _rate(watched, chosen, lambda each: _per_s(each.left, each))


def _per_s(count: int | None, each: QueueTrend) -> float | None:
    return None if count is None or each.span_ns <= 0 else count * 1e9 / each.span_ns


def _rate(watched: WatchedEngine, chosen: EngineFilter, rate_of: Callable[[QueueTrend], float | None]) -> list[Checked]:
    if watched.history.before is None:
        raise UsageError(
            "a rate needs two listings",
            remedy="Name several, or the folder that a timer writes them to; of a database, use qsctl top --engine.",
        )
    rates = [(each, rate_of(each)) for each in _of_queues(watched, chosen)]
    return [Checked(_label(each), rate * MINUTE_S) for each, rate in rates if rate is not None]


def _recovery_messages(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    return [Checked("recovery database", sum(each.messages for each in _of_queues(watched, chosen)))]


def _error_messages(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    errors = watched.history.now.errors_of
    count = sum(
        count for (thread, number), count in errors.items() if chosen.fits_state(number) and chosen.fits_thread(thread)
    )
    return [Checked("error database" if chosen.thread == ANY else f"errors of {chosen.thread}", count)]


def _errors_by_number(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    from qsctl.dumps.states import meaning_of

    found: dict[int, int] = {}
    for (thread, number), count in watched.history.now.errors_of.items():
        if chosen.fits_state(number) and chosen.fits_thread(thread):
            found[number] = found.get(number, 0) + count
    return [Checked(f"{number} {meaning_of(number).name}", count) for number, count in found.items()]


def _last_receive(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    ages = watched.history.last_receive_ns
    found = [Checked(thread, age_ns / 1e9) for thread, age_ns in ages.items() if chosen.fits_thread(thread)]
    if not found:
        which = "any thread" if chosen.thread == ANY else f"thread {chosen.thread}"
        raise UsageError(
            f"no message that came in by {which} is known",
            remedy="A database has only what is on its way: read more listings (--last), those of errors too.",
        )
    return found


def _taken_age(watched: WatchedEngine, chosen: EngineFilter) -> list[Checked]:
    del chosen
    if watched.is_database:
        raise UsageError(
            "a database has no listing whose age can be checked", remedy="Name listings, or the folder that has them."
        )
    taken = watched.history.now.taken
    return [Checked("newest listing", max(0.0, time.time() - taken.utc_ns / 1e9))]


def _label(each: QueueTrend) -> str:
    return f"{each.key.thread} {each.key.state} {each.key.name}"


ENGINE_MEASURES: Final[dict[str, Callable[[WatchedEngine, EngineFilter], list[Checked]]]] = {
    "queue_messages": _queue_messages,
    "oldest_age_s": _oldest_age,
    "recovery_messages": _recovery_messages,
    "error_messages": _error_messages,
    "errors_by_number": _errors_by_number,
    "last_receive_s": _last_receive,
    "growth_per_min": _growth,
    "arrived_per_min": _arrived,
    "left_per_min": _left,
    "listing_age_s": _taken_age,
}
_LAST_RECEIVE: Final = "last_receive_s"
_OF_QUEUES: Final = frozenset({"queue_messages", "oldest_age_s", "growth_per_min", "arrived_per_min", "left_per_min"})

EngineThreadOption = Annotated[
    str, typer.Option("--thread", metavar="THREAD", help="Thread; ? matches one character, * any text.")
]
EngineStateOption = Annotated[
    str | None,
    typer.Option(
        "--state",
        "-s",
        metavar="NUMBERS",
        help="Numbers of queues, or of errors, as in 11, 1-6 or 303,405; `qsctl engine states` lists them.",
        show_default="any",
    ),
]


def engine_values(
    measure: str, sources: Iterable[Path], thread: str, states: str | None, options: LookOptions
) -> tuple[list[Checked], WatchedEngine]:
    """Return the values of a measure, and the figures that they were computed from.

    Raises:
        UsageError: there is no such measure, or the source cannot have it.
        QsctlError: none of the sources can be read.
    """
    from qsctl.cli.monitoring._check_values import known_measure
    from qsctl.dumps.choice import parse_states

    known_measure(measure, ENGINE_MEASURES)
    chosen = EngineFilter(thread, () if states is None else parse_states(states))
    watched = options.look(list(sources), needs_history=measure == _LAST_RECEIVE)
    found = ENGINE_MEASURES[measure](watched, chosen)
    if not found and (measure in _OF_QUEUES or measure == "errors_by_number"):
        unseen = thread != ANY and not any(map(chosen.fits_thread, options.look(list(sources)).history.threads))
        more = ", and no message of it was seen: is its name right?" if unseen else ""
        what = f"thread {thread}" if thread != ANY else "errors" if measure == "errors_by_number" else "queues"
        found = [Checked(what if states is None else f"{what}, state {states}", 0, more=more)]
    return found, watched


def refuse_older(watched: WatchedEngine, max_age: str) -> None:
    """Refuse figures that are older than a duration, which means that the timer that captures them has stopped.

    Raises:
        InvalidInput: the figures are older.
        UsageError: the source is a database, which has no such age.
    """
    from qsctl.instant import SECOND_NS, format_duration, parse_duration

    limit_ns = parse_duration(max_age)
    (age,) = _taken_age(watched, EngineFilter())
    if age.value * SECOND_NS > limit_ns:
        old = format_duration(round(age.value) * SECOND_NS)
        raise InvalidInput(
            f"the newest listing is {old} old, allowed is {max_age}", remedy="Check the timer that writes them."
        )
