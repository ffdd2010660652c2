"""The findings of `qsctl doctor --service` about a service.

Decides which findings are faults, and which are hints. Nothing is changed, and no state directory is created.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.cli.help._finding import Finding
from qsctl.cli.monitoring.service_look import look_at
from qsctl.cli.output.results import counted
from qsctl.errors import NotFound, QsctlError, UsageError

if TYPE_CHECKING:
    from qsctl.cli.service_options import TargetOptions
    from qsctl.client.administration import FromService
    from qsctl.core.statistics.status import SharedReaderQueueStatus

EMBEDDED: Final = "embedded:"
ROOM: Final = "Make room among the dead letters: `qsctl requeue`, or `qsctl export` and `qsctl flush-queue`."


def service_findings(service: TargetOptions) -> list[Finding]:
    """Return the findings about the services of a location.

    Raises:
        UsageError: the location or the timeout is not valid.
        NotFound: a file that the location names does not exist.
    """
    if service.service.startswith(EMBEDDED) and not Path(service.state_dir).exists():
        found = f"there is no state in {service.state_dir}"
        return [Finding("service", False, True, found, "Name another directory with --state-dir.")]
    try:
        look = look_at(service)
    except (UsageError, NotFound):
        raise
    except QsctlError as error:
        return [Finding("service", False, True, error.message, error.remedy)]
    findings = [
        Finding(
            f"service {name}",
            True,
            True,
            f"answered in {look.answer_ms:.0f} ms; {counted(len(body.queues), 'queue')}, "
            f"{counted(sum(each.current_message_count for host, each in look.statuses if host == name), 'sample')}",
        )
        for name, body in look.data
    ]
    remedy = "Make room on the service's disk: the queue continues by itself."
    findings += [Finding("delivery", False, True, text, remedy) for text in look.notices]
    remedy = "What is whole was restored, and the damage is reported once: look at the disk."
    findings += [Finding("stored state", False, True, text, remedy) for text in look.damage]
    has_consumers = not service.service.startswith(EMBEDDED)  # between commands there is none
    dead, outside = look.dead_letter_queues, look.outside
    return findings + [
        finding
        for each in look.statuses
        for finding in _of_queue(
            each, dead, has_consumers=has_consumers, is_outside=(each.service, each.body.queue_name) in outside
        )
    ]


def _of_queue(
    found: FromService[SharedReaderQueueStatus], dead: set[str], *, has_consumers: bool, is_outside: bool
) -> Iterator[Finding]:
    service, status = found
    part, held, total = f"queue {status.queue_name}", status.current_message_count, status.total
    if undeliverable := status.current_undeliverable_message_count:
        yield Finding(part, False, True, f"no room among the dead letters for {counted(undeliverable, 'sample')}", ROOM)
    if waiting := status.current_waiting_message_count:
        yield Finding(
            part, False, True, f"full; {counted(waiting, 'sample')} outside", "Add consumers, or raise its limits."
        )
    if status.queue_name in dead and held:
        yield Finding(
            part, False, False, counted(held, "dead letter"), "`qsctl peek` shows them, then `qsctl requeue`."
        )
    elif has_consumers and held and not status.consumer_count:
        yield Finding(part, False, False, f"{counted(held, 'sample')} and no consumer", "Start a consumer.")
    if total.bounced_message_count:
        refused = f"{counted(total.bounced_message_count, 'sample')} refused since the start"
        yield Finding(part, False, False, refused, "`qsctl get status QUEUE` shows whether the queue was full.")
    if total.failed_delivery_message_count and not dead:
        given_up = f"{counted(total.failed_delivery_message_count, 'sample')} given up, and no dead-letter queue"
        yield Finding(part, False, False, given_up, "Create one, or raise --max-delivery-retries: they are lost.")
    if is_outside:
        remedy = f"`qsctl member add` makes {service} one, or stop it."
        yield Finding(part, False, False, f"{service} is not among its members", remedy)
    elif (replication := status.replication) is not None:
        quorum = "with a quorum" if replication.has_quorum else "without a quorum"
        state = f"{replication.role} at {service}, {quorum}, lag {replication.lag_count}"
        yield Finding(part, replication.has_quorum, True, state, "Start the missing members of the cluster.")
