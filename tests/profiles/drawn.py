"""Client profiles drawn at random from the table, for the properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from qsctl.profiles.client_profile import ClientProfile, Threshold
from qsctl.profiles.ranges import SETTINGS
from qsctl.profiles.setting import ProfileSetting, ValueKind


def is_plain(text: str) -> bool:
    """A template in a playbook, which Ansible's writer refuses."""
    return "{{" not in text


NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,32}", fullmatch=True)
VPNS = st.text(st.sampled_from("abcXYZ019_-.:/#$%{}[]()@~=+,|^!"), min_size=1, max_size=32).filter(is_plain)
WORDS = st.text(st.sampled_from("abcXYZ019_-.:/#$%{}[]()@~=+,|^!äß日"), min_size=1, max_size=20).filter(is_plain)


def thresholds(setting: ProfileSetting) -> st.SearchStrategy[Threshold]:
    percent = st.builds(Threshold, st.integers(0, 100), st.integers(0, 100), st.just(True))
    if not setting.limit:
        return percent
    counts = st.integers(0, setting.maximum)
    return percent | st.builds(Threshold, counts, counts, st.just(False))


def values(setting: ProfileSetting) -> st.SearchStrategy[Any]:
    match setting.kind:
        case ValueKind.BOOLEAN:
            return st.booleans()
        case ValueKind.CHOICE:
            return st.sampled_from(setting.choices)
        case ValueKind.TEXT:
            return st.just("") | st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
        case ValueKind.THRESHOLD:
            return thresholds(setting)
        case ValueKind.INTEGER:
            drawn = st.integers(setting.minimum, setting.maximum)
            return drawn | st.none() if setting.is_optional else drawn


PROFILES = st.builds(
    ClientProfile, name=NAMES, message_vpn=VPNS, **{setting.field: values(setting) for setting in SETTINGS}
)
