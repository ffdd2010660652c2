"""The command line of qsctl for tests that run commands in their own process, built once a process.

Typer makes every command, with all its options, out of the application each time that one is run: 50 ms, which is more
than most commands need. A process of `qsctl` does it once, and so does a process of tests.
"""

from __future__ import annotations

import functools

import typer
import typer.main
import typer.testing

from qsctl.cli.app import build_app


@functools.cache
def command_line() -> typer.Typer:
    """The application for `CliRunner.invoke`, always the same one."""
    if hasattr(typer.testing, "_get_command"):  # where Typer calls it otherwise, tests are slower and no less right
        typer.testing._get_command = functools.cache(typer.main.get_command)
    return build_app()
