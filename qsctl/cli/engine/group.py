"""`qsctl engine …`: the integration engine with its eight queues; run it, look into its databases, put them right."""

from __future__ import annotations

from typing import Final

import typer

from qsctl.cli.engine import change, dump, run

_PANEL: Final = "Integration engine"


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(
        name="engine",
        no_args_is_help=True,
        help="Run an integration engine, look into its recovery and error databases, resend and delete messages.",
    )
    run.add(group)
    dump.add(group)
    change.add(group)
    app.add_typer(group, rich_help_panel=_PANEL)
