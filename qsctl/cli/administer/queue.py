"""`qsctl create-queue`, `delete-queue` and `flush-queue` (manual, sections 5.4.1 to 5.4.3)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qsctl.cli.administer.answers import Answers, answers, deleted
from qsctl.cli.administer.queue_options import QueueOptions, with_queue_options
from qsctl.cli.administer.snippets import (
    FileOption,
    XmlOption,
    check_queue,
    checked_selector,
    queue_of,
    read_snippet,
    surroundings,
)
from qsctl.cli.command import command
from qsctl.cli.location import open_connection
from qsctl.cli.options import (
    DEFAULT_SERVICE,
    DEFAULT_STATE_DIR,
    DEFAULT_TIMEOUT,
    ServiceOption,
    StateDirOption,
    TimeoutOption,
)
from qsctl.cli.service_options import (
    DEFAULT_TARGET,
    SERVICE_PANEL,
    IdempotentOption,
    QueueArgument,
    SelectOption,
    TargetOption,
)

_DELIVERY = "Delivery"


@with_queue_options(after="xml")
def create_queue(
    name: Annotated[
        str, typer.Argument(help="Its name; may be left out when the XML has one.", show_default=False)
    ] = "",
    subscriber: Annotated[
        str,
        typer.Option("--subscriber", "-s", metavar="S", help="The shared subscriber; needed when there are several."),
    ] = "",
    file: FileOption = None,
    xml: XmlOption = None,
    as_dead_letter: Annotated[
        bool,
        typer.Option("--as-dead-letter", help="Create the subscriber's dead-letter queue.", rich_help_panel=_DELIVERY),
    ] = False,
    idempotent: IdempotentOption = False,
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    target: TargetOption = DEFAULT_TARGET,
    **chosen: Any,
) -> Answers:
    """Create a shared reader queue, from options or from XML.

    Exits with 5 when it exists with the same configuration and with 6 when it exists with another one.
    """
    from qsctl.client.admin import Administration
    from qsctl.resource import ResourceKind

    options = QueueOptions(**chosen, as_dead_letter=as_dead_letter)
    snippet = read_snippet(file, xml)
    check_queue(name, options, snippet)
    with open_connection(service, state_dir, timeout) as connection:
        administration = Administration(connection, target)
        inside = administration.subscriber_named(subscriber)
        settings = queue_of(name, options, snippet, surroundings(connection, inside))
        kind = (
            ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE
            if settings.is_dead_letter
            else ResourceKind.SHARED_READER_QUEUE
        )
        return answers(
            inside.child(kind, settings.name), administration.create_queue(inside, settings, idempotent=idempotent)
        )


def delete_queue(
    name: QueueArgument,
    idempotent: IdempotentOption = False,
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    target: TargetOption = DEFAULT_TARGET,
) -> Answers:
    """Delete a queue with its samples.

    Exits with 4 when there is none of that name.
    """
    from qsctl.client.admin import Administration

    with open_connection(service, state_dir, timeout) as connection:
        administration = Administration(connection, target)

        def delete() -> Answers:
            resource = administration.queue_named(name)
            return answers(resource, administration.delete_queue(resource, idempotent=idempotent))

        return deleted(name, delete, idempotent=idempotent)


def flush_queue(
    name: QueueArgument,
    select: SelectOption = "",
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    target: TargetOption = DEFAULT_TARGET,
) -> Answers:
    """Remove samples from a queue: all of them, or those that a selector picks."""
    from qsctl.client.admin import Administration

    selector = checked_selector(select)
    with open_connection(service, state_dir, timeout) as connection:
        administration = Administration(connection, target)
        resource = administration.queue_named(name)
        return answers(resource, administration.flush_queue(resource, selector))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "create-queue",
        panel=SERVICE_PANEL,
        examples=(
            "qsctl create-queue Orders",
            "qsctl create-queue Orders --persistent --max-count 1000 --response-timeout 30s --max-delivery-retries 3",
            "qsctl create-queue --file orders.xml --subscriber Billing --idempotent",
        ),
    )(create_queue)
    command(
        app,
        "delete-queue",
        panel=SERVICE_PANEL,
        examples=("qsctl delete-queue Orders", "qsctl delete-queue Billing/Orders --idempotent"),
    )(delete_queue)
    command(
        app,
        "flush-queue",
        panel=SERVICE_PANEL,
        examples=(
            "qsctl flush-queue Orders",
            "qsctl flush-queue Orders --select '@sample_queue_status = UNDELIVERED_MESSAGE_STATUS'",
        ),
    )(flush_queue)
