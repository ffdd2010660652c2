"""`qsctl shutdown` [QS 5.4.9]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.administer._draining import check_drain, handed_over
from qsctl.cli.administer.answers import ServiceAnswers, answers, trial
from qsctl.cli.command import Commands
from qsctl.cli.confirmation import DestructionOptions, Hit
from qsctl.cli.output.results import counted
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import TargetOptions

if TYPE_CHECKING:
    from qsctl.client.administration import Administration, FromService
    from qsctl.core.admin.reply import ServiceData

COMMANDS: Final = Commands(panel=SERVICE_PANEL)


@COMMANDS.command(
    "shutdown",
    examples=(
        "qsctl shutdown",
        "qsctl shutdown --fresh  # the next command starts from its file",
        "qsctl shutdown --target 'Test*'",
        "qsctl shutdown --drain --target Orders_A  # before its machine is maintained",
    ),
)
def shutdown(
    *,
    service: TargetOptions,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Remove the stored configuration of an embedded service, too: the next command starts from its file.",
        ),
    ] = False,
    drain: Annotated[
        bool,
        typer.Option(
            "--drain",
            help="Let other members be the masters of all replicated queues first; where no other member can be their "
            "master, or fewer voters than a quorum would be left, exit with 7, and stop nothing.",
        ),
    ] = False,
    consent: DestructionOptions,
) -> ServiceAnswers:
    """Stop a running service. On a terminal it names the services that it will stop, with what they hold, and asks.

    With --drain, the member of a cluster that --target names; without it a master hands over while it stops, as far as
    others are level within the grace time. If it fails after a while, run it again: a drained member remains so until
    it restarts.

    A service that runs as a daemon or inside another program is stopped where it was started: the command exits with
    7, and no service is drained or stopped. `qsctl member drain` drains one.
    """
    from qsctl.errors import UsageError

    if fresh and service.service.startswith("dds:"):
        raise UsageError(
            "--fresh is for an embedded service", remedy="The files of a running service are on its own machine."
        )
    with service.open(any_configuration=True) as administration:
        answering = administration.service_data()
        _check_stops(answering)
        if drain:
            check_drain(administration, answering)
        hits = consent.trial(
            lambda: [*_services_hit(administration, answering), *(handed_over(administration) if drain else ())]
        )
        if hits is not None:
            return trial("/", hits)
        if fresh:
            from qsctl.service.directory.embedded import EmbeddedService

            assert isinstance(administration.connection, EmbeddedService)
            administration.connection.forget_configuration()
        if drain:
            administration.drain()
        return answers("/", administration.shut_down())


def _check_stops(answering: Sequence[FromService[ServiceData]]) -> None:
    """Check that SHUTDOWN stops each service that answered, before anything is drained or stopped.

    Raises:
        Refused: one is a daemon, which answers UNSUPPORTED [QS 5.4.9].
    """
    from qsctl.errors import Refused

    daemons = sorted(service for service, data in answering if data.is_daemon)
    if daemons:
        raise Refused(
            f"{', '.join(daemons)}: SHUTDOWN does not stop a service that runs as a daemon or in another program",
            remedy="Stop it where it was started: SIGTERM. `qsctl member drain` lets it hand over first.",
        )


def _services_hit(administration: Administration, answering: Sequence[FromService[ServiceData]]) -> list[Hit]:
    """Return the services that would stop, each with its number of samples."""
    held: dict[str, list[int]] = {each.service: [] for each in answering}
    for service, status in administration.statuses():
        held[service].append(status.current_message_count)
    return [
        Hit(
            service,
            f"service {service} with {counted(len(counts), 'queue')} and {counted(sum(counts), 'sample')} would stop; "
            "what is in volatile queues would be lost",
        )
        for service, counts in held.items()
    ]
