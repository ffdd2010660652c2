"""`qsctl create-subscriber` and `qsctl delete-subscriber` [QS 5.4.7 and 5.4.8]."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from qsctl.cli.administer.answers import ServiceAnswers, answers, deleted, trial
from qsctl.cli.administer.queue_options import check_name
from qsctl.cli.administer.snippets import (
    DEFAULT_SESSION,
    FileOption,
    XmlOption,
    created_as_described,
    read_snippet,
    subscriber_of,
    surroundings,
)
from qsctl.cli.command import Commands
from qsctl.cli.confirmation import DestructionOptions, queues_hit
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import IdempotentOption, TargetOptions
from qsctl.errors import UsageError

COMMANDS: Final = Commands(panel=SERVICE_PANEL)


@COMMANDS.command(
    "create-subscriber",
    examples=(
        "qsctl create-subscriber Billing",
        "qsctl create-subscriber --file billing.xml --idempotent",
    ),
)
def create_subscriber(
    name: Annotated[
        str,
        typer.Argument(help="Name of the shared subscriber; may be left out when the XML has one.", show_default=False),
    ] = "",
    participant: Annotated[
        str,
        typer.Option(
            "--participant",
            "-p",
            metavar="P",
            help="Domain participant that the shared subscriber belongs to.",
            show_default="the only one",
        ),
    ] = "",
    session: Annotated[str, typer.Option(help="Name of its session; XML has its own.", show_default="Session")] = "",
    file: FileOption = None,
    xml: XmlOption = None,
    idempotent: IdempotentOption = False,
    *,
    service: TargetOptions,
) -> ServiceAnswers:
    """Create a shared subscriber in a domain participant.

    Exits with 5 when it exists with the same configuration and with 6 when it exists with another one.
    """
    from qsctl.resource import ResourceKind

    snippet = read_snippet(file, xml)
    if snippet is None:
        check_name(name, "shared subscriber")
        check_name(session or DEFAULT_SESSION, "session")
    elif session:
        raise UsageError("--session cannot be combined with XML", remedy="Write it in the XML, or use options only.")
    with service.open() as administration:
        inside = administration.participant_named(participant)
        created = created_as_described(administration, inside, name, snippet, idempotent=idempotent)
        if created is not None:
            return answers(*created)
        settings = subscriber_of(name, session, snippet, surroundings(administration.connection, inside))
        resource = inside.child(ResourceKind.SHARED_SUBSCRIBER, settings.name)
        return answers(resource, administration.create_subscriber(inside, settings, idempotent=idempotent))


@COMMANDS.command(
    "delete-subscriber", examples=("qsctl delete-subscriber Billing", "qsctl delete-subscriber P/Billing --idempotent")
)
def delete_subscriber(
    name: Annotated[
        str,
        typer.Argument(metavar="SUBSCRIBER", help="S, PARTICIPANT/S, or a resource identifier.", show_default=False),
    ],
    idempotent: IdempotentOption = False,
    *,
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    """Delete a shared subscriber with all its queues and their samples. On a terminal it lists them, and asks.

    Exits with 4 when there is none of that name.
    """
    from qsctl.core.admin.resolve import short_name

    with service.open() as administration:

        def delete() -> ServiceAnswers:
            resource = administration.subscriber_named(name)
            inside = f"{short_name(resource)}/"
            hits = consent.trial(
                lambda: queues_hit(administration, "would be deleted", lambda queue: queue.startswith(inside))
            )
            if hits is not None:
                return trial(resource, hits)
            return answers(resource, administration.delete_subscriber(resource, idempotent=idempotent))

        return deleted(name, delete, idempotent=idempotent)
