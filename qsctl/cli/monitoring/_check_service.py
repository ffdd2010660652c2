"""The values of `qsctl check` for services: of a service as a whole, of one of its queues, and of its dead letters.

Decides the faults of a service that are independent of thresholds. A service that does not answer, that has suspended a
queue because of its disk, or that lacks a quorum is critical.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qsctl.cli.monitoring._check_values import (
    DEAD_LETTER_MEASURES,
    OLDEST_AGE,
    SERVICE_MEASURES,
    Checked,
    known_measure,
)
from qsctl.cli.monitoring.service_look import look_at
from qsctl.errors import NoAnswer, NotFound

if TYPE_CHECKING:
    from qsctl.cli.service_options import TargetOptions
    from qsctl.client.administration import Administration, FromService
    from qsctl.core.admin.reply import QueueData
    from qsctl.core.statistics.status import SharedReaderQueueStatus
    from qsctl.resource import ResourceIdentifier


@dataclass(frozen=True, slots=True)
class ServiceValues:
    """The value of each service, and descriptions of their faults."""

    values: tuple[Checked, ...]
    troubles: tuple[str, ...]


def of_services(measure: str, service: TargetOptions, expected_count: int) -> ServiceValues:
    """Return the values of the services that answer, and the faults found.

    Raises:
        UsageError: no measure has this name, or the location is not valid.
    """
    known_measure(measure, SERVICE_MEASURES)
    try:
        look = look_at(service)
    except NoAnswer as error:
        return ServiceValues((), (error.message,))
    troubles = list(look.notices)
    names = [each.service for each in look.data]
    if len(names) < expected_count:
        troubles.append(f"{len(names)} of {expected_count} services answered")
    outside = look.outside
    troubles += [
        f"queue {each.queue_name} of service {name} has no quorum"
        for name, each in look.statuses
        if each.replication is not None and not each.replication.has_quorum and (name, each.queue_name) not in outside
    ]
    dead = look.dead_letter_queues

    def value(name: str) -> float:
        own = [each for service_name, each in look.statuses if service_name == name]
        match measure:
            case "answer_ms":
                return round(look.answer_ms, 1)
            case "message_count":
                return sum(each.current_message_count for each in own)
            case "dead_letter_count":
                return sum(each.current_message_count for each in own if each.queue_name in dead)
            case "waiting_count":
                return sum(each.current_waiting_message_count for each in own)
            case _:
                return sum(each.current_undeliverable_message_count for each in own)

    return ServiceValues(tuple(Checked(name, value(name)) for name in names), tuple(dict.fromkeys(troubles)))


def of_dead_letters(queue: str, measure: str, service: TargetOptions) -> list[Checked]:
    """Return the values of a dead-letter queue, or (empty name) of all.

    Raises:
        NotFound: there is none.
        NoAnswer: no service answered in time.
        UsageError: no measure has this name, or the queue is not a dead-letter queue.
    """
    from qsctl.core.admin.resolve import resolve_queue, short_name
    from qsctl.resource import parse_resource

    known_measure(measure, DEAD_LETTER_MEASURES)
    with service.open() as administration:
        hosted = administration.hosted()
        found: Sequence[QueueData] = [each for each in hosted.queues if each.is_dead_letter]
        if queue:
            wanted = resolve_queue(queue, hosted)
            found = [each for each in found if each.resource == str(wanted)]
            if not found:
                raise NotFound(
                    f"{short_name(wanted)} is not a dead-letter queue",
                    remedy="Use `qsctl check queue` for other queues.",
                )
        if not found:
            raise NotFound(
                "no queue holds dead letters", remedy="`qsctl create-queue NAME --as-dead-letter` makes one."
            )
        values: list[Checked] = []
        for each in found:
            resource = parse_resource(each.resource)
            if measure == OLDEST_AGE:
                values.append(Checked(each.queue_name, oldest_age_s(administration, resource)))
            else:
                values += _counts(each.queue_name, administration.statuses(resource))
        return values


def oldest_age_s(administration: Administration, queue: ResourceIdentifier) -> float:
    """Return the age of a queue's oldest sample in seconds; 0 if the queue is empty."""
    found = [each.body.enqueued_at_ns for each in administration.messages(queue, count=1)]
    return round(max(0.0, (time.time_ns() - min(found)) / 1e9), 1) if found else 0.0


def _counts(name: str, statuses: Sequence[FromService[SharedReaderQueueStatus]]) -> list[Checked]:
    return [
        Checked(name if len(statuses) == 1 else f"{each.service} {name}", each.body.current_message_count)
        for each in statuses
    ]


def of_service(queue: str, measure: str, service: TargetOptions) -> list[Checked]:
    """Return a figure of a queue's status, one for each service that answers.

    Raises:
        NotFound: there is no such queue.
        NoAnswer: no service answered in time.
        UsageError: no number of the status has that name.
    """
    from qsctl.cli.administer.get_results import Statuses
    from qsctl.core.admin.resolve import short_name

    with service.open() as administration:
        resource = administration.queue_named(queue)
        if measure == OLDEST_AGE:
            return [Checked(short_name(resource), oldest_age_s(administration, resource))]
        rows = Statuses(tuple(administration.statuses(resource))).rows()
    found = []
    for row in rows:
        known_measure(measure, _numbers(row))
        value = row[measure]
        assert isinstance(value, int | float)
        label = str(row["queue_name"]) if len(rows) == 1 else f"{row['service']} {row['queue_name']}"
        found.append(Checked(label, value))
    return found


def _numbers(row: Mapping[str, object]) -> list[str]:
    return [name for name, value in row.items() if isinstance(value, int | float) and not isinstance(value, bool)]
