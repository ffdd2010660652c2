"""The input of a writer: profiles, each with the fields to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from qsctl.profiles.client_profile import ClientProfile

Selected: TypeAlias = Sequence[tuple[ClientProfile, frozenset[str]]]
"""Profiles in order; a field that a format cannot hold is not written (`format.held_fields`)."""
