"""`qsctl engine …`: the group of commands on an integration engine, its eight queues and its databases."""

from __future__ import annotations

from typing import Final

from qsctl.cli.command import Commands
from qsctl.cli.engine import _change as change
from qsctl.cli.engine import _dump as dump
from qsctl.cli.engine import _run as run
from qsctl.cli.engine import _site as site
from qsctl.cli.panels import MORE_PANEL

COMMANDS: Final = Commands(
    panel=MORE_PANEL,
    group="engine",
    help="Run an integration engine, read its site, look into its databases, resend, move and delete messages.",
    parts=(run.COMMANDS, dump.COMMANDS, change.COMMANDS, site.COMMANDS),
)
