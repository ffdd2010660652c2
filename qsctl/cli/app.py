"""The application: the list of command modules, and the outermost error handler, which turns bugs into messages.

Each command module imports only what its signature needs; the rest is imported when the command runs, so that `qsctl
--help` stays quick.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import typer

from qsctl.cli._rti_options import in_our_spelling
from qsctl.cli.options import VersionOption
from qsctl.cli.output.shown_text import shown
from qsctl.cli.output.standard_streams import prepare_standard_streams
from qsctl.errors import ExitStatus, OutputClosed, QsctlError

COMMAND_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "simulation.what_if": ("what-if",),
    "simulation.simulate": ("simulate",),
    "simulation.size": ("size",),
    "simulation.sweep": ("sweep",),
    "simulation.compare": ("compare",),
    "simulation.compare_runs": ("compare-runs",),
    "simulation.calibrate": ("calibrate",),
    "simulation.trace": ("trace",),
    "simulation.replay": ("replay",),
    "simulation.report": ("report",),
    "simulation.summarize": ("summarize",),
    "monitoring.show": ("show",),
    "monitoring.explain": ("explain",),
    "profiles.client_profile": ("client-profile",),
    "administer.serve": ("serve",),
    "configuration.validate": ("validate",),
    "configuration.effective": ("render",),
    "configuration.difference": ("diff",),
    "configuration.starter": ("init",),
    "administer.desired": ("plan", "apply"),
    "administer.queue": ("create-queue", "delete-queue", "flush-queue"),
    "administer.subscriber": ("create-subscriber", "delete-subscriber"),
    "administer.get": ("get",),
    "administer.send": ("send",),
    "administer.shutdown": ("shutdown",),
    "administer.record": ("record",),
    "administer.member": ("member",),
    "administer.key": ("key",),
    "administer.container": ("container",),
    "context.commands": ("context",),
    "samples.produce": ("produce",),
    "samples.consume": ("consume",),
    "samples.request": ("request",),
    "samples.reply": ("reply",),
    "samples.peek": ("peek",),
    "samples.move": ("move", "requeue"),
    "samples.bridge": ("bridge",),
    "samples.export": ("export",),
    "samples.import_": ("import",),
    "top.command": ("top",),
    "monitoring.wait": ("wait",),
    "monitoring.check": ("check",),
    "monitoring.metrics": ("metrics",),
    "monitoring.debug": ("debug",),
    "samples.bench": ("bench",),
    "qsctl.web.command": ("web",),  # a name, and no import: the package of the page is above this one
    "engine.group": ("engine",),
    "help.pages": ("help",),
    "help.doctor": ("doctor",),
    "simulation.compile_kernels": ("compile",),
    "help.completion": ("completion",),
}
"""Command modules, each with the first words of its `COMMANDS`, in the order of `qsctl --help` (`module_path`)."""

PROGRAM: Final = "qsctl"

_STATUSES: Final = (
    "Exit statuses: 0 done, 1 no or invalid input, 2 usage, 3 partly done, 4 not found, 5 DUPLICATED, "
    "6 ALREADY_EXISTS, 7 refused, 8 no answer in time, 9 stored state damaged, 70 a fault of qsctl, "
    "74 output not written, 130 interrupted, 141 reader of the output gone."
)


def module_path(name: str) -> str:
    """Return the full name of a module in `COMMAND_MODULES`, where modules of this package are named relative to it."""
    return name if name.startswith("qsctl.") else f"qsctl.cli.{name}"


def _root(_version: VersionOption = False) -> None:
    """Administer, run and simulate message queues, and summarize the runs on Spark."""


def build_app(words: Sequence[str] = ()) -> typer.Typer:
    """Return the application with the commands of every module of `COMMAND_MODULES`.

    Args:
        words: the words of the command line to run, if nothing else is needed of the application: if the first is a
            command, only its module is imported, and none if it asks for the version.
    """
    first = words[0] if words else ""
    modules = [module for module, names in COMMAND_MODULES.items() if first in names]
    if not modules and first != "--version":
        modules = list(COMMAND_MODULES)
    app = typer.Typer(
        name=PROGRAM,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=f"{_STATUSES}\n\nPages: qsctl help. Every command has examples: qsctl COMMAND --help.",
    )
    app.callback()(_root)
    for name in modules:
        importlib.import_module(module_path(name)).COMMANDS.add_to(app)
    return app


def main() -> None:
    """Run the command line of this process."""
    prepare_standard_streams()
    try:
        words = in_our_spelling(sys.argv[1:])
        build_app(words)(words, prog_name=PROGRAM)
    except QsctlError as error:  # from what no command prints: help, completion
        if not isinstance(error, OutputClosed):
            sys.stderr.write(f"Error: {error.message}\n{error.remedy}\n")
        sys.exit(int(error.exit_status))
    except Exception as error:  # the last edge: a bug becomes one message, with the trace where QSCTL_DEBUG is set
        if os.environ.get("QSCTL_DEBUG"):
            raise
        sys.stderr.write(
            f"Internal error: {type(error).__name__}: {shown(str(error))}\n"
            "This is a fault of qsctl. Run the command again with QSCTL_DEBUG=1 and report what it prints.\n"
        )
        sys.exit(int(ExitStatus.INTERNAL))
