"""`qsctl create-queue`, `delete-queue` and `flush-queue` [QS 5.4.1 to 5.4.3]."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.administer.answers import ServiceAnswers, answers, deleted, trial
from qsctl.cli.administer.queue_options import QueueOptions
from qsctl.cli.administer.snippets import (
    FileOption,
    XmlOption,
    check_queue,
    checked_selector,
    created_as_described,
    queue_of,
    read_snippet,
    surroundings,
)
from qsctl.cli.command import Commands
from qsctl.cli.confirmation import DestructionOptions, Hit, queues_hit
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import IdempotentOption, QueueArgument, SelectOption, TargetOptions

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.resource import ResourceIdentifier

COMMANDS: Final = Commands(panel=SERVICE_PANEL)


@COMMANDS.command(
    "create-queue",
    examples=(
        "qsctl create-queue Orders",
        "qsctl create-queue Orders --persistent --max-count 1000 --response-timeout 30s --max-delivery-retries 3",
        "qsctl create-queue --file orders.xml --subscriber Billing --idempotent",
    ),
)
def create_queue(
    name: Annotated[
        str, typer.Argument(help="Name of the queue; may be left out when the XML has one.", show_default=False)
    ] = "",
    subscriber: Annotated[
        str,
        typer.Option(
            "--subscriber",
            "-s",
            metavar="S",
            help="Shared subscriber that the queue belongs to.",
            show_default="the only one",
        ),
    ] = "",
    file: FileOption = None,
    xml: XmlOption = None,
    *,
    options: QueueOptions,
    idempotent: IdempotentOption = False,
    service: TargetOptions,
) -> ServiceAnswers:
    """Create a shared reader queue, from options or from XML.

    Exits with 5 when it exists with the same configuration and with 6 when it exists with another one.
    """
    from qsctl.resource import ResourceKind

    snippet = read_snippet(file, xml)
    check_queue(name, options, snippet)
    with service.open() as administration:
        inside = administration.subscriber_named(subscriber)
        created = created_as_described(administration, inside, name, snippet, idempotent=idempotent)
        if created is not None:
            return answers(*created)
        settings = queue_of(name, options, snippet, surroundings(administration.connection, inside))
        kind = (
            ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE
            if settings.is_dead_letter
            else ResourceKind.SHARED_READER_QUEUE
        )
        return answers(
            inside.child(kind, settings.name), administration.create_queue(inside, settings, idempotent=idempotent)
        )


@COMMANDS.command(
    "delete-queue", examples=("qsctl delete-queue Orders", "qsctl delete-queue Billing/Orders --idempotent")
)
def delete_queue(
    name: QueueArgument,
    idempotent: IdempotentOption = False,
    *,
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    """Delete a queue with its samples. On a terminal it lists them, and asks.

    A queue that is created under the same name later is a new one, without a sample, position, identity or dead letter
    of this one (`qsctl help samples`). Exits with 4 when there is none of that name.
    """
    with service.open() as administration:

        def delete() -> ServiceAnswers:
            resource = administration.queue_named(name)
            hits = consent.trial(lambda: queues_hit(administration, "would be deleted", lambda _name: True, resource))
            if hits is not None:
                return trial(resource, hits)
            return answers(resource, administration.delete_queue(resource, idempotent=idempotent))

        return deleted(name, delete, idempotent=idempotent)


@COMMANDS.command(
    "flush-queue",
    examples=(
        "qsctl flush-queue Orders",
        "qsctl flush-queue Orders --select '@sample_queue_status = UNDELIVERED_MESSAGE_STATUS'",
    ),
)
def flush_queue(
    name: QueueArgument, select: SelectOption = "", *, consent: DestructionOptions, service: TargetOptions
) -> ServiceAnswers:
    """Remove samples from a queue: all of them, or those that a selector matches.

    On a terminal their number is shown, and a confirmation is requested.
    """
    selector = checked_selector(select)
    with service.open() as administration:
        resource = administration.queue_named(name)
        hits = consent.trial(lambda: _samples_hit(administration, resource, selector))
        if hits is not None:
            return trial(resource, hits)
        return answers(resource, administration.flush_queue(resource, selector))


def _samples_hit(administration: Administration, queue: ResourceIdentifier, selector: str) -> list[Hit]:
    if not selector:
        return queues_hit(administration, "would be emptied", lambda _name: True, queue)
    from qsctl.core.admin.resolve import short_name

    found = Counter(each.service for each in administration.messages(queue, selector))
    name = short_name(queue)
    return [
        Hit(service, f"{count} selected samples of queue {name} would be removed") for service, count in found.items()
    ]
