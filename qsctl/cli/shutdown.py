"""`qsctl shutdown` (manual, section 5.4.9)."""

from __future__ import annotations

import typer

from qsctl.cli.answers import Answers, answers
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
) -> Answers:
    """Stop a running service.

    A service that runs inside another program answers UNSUPPORTED, and the command exits with 7.
    """
    from qsctl.client.admin import Administration

    with open_connection(service, state_dir, timeout) as connection:
        return answers("/", Administration(connection, target).shut_down())


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "shutdown",
        panel=SERVICE_PANEL,
        examples=("qsctl shutdown", "qsctl shutdown --target 'Test*'"),
    )(shutdown)
