"""`qsctl create-queue`, `delete-queue` and `flush-queue` (manual, sections 5.4.1 to 5.4.3)."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from qsctl.cli.administer.answers import Answers, answers, deleted
from qsctl.cli.administer.queue_options import QueueOptions, WhenFull
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

MOST: Final = 2**31 - 1
MOST_BYTES: Final = 2**63 - 1
"""What the fields of a queue's configuration hold."""

_LIMITS = "Limits"
_DELIVERY = "Delivery"


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
    topic: Annotated[str | None, typer.Option("--topic", help="Topic that producers write. Default: NAME.")] = None,
    type_name: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Type of the samples. Default: DDS::String.")
    ] = None,
    reply_type: Annotated[
        str | None, typer.Option("--reply-type", metavar="TYPE", help="Type of the replies: makes a reply queue too.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="Session of the subscriber. Default: its first one.")
    ] = None,
    persistent: Annotated[bool, typer.Option("--persistent", help="Keep the samples on disk.")] = False,
    max_count: Annotated[
        int | None,
        typer.Option("--max-count", min=-1, max=MOST, help="Most samples; -1: no limit.", rich_help_panel=_LIMITS),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option("--max-bytes", min=-1, max=MOST_BYTES, help="Most bytes; -1: no limit.", rich_help_panel=_LIMITS),
    ] = None,
    high_watermark: Annotated[
        int | None,
        typer.Option("--high-watermark", min=0, max=100, help="Percent of the limits.", rich_help_panel=_LIMITS),
    ] = None,
    low_watermark: Annotated[
        int | None,
        typer.Option("--low-watermark", min=0, max=100, help="Percent of the limits.", rich_help_panel=_LIMITS),
    ] = None,
    when_full: Annotated[
        WhenFull | None,
        typer.Option("--when-full", help="Refuse new samples or let producers wait.", rich_help_panel=_LIMITS),
    ] = None,
    lifespan: Annotated[
        str | None, typer.Option("--lifespan", help="How long samples stay, as in 1h.", rich_help_panel=_DELIVERY)
    ] = None,
    max_delivery_retries: Annotated[
        int | None,
        typer.Option(
            "--max-delivery-retries", min=0, max=MOST, help="Deliveries after the first.", rich_help_panel=_DELIVERY
        ),
    ] = None,
    response_timeout: Annotated[
        str | None,
        typer.Option("--response-timeout", help="How long a consumer may take.", rich_help_panel=_DELIVERY),
    ] = None,
    unacked_threshold: Annotated[
        int | None,
        typer.Option(
            "--unacked-threshold",
            min=-1,
            max=MOST,
            help="Unacknowledged samples up to which a consumer is sent more; -1: always.",
            rich_help_panel=_DELIVERY,
        ),
    ] = None,
    consumer_feedback: Annotated[
        bool,
        typer.Option("--consumer-feedback", help="Consumers say when they take samples.", rich_help_panel=_DELIVERY),
    ] = False,
    dead_letter: Annotated[
        str | None,
        typer.Option(
            "--dead-letter", metavar="QUEUE", help="Where undeliverable samples go.", rich_help_panel=_DELIVERY
        ),
    ] = None,
    as_dead_letter: Annotated[
        bool,
        typer.Option("--as-dead-letter", help="Create the subscriber's dead-letter queue.", rich_help_panel=_DELIVERY),
    ] = False,
    idempotent: IdempotentOption = False,
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    target: TargetOption = DEFAULT_TARGET,
) -> Answers:
    """Create a shared reader queue, from options or from XML.

    Exits with 5 when it exists with the same configuration and with 6 when it exists with another one.
    """
    from qsctl.client.admin import Administration
    from qsctl.resource import ResourceKind

    options = QueueOptions(
        topic=topic,
        type_name=type_name,
        reply_type=reply_type,
        session=session,
        persistent=persistent or None,
        max_count=max_count,
        max_bytes=max_bytes,
        high_watermark=high_watermark,
        low_watermark=low_watermark,
        when_full=when_full,
        lifespan=lifespan,
        max_delivery_retries=max_delivery_retries,
        response_timeout=response_timeout,
        unacked_threshold=unacked_threshold,
        consumer_feedback=consumer_feedback or None,
        dead_letter=dead_letter,
        as_dead_letter=as_dead_letter or None,
    )
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
