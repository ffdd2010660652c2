"""The source of the incarnations of a live or embedded service: the system's random numbers."""

from __future__ import annotations

import secrets

from qsctl.identity import INCARNATION_MAX, Incarnation


def drawn_incarnation() -> Incarnation:
    """Return a random number that, with overwhelming probability, no other service, subscriber or queue has."""
    return Incarnation(1 + secrets.randbelow(INCARNATION_MAX))
