"""The measures of `qsctl check`: figures of queues and clients, from runs, listings and services.

Decides the names of measures, which are the names of fields in listings and statuses, and two ratios of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.cli.monitoring.listing_source import load_run, no_match
from qsctl.errors import InvalidInput, UsageError

if TYPE_CHECKING:
    from qsctl.cli.monitoring.listing_source import ListingSource
    from qsctl.profiles.listings.model import ListedQueueStatistics, Listings

COUNTS: Final = (
    "length_messages", "length_work_units", "high_water_mark_work_units", "discarded_messages", "delivered_messages",
)  # fmt: skip
RATIOS: Final = {"depth_percent": "length_work_units", "high_water_mark_percent": "high_water_mark_work_units"}
"""Measures in percent of `max_depth_work_units`, with the fields that they are computed from."""
QUEUE_MEASURES: Final = (*COUNTS, *RATIOS)
BLOCKED: Final = "blocked_percent"
CLIENT_MEASURES: Final = (*QUEUE_MEASURES, BLOCKED)
SERVICE_MEASURES: Final = ("answer_ms", "message_count", "dead_letter_count", "waiting_count", "undeliverable_count")
OLDEST_AGE: Final = "oldest_age_s"
DEAD_LETTER_MEASURES: Final = ("current_message_count", OLDEST_AGE)
_COUNTERS: Final = frozenset({"discarded_messages", "delivered_messages"})


@dataclass(frozen=True, slots=True)
class Checked:
    """One value with its label and its maximum, if it has one."""

    label: str
    value: float
    high: float | None = None
    more: str = ""
    """Further details for the status line."""


def unit_of(measure: str) -> str:
    """Return the unit of a measure in performance data: `ms`, `s`, `%`, `c` (a counter), or empty."""
    if measure in SERVICE_MEASURES:
        return "ms" if measure.endswith("_ms") else ""
    if measure.endswith("_s"):
        return "s"
    if measure.endswith("_percent"):
        return "%"
    return "c" if measure in _COUNTERS or (measure.endswith("_count") and not measure.startswith("current_")) else ""


def known_measure(measure: str, names: Iterable[str]) -> str:
    """Return the measure's name, after checking that it is known.

    Raises:
        UsageError: it is not.
    """
    known = list(names)
    if measure not in known:
        raise UsageError(f"there is no measure {measure!r}", remedy=f"Use one of {', '.join(known)}.")
    return measure


def of_clients(client: str, queue: str, measure: str, source: ListingSource, replication: int) -> list[Checked]:
    """Return the values of clients, or of their queues, whose names match the patterns.

    Raises:
        NotFound: no client or queue matches, or there is no such run or file.
        InvalidInput: the source does not contain the figure.
    """
    from qsctl.profiles.listings.wildcard import matches

    listings, where = _listings(source, replication, measure)
    if measure == BLOCKED:
        blocked = {one.name: one.blocked_percent for one in listings.slow_subscribers}
        blocked |= {one.name: one.blocked_percent for one in listings.connections}
        found = {name: percent for name, percent in blocked.items() if matches(client, name)}
        if not found:
            raise no_match(list(blocked), client, "client with a blocked percentage", where)
        unknown = next((name for name, percent in found.items() if percent is None), None)
        if unknown is not None:
            raise InvalidInput(
                f"{where} does not show how long {unknown} was blocked", remedy="Simulate with --level events."
            )
        return [Checked(name, float(percent or 0.0), 100.0) for name, percent in found.items()]
    rows = list(_rows(listings))
    named = [(name, figures) for name, figures in rows if matches(client, name)]
    if not named:
        raise no_match([name for name, _ in rows], client, "client", where)
    chosen = [(name, figures) for name, figures in named if matches(queue, figures.queue)]
    if not chosen:
        raise no_match([figures.queue for _, figures in named], queue, f"queue of {client}", where)
    return [_checked(f"{name} {figures.queue}", figures, measure) for name, figures in chosen]


def _listings(source: ListingSource, replication: int, measure: str) -> tuple[Listings, str]:
    if source.is_captured:
        found = source.listings(lambda broker: broker.connections() if measure == BLOCKED else broker.client_queues())
        return found, source.where
    from qsctl.profiles.listings.model import Listings
    from qsctl.sim.listings import broker_listings

    state = load_run(source.run, replication)
    where = str(state.run.folder)
    if measure == BLOCKED:
        return Listings(connections=tuple(broker_listings.connections(state))), where
    clients, neighbors = tuple(broker_listings.client_queues(state)), tuple(broker_listings.neighbor_queues(state))
    return Listings(clients=clients, neighbors=neighbors), where


def _rows(listings: Listings) -> Iterator[tuple[str, ListedQueueStatistics]]:
    for client in listings.clients:
        for queue in client.queues:
            yield client.name, queue
    for neighbor in listings.neighbors:
        for connection in neighbor.connections:
            for queue in connection.queues:
                yield f"{neighbor.name} {connection.name}", queue


def _checked(label: str, figures: ListedQueueStatistics, measure: str) -> Checked:
    most = figures.max_depth_work_units
    value = getattr(figures, RATIOS.get(measure, measure))
    if value is None or (measure in RATIOS and most is None):
        raise InvalidInput(
            f"{measure} of {label} could not be read", remedy="`qsctl show client --listing FILE` names what it found."
        )
    if measure in RATIOS:
        return Checked(label, 100.0 * value / most if most else 0.0)
    return Checked(label, value, most if measure.endswith("_work_units") else None)


def of_recorded_queues(run: Path, queue: str, measure: str, replication: int) -> list[Checked]:
    """Return the values of shared reader queues of a run, by their names.

    Raises:
        NotFound: there is no such run, replication or queue.
        UsageError: such queues do not have the measure.
    """
    from qsctl.eventlog.reader import open_run
    from qsctl.profiles.listings.wildcard import matches

    opened = open_run(run)
    rows = opened.counters().drop_columns(["histogram_bucket", "histogram_count"]).to_pylist()
    rows = [row for row in rows if row["replication"] == replication]
    found = [row for row in rows if matches(queue, row["queue"])]
    if not found:
        raise no_match([row["queue"] for row in rows], queue, "queue", f"{run}, replication {replication},")
    known_measure(measure, COUNTS)
    return [Checked(row["queue"], row[measure]) for row in found]


def is_recorded_service(run: Path) -> bool:
    """Return whether a run is one of shared reader queues.

    Raises:
        NotFound: the path is not a run folder.
        Damaged: its `run.json` cannot be read.
    """
    from qsctl.eventlog.run_folder import read_run_info

    return read_run_info(run).model == "shared_reader_queue"
