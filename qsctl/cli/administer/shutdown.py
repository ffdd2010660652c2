"""`qsctl shutdown` (manual, section 5.4.9)."""

from __future__ import annotations

from typing import Annotated

import typer

from qsctl.cli.administer.answers import Answers, answers
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
from qsctl.cli.service_options import DEFAULT_TARGET, SERVICE_PANEL, TargetOption


def shutdown(
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    target: TargetOption = DEFAULT_TARGET,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Forget the stored configuration of an embedded service too, so that the next command starts from "
            "its file.",
        ),
    ] = False,
) -> Answers:
    """Stop a running service.

    A service that runs inside another program answers UNSUPPORTED, and the command exits with 7.
    """
    from qsctl.client.admin import Administration
    from qsctl.errors import UsageError

    if fresh and service.startswith("dds:"):
        raise UsageError(
            "--fresh is for an embedded service", remedy="The files of a running service are on its own machine."
        )
    with open_connection(service, state_dir, timeout, ends=True) as connection:
        if fresh:
            from qsctl.service.embedded import EmbeddedService

            assert isinstance(connection, EmbeddedService)
            connection.forget_configuration()
        return answers("/", Administration(connection, target).shut_down())


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "shutdown",
        panel=SERVICE_PANEL,
        examples=(
            "qsctl shutdown",
            "qsctl shutdown --fresh  # the next command starts from its file",
            "qsctl shutdown --target 'Test*'",
        ),
    )(shutdown)
