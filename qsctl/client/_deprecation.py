"""Former names of the wrappers: they work for one version more, with a warning."""

from __future__ import annotations

import warnings


def warn_of_former(former: str, instead: str) -> None:
    """Warn the caller of the method that calls this: a name of it goes with the next version."""
    warnings.warn(
        f"{former} is deprecated and goes with the next version of qsctl: use {instead}",
        DeprecationWarning,
        stacklevel=3,
    )
