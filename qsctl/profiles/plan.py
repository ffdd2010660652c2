"""A plan that makes a broker's client profiles equal to those of a file: the created ones, and the changed settings.

Decides: which settings count. A setting that the file does not state stays unchanged on the broker, unless every
setting is to be set; then it gets its default. A limit that the platform decides is not set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qsctl.profiles.difference import DifferentSetting, differences
from qsctl.profiles.formats.draft import ReadProfile
from qsctl.profiles.formats.semp_v2 import plain
from qsctl.profiles.ranges import BY_FIELD, SETTINGS, default_profile, value_of


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """One profile that is to be created or changed: settings with their value on the broker and in the file."""

    message_vpn: str
    name: str
    is_new: bool
    settings: tuple[DifferentSetting, ...]

    @property
    def attributes(self) -> Mapping[str, object]:
        """The body of the request: attributes of SEMP v2."""
        return {BY_FIELD[each.field].semp_v2: plain(each.second) for each in self.settings}


def profile_changes(
    wanted: Iterable[ReadProfile], there: Sequence[ReadProfile], *, every_setting: bool = False
) -> list[ProfileChange]:
    """Return the required changes, in the file's order; empty if the broker's profiles equal those of the file.

    Args:
        wanted: the profiles of the file.
        there: the profiles of the broker.
        every_setting: whether settings that the file does not state are set to their defaults.
    """
    known = {(each.profile.message_vpn, each.profile.name): each.profile for each in there}
    stated_everywhere = frozenset(setting.field for setting in SETTINGS)
    found = []
    for each in wanted:
        key = (each.profile.message_vpn, each.profile.name)
        now = known.get(key)
        fields = stated_everywhere if every_setting else each.stated
        before = default_profile(each.profile.name, each.profile.message_vpn) if now is None else now
        settings = tuple(
            one
            for one in differences(before, each.profile)
            if one.field in fields and value_of(each.profile, BY_FIELD[one.field]) is not None
        )
        if now is None or settings:
            found.append(ProfileChange(*key, now is None, settings))
    return found
