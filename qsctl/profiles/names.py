"""Names of settings as people write them: suggestions for unknown ones, and replies to names that no format has.

Decides: what is suggested for a name that a format does not know.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from qsctl.profiles.setting import ProfileSetting

WRONG_NAMES: Final[Mapping[str, str]] = {
    "tcpInitialCongestionWindow": "tcpCongestionWindowSize",
    "queueGuaranteedMinMsgBurst": "queueGuaranteed1MinMsgBurst",
    "queueGuaranteedMaxDepth": "queueGuaranteed1MaxDepth",
    "queueControlMinMsgBurst": "queueControl1MinMsgBurst",
    "queueControlMaxDepth": "queueControl1MaxDepth",
    "flowCount": "maxEgressFlowCount",
}
"""Names of SEMP v2 that are often written and do not exist, with the one that does."""

NOT_OF_A_PROFILE: Final[Mapping[str, str]] = {
    "flowWindowSize": "a flow's window is set by the consuming client (of a DMR link: egressFlowWindowSize)",
    "maxDeliveredUnackedMsgsPerFlow": "it is an attribute of queues and topic endpoints",
}
"""Names that belong to something else, with what."""

_NEAR: Final = 0.75
_NAME_CHARACTERS_MAX: Final = 100


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the name that was probably meant; empty where none is similar.

    Args:
        name: as it was written: camel case, underscores or hyphens.
        known: the names of the format, in its own spelling.
    """
    if len(name) > _NAME_CHARACTERS_MAX:
        return ""
    flat = {_flat(each): each for each in known}
    for wrong, right in WRONG_NAMES.items():
        if _flat(name) == _flat(wrong) and _flat(right) in flat:
            return f"Did you mean {flat[_flat(right)]}?"
    for other, what in NOT_OF_A_PROFILE.items():
        if _flat(name) == _flat(other):
            return f"It is no attribute of a client profile: {what}."
    near = difflib.get_close_matches(_flat(name), flat, n=1, cutoff=_NEAR)
    return f"Did you mean {flat[near[0]]}?" if near else ""


def _flat(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def find_setting(name: str, settings: Iterable[ProfileSetting]) -> ProfileSetting | None:
    """Return the setting that a name means in any format's spelling; None where there is none.

    Accepted are the field, the names of SEMP v2 and Terraform, the scenario's path and the words of the CLI.
    """
    wanted = _flat(name)
    for setting in settings:
        spellings = (setting.field, setting.semp_v2, setting.scenario, " ".join(setting.cli))
        if wanted and wanted in {_flat(each) for each in spellings if each}:
            return setting
    return None
