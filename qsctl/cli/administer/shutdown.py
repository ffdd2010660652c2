"""`qsctl shutdown` [QS 5.4.9]."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from qsctl.cli.administer.answers import Answers, answers
from qsctl.cli.command import Commands
from qsctl.cli.service_options import SERVICE_PANEL, TargetOptions

COMMANDS: Final = Commands(panel=SERVICE_PANEL)


@COMMANDS.command(
    "shutdown",
    examples=(
        "qsctl shutdown",
        "qsctl shutdown --fresh  # the next command starts from its file",
        "qsctl shutdown --target 'Test*'",
    ),
)
def shutdown(
    *,
    service: TargetOptions,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Removal of the stored configuration of an embedded service too, so that the next command starts "
            "from its file.",
        ),
    ] = False,
) -> Answers:
    """Stop a running service.

    A service that runs inside another program answers UNSUPPORTED, and the command exits with 7.
    """
    from qsctl.errors import UsageError

    if fresh and service.service.startswith("dds:"):
        raise UsageError(
            "--fresh is for an embedded service", remedy="The files of a running service are on its own machine."
        )
    with service.open(ends=True) as administration:
        if fresh:
            from qsctl.service.embedded import EmbeddedService

            assert isinstance(administration.connection, EmbeddedService)
            administration.connection.forget_configuration()
        return answers("/", administration.shut_down())
