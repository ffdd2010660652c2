"""The differences between two client profiles, setting by setting.

Decides: which differences count. A limit that the platform decides differs from any number, and a level in percent from
a count, though a broker may treat both alike.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.ranges import SETTINGS, value_of
from qsctl.profiles.setting import Value


@dataclass(frozen=True, slots=True)
class DifferentSetting:
    """One setting with its two values; `default` is what a broker has where nothing is stated."""

    field: str
    first: Value
    second: Value
    default: Value


def differences(
    first: ClientProfile, second: ClientProfile, *, names: bool = False, but: Collection[str] = ()
) -> tuple[DifferentSetting, ...]:
    """Return the settings that differ, in the table's order; the message VPN always counts.

    Args:
        first: one profile.
        second: the other one.
        names: whether the profiles' own names are compared.
        but: fields that are not compared, since one side does not have them.
    """
    found = []
    for field in ("name", "message_vpn") if names else ("message_vpn",):
        one, other = getattr(first, field), getattr(second, field)
        if one != other and field not in but:
            found.append(DifferentSetting(field, one, other, "default"))
    for setting in SETTINGS:
        one, other = value_of(first, setting), value_of(second, setting)
        if one != other and setting.field not in but:
            found.append(DifferentSetting(setting.field, one, other, setting.default))
    return tuple(found)
