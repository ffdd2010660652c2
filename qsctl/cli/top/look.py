"""One reading of a source of `qsctl top`: rows of figures with a name.

Decides the figures of live queues and of their consumers, and how rates are computed from two readings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from qsctl.cli.output.results import Row
from qsctl.instant import SECOND_NS, Nanoseconds

if TYPE_CHECKING:
    from qsctl.client.administration import FromService
    from qsctl.core.statistics.status import ReplicationStatus, SharedReaderQueueStatus


@dataclass(frozen=True, slots=True)
class Figure:
    """A column of figures: the row's field, its heading in at most five characters, and its full heading.

    On a narrow terminal, figures of the highest `rank` are left out first.
    """

    field: str
    short: str
    heading: str
    rank: int = 0
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """Rows at one instant, each with a `name`, and its figures by field."""

    heading: str
    """The heading of the names, such as `Queue`."""
    figures: Sequence[Figure]
    rows: Sequence[Row]
    summary: str = ""
    """The totals, in one line."""
    note: str = ""
    """A note for the user, for example that no service answered."""


class LookSource(Protocol):
    """A source of readings."""

    def title(self) -> str:
        """Return the source's name and the instant of the reading, in a few words."""

    def look(self, of: str = "") -> Look:
        """Return the present state of every queue, or of the consumers of the named one.

        Raises:
            QsctlError: the source cannot be read.
        """

    def steer(self, speed_steps: int, seek_steps: int, *, is_stopped: bool) -> None:
        """Change the speed by doublings, move forward by twentieths, stop or continue; for replayed runs only."""

    def close(self) -> None:
        """Release the source."""


QUEUE_FIGURES: Final = (
    Figure("depth", "Depth", "Depth"),
    Figure("unacknowledged", "Unack", "Unacknowledged", rank=1),
    Figure("sent", " Sent", "With consumers", rank=4),
    Figure("in_per_s", " In/s", "In/s"),
    Figure("out_per_s", "Out/s", "Out/s"),
    Figure("redelivered", "Redel", "Redelivered", rank=2),
    Figure("dead", " Dead", "Dead", rank=1),
    Figure("high_watermark", "HiWat", "Above high mark", rank=3),
    Figure("low_watermark", "LoWat", "Below low mark", rank=3),
    Figure("expired", "Expir", "Expired", rank=6),
    Figure("full", " Full", "Times full", rank=5),
    Figure("consumers", " Cons", "Consumers", rank=4),
)
ROLE: Final = Figure("role", " Role", "Role", rank=2, is_text=True)
REPLICATION_FIGURES: Final = (
    ROLE,
    Figure("up_to_date", "Level", "Up to date", rank=3, is_text=True),
    Figure("lag", "  Lag", "Lag", rank=3),
)
SERVICE: Final = Figure("service", "Serv.", "Service", rank=2, is_text=True)

CONSUMER_FIGURES: Final = (
    Figure("outstanding", "Outst", "Outstanding"),
    Figure("threshold", "Thres", "Threshold"),
    Figure("enabled", "Open", "Reception", is_text=True),
    Figure("requester", "Reqr", "Requester", rank=1, is_text=True),
)


@dataclass(slots=True)
class Rates:
    """The rates of counters from one reading to the next."""

    _before: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    _before_ns: Nanoseconds = 0

    def of(
        self, statuses: Sequence[FromService[SharedReaderQueueStatus]], now_ns: Nanoseconds
    ) -> dict[tuple[str, str], tuple[float, float]]:
        """Return the received and the acknowledged samples per second, by service and queue.

        The first reading, and that of a queue whose counters were reset by a restart, has the service's own rates.
        """
        counted = {
            (service, each.queue_name): (each.total.received_message_count, each.total.acknowledged_message_count)
            for service, each in statuses
        }
        elapsed_s = (now_ns - self._before_ns) / SECOND_NS
        found = {}
        for service, each in statuses:
            key = service, each.queue_name
            before, now = self._before.get(key), counted[key]
            if before is None or elapsed_s <= 0 or now < before:
                own = (each.enqueue_throughput, each.dequeue_throughput)
                found[key] = own[0].publication_period_metrics.mean, own[1].publication_period_metrics.mean
            else:
                found[key] = (now[0] - before[0]) / elapsed_s, max(0, now[1] - before[1]) / elapsed_s
        self._before, self._before_ns = counted, now_ns
        return found


