"""The commands below `client-profile` of the Solace CLI as a tree of modes, made from the table of settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from qsctl.profiles.ranges import SETTINGS
from qsctl.profiles.setting import ProfileSetting

Below: TypeAlias = "CliMode | ProfileSetting"


@dataclass(slots=True)
class CliMode:
    """A mode of the CLI: the words that lead to it from the profile, and the words that can follow."""

    path: tuple[str, ...] = ()
    below: dict[str, Below] = field(default_factory=dict)


def _tree() -> CliMode:
    root = CliMode()
    for setting in SETTINGS:
        mode = root
        for word in setting.cli[:-1]:
            below = mode.below.setdefault(word, CliMode((*mode.path, word)))
            assert isinstance(below, CliMode), setting.cli
            mode = below
        if setting.cli:
            mode.below[setting.cli[-1]] = setting
    return root


ROOT: Final = _tree()
"""The mode of `client-profile NAME message-vpn VPN`."""


def completed(mode: CliMode, word: str) -> str | None:
    """Return the word of this mode that is spelled like `word` in any case; None where there is none."""
    return next((each for each in mode.below if each.lower() == word.lower()), None)
