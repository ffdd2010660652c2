"""The application: which commands there are, and the last edge where a bug becomes a message.

Each command module imports only what its signature needs; the rest is imported when the command runs, so that
`qsctl --help` stays quick.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated, Final

import typer

from qsctl import __version__
from qsctl.cli.original_options import in_our_spelling

COMMAND_MODULES: Final[tuple[str, ...]] = (
    "queue",
    "subscriber",
    "get",
    "produce",
    "consume",
    "request",
    "reply",
    "send",
    "shutdown",
    "serve",
    "validate",
    "effective",
    "difference",
    "starter",
    "completion",
    "simulate",
    "summarize",
    "sweep",
    "compare",
    "size",
    "report",
    "doctor",
)
"""Modules of this package with a `register(app)`, in the order of `qsctl --help`."""

PROGRAM: Final = "qsctl"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Administer, run and simulate message queues, and summarize the runs on Spark."""


def build_app() -> typer.Typer:
    """The whole command line, with every module of `COMMAND_MODULES` registered."""
    app = typer.Typer(
        name=PROGRAM,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Exit statuses and a tour: README.md. Every command has examples: qsctl COMMAND --help.",
    )
    app.callback()(_root)
    for name in COMMAND_MODULES:
        importlib.import_module(f"qsctl.cli.{name}").register(app)
    return app


def main() -> None:
    """Run the command line of this process."""
    try:
        build_app()(in_our_spelling(sys.argv[1:]), prog_name=PROGRAM)
    except BrokenPipeError:
        # The reader of our output went away, as `head` does: not an error. Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # the last edge: a bug becomes one message, with the trace for those who ask
        if os.environ.get("QSCTL_DEBUG"):
            raise
        sys.stderr.write(
            f"Internal error: {type(error).__name__}: {error}\n"
            "This is a fault of qsctl. Run the command again with QSCTL_DEBUG=1 and report what it prints.\n"
        )
        sys.exit(70)