def queues_seen(
    statuses: Sequence[FromService[SharedReaderQueueStatus]], rates: Mapping[tuple[str, str], tuple[float, float]]
) -> Look:
    """Return the reading of the queues of services."""
    rows: list[Row] = []
    for service, each in statuses:
        in_per_s, out_per_s = rates[service, each.queue_name]
        total = each.total
        rows.append(
            {
                "name": each.queue_name,
                "service": service,
                **_replication_of(each.replication),
                "depth": each.current_message_count,
                "unacknowledged": each.current_unacknowledged_message_count,
                "sent": each.current_sent_message_count,
                "in_per_s": in_per_s,
                "out_per_s": out_per_s,
                "redelivered": total.redelivered_message_count,
                "dead": total.failed_delivery_message_count,
                "high_watermark": total.high_watermark_count,
                "low_watermark": total.low_watermark_count,
                "expired": total.expired_message_count,
                "full": total.queue_full_count,
                "consumers": each.consumer_count,
            }
        )
    figures = list(QUEUE_FIGURES)
    if any(row["role"] for row in rows):
        figures[:0] = REPLICATION_FIGURES
    if len({row["service"] for row in rows}) > 1:
        figures.insert(0, SERVICE)
    note = "" if rows else "No queues yet: `qsctl create-queue NAME` makes one."
    return Look("Queue", figures, rows, summary_of(rows), note)


def _replication_of(replication: ReplicationStatus | None) -> Row:
    """Return the replication figures of a queue; only its master knows how many members are up to date."""
    if replication is None:
        return {"role": "", "up_to_date": "", "lag": ""}
    up_to_date = f"{replication.up_to_date_count}/{replication.replica_count}"
    learners = f"+{replication.learner_count}" if replication.learner_count else ""
    is_master = replication.role == "master"
    return {
        "role": replication.role,
        "up_to_date": up_to_date + learners if is_master else "",
        "lag": replication.lag_count,
    }


def consumers_seen(statuses: Sequence[FromService[SharedReaderQueueStatus]]) -> Look:
    """Return the reading of the consumers of a queue, in every service that hosts it."""
    rows: list[Row] = [
        {
            "name": bytes(each.consumer_guid).hex(),
            "service": service,
            "outstanding": each.outstanding_count,
            "threshold": "none" if each.unacked_threshold < 0 else each.unacked_threshold,
            "enabled": "yes" if each.reception_enabled else "no",
            "requester": bytes(each.source_guid).hex() if any(each.source_guid) else "",
        }
        for service, status in statuses
        for each in status.consumers
    ]
    consumer_count = sum(status.consumer_count for _, status in statuses)
    held = sum(status.current_message_count for _, status in statuses)
    sent = sum(status.current_sent_message_count for _, status in statuses)
    figures = [each for each in CONSUMER_FIGURES if each.field != "requester" or any(row["requester"] for row in rows)]
    if len({service for service, _ in statuses}) > 1:
        figures.insert(0, SERVICE)
    summary = f"{consumer_count} consumers, {held} samples held, {sent} of them with consumers"
    more = f"The {len(rows)} with the most outstanding samples." if consumer_count > len(rows) else ""
    return Look("Consumer", figures, rows, summary, more if rows else "There are no consumers.")


def summary_of(rows: Sequence[Row]) -> str:
    """Return the totals of the rows' figures, in one line."""
    from qsctl.cli.output.fitting import short_figure

    def total(name: str) -> str:
        value = round(sum(value for row in rows if isinstance(value := row.get(name), int | float)))
        return short_figure(value, str(value))

    words = {"depth": "held", "in_per_s": "in/s", "out_per_s": "out/s", "redelivered": "redelivered", "dead": "dead",
             "lost": "lost"}  # fmt: skip
    shown = [f"{word} {total(name)}" for name, word in words.items() if any(name in row for row in rows)]
    return "   ".join(["1 queue" if len(rows) == 1 else f"{len(rows)} queues", *shown])
