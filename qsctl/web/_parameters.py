"""Query parameters of requests, with limits on length and range."""

from __future__ import annotations

from starlette.requests import Request

from qsctl.errors import UsageError


def text_of(request: Request, name: str, characters_max: int) -> str:
    """Return a query parameter as text; empty if the request lacks it.

    Raises:
        UsageError: it is longer than `characters_max`.
    """
    text = request.query_params.get(name, "")
    if len(text) > characters_max:
        raise UsageError(f"{name} has {len(text)} characters", remedy=f"Write at most {characters_max}.")
    return text


def whole_of(request: Request, name: str, default: int, most: int, *, least: int = 0) -> int:
    """Return a query parameter as an integer; `default` if the request lacks it.

    Raises:
        UsageError: it is not an integer from `least` to `most`.
    """
    text = text_of(request, name, 20)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
        raise UsageError(f"{name} is {text!r}", remedy=f"Write a whole number from {least} to {most}.")
    return int(text)
