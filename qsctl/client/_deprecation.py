"""Deprecated names of the wrappers, which work for one more version, with a warning."""

from __future__ import annotations

import warnings


def warn_of_former(former: str, instead: str) -> None:
    """Warn the caller of the calling method that its name is deprecated."""
    warnings.warn(
        f"{former} is deprecated and will be removed in the next version of qsctl: use {instead}",
        DeprecationWarning,
        stacklevel=3,
    )
