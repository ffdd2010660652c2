"""The context in use, as defaults of a command's options.

Decides the precedence: the command line, then the environment, then the context, then the option's default.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Annotated, Final

import typer

from qsctl.cli.context.file import Context, read_contexts
from qsctl.errors import QsctlError

_LINE: Final[ContextVar[typer.Context]] = ContextVar("line")
"""The command line that was parsed last."""

_SOURCES: Final = {
    "COMMANDLINE": "named by --service",
    "ENVIRONMENT": "named by QSCTL_SERVICE",
    "DEFAULT_MAP": "named by the context",
}

DEFAULT_SERVICE: Final = "the default"
"""The value of `source_of_service` if nothing named the service."""


def _lay_under(ctx: typer.Context, name: str | None) -> object:
    """Set a context's options as the command's defaults, before its other options are parsed.

    Returns:
        The context; None if none is in use.
    """
    _LINE.set(ctx)
    try:
        contexts = read_contexts()
        name = contexts.in_use if name is None else name
        if not name:
            return None
        found = contexts.named(name)
    except QsctlError as error:
        if ctx.resilient_parsing:
            return None  # the shell completes a line: nothing is printed into it
        raise typer.BadParameter(f"{error.message}. {error.remedy}") from None
    ctx.default_map = {**(ctx.default_map or {}), **found.options}
    return found


ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context",
        envvar="QSCTL_CONTEXT",
        metavar="CONTEXT",
        help="Name of the context to use, see `qsctl context`; '' for none.",
        show_default="the one in use",
        is_eager=True,
        callback=_lay_under,
        rich_help_panel="Service",
    ),
]


def shown_context(arguments: object, service: object) -> str:
    """Return the context that located the command's service, for an error; empty if none did."""
    if isinstance(arguments, Context) and arguments.options.get("service") == service:
        return str(arguments)
    return ""


def source_of_service() -> str:
    """Return in words whether an option, the environment or the context named the command's service."""
    line = _LINE.get(None)
    source = line.get_parameter_source("service") if line is not None else None
    return _SOURCES.get(source.name if source is not None else "", DEFAULT_SERVICE)
