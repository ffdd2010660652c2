"""The source of the incarnations of a live or embedded service: the system's random numbers."""

from __future__ import annotations

import secrets

from qsctl.identity import INCARNATION_MAX, Incarnation


def drawn_incarnation() -> Incarnation:
    """Return a number that no other service, subscriber or queue has, with all likelihood there is."""
    return Incarnation(1 + secrets.randbelow(INCARNATION_MAX))
