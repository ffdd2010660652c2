"""Parameters of a request's address, read within bounds."""

from __future__ import annotations

from starlette.requests import Request

from qsctl.errors import UsageError


def text_of(request: Request, name: str, characters_max: int) -> str:
    """Return a parameter as text; empty where it is not given.

    Raises:
        UsageError: it is too long.
    """
    text = request.query_params.get(name, "")
    if len(text) > characters_max:
        raise UsageError(f"{name} has {len(text)} characters", remedy=f"Write at most {characters_max}.")
    return text


def whole_of(request: Request, name: str, default: int, most: int, *, least: int = 0) -> int:
    """Return a parameter as a whole number.

    Raises:
        UsageError: it is not one, or out of range.
    """
    text = text_of(request, name, 20)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
        raise UsageError(f"{name} is {text!r}", remedy=f"Write a whole number from {least} to {most}.")
    return int(text)
