"""One reading of the services of a location, for checks of their health."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qsctl.cli.service_options import TargetOptions
    from qsctl.client.administration import FromService
    from qsctl.core.admin.reply import ServiceData
    from qsctl.core.statistics.status import ReplicationStatus, SharedReaderQueueStatus


class ServiceLook(NamedTuple):
    """The answers of services.

    `answer_ms` is the time until all had reported their queues; `notices` are their other reports about themselves;
    `damage` is what was found damaged in an embedded service.
    """

    answer_ms: float
    data: Sequence[FromService[ServiceData]]
    statuses: Sequence[FromService[SharedReaderQueueStatus]]
    notices: Sequence[str]
    damage: Sequence[str]

    @property
    def dead_letter_queues(self) -> set[str]:
        """Return the names of the dead-letter queues."""
        return {queue.queue_name for each in self.data for queue in each.body.queues if queue.is_dead_letter}

    @property
    def outside(self) -> set[tuple[str, str]]:
        """Return the services that are not members of a replicated queue which they report, each with its queue.

        That is by the list of a service at which the queue has a quorum: a service's own list may be older, for it was
        removed meanwhile, or joins and is to be added.
        """
        lists: dict[str, list[ReplicationStatus]] = {}
        for _, each in self.statuses:
            if each.replication is not None and each.replication.has_quorum:
                lists.setdefault(each.queue_name, []).append(each.replication)
        return {
            (service, each.queue_name)
            for service, each in self.statuses
            if any(not members.has_member(service) for members in lists.get(each.queue_name, ()))
        }


def look_at(service: TargetOptions) -> ServiceLook:
    """Request the queues and statuses of the services of a location.

    Raises:
        NoAnswer: no service answered in time.
        UsageError: the location is not valid.
    """
    notices: list[str] = []
    with service.open() as administration:
        administration.on_notice = notices.append
        administration.tolerate_silence()
        begun = time.monotonic()
        data = administration.service_data()
        answer_ms = 1000.0 * (time.monotonic() - begun)
        statuses = administration.statuses()
        notices += [f"{name} does not answer" for name in administration.silent]
        damage = [str(report) for report in getattr(administration.connection, "damage", ())]
    return ServiceLook(answer_ms, data, statuses, tuple(dict.fromkeys(notices)), damage)
