"""Scripts of the Solace CLI: `client-profile NAME message-vpn VPN` with its modes, `no` forms, prompts and one-liners.

Decides: which lines belong to a profile. A script may hold a whole broker's configuration: what is outside of a client
profile is left out, and so are the assignment of a profile to a client username and what `show` printed in a session.
Indentation means nothing; `exit` leaves a mode, `end`, `home` and `configure` leave all. A later command overrides an
earlier one; `no` means the default, and of a switch that it is off.

Source: Message Delivery Resources, "Configuring Egress Per-Client Priority Queues"; TCP Settings; Configuring Client
Event Thresholds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from qsctl.declared.problems import shown
from qsctl.profiles.client_profile import ClientProfile, Threshold
from qsctl.profiles.formats._cli_words import ROOT, CliMode, completed
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.ranges import DEFAULT_MESSAGE_VPN, SETTINGS, value_of
from qsctl.profiles.setting import ProfileSetting, Value, ValueKind

_PROMPT_WORDS: Final = r"[ \t]*[A-Za-z0-9_.-]{1,100}(?:\([^)\s]{0,200}\))?[#>]"
LINE = re.compile(rf"^(?:{_PROMPT_WORDS}[ \t]+)?[ \t]*(?:(?:create|no)[ \t]+)?client-profile[ \t]+\S", re.MULTILINE)
"""A pattern of a line that every script with a client profile has."""
_PROMPT = re.compile(rf"{_PROMPT_WORDS}(?:\s|$)")
_WORD = re.compile(r'"([^"]*)"|(\S+)')
_OTHER_HOLDERS: Final = frozenset({"client-username", "link", "config-sync"})
"""Modes of other objects in which `client-profile` is something else."""
_LEAVE_ALL: Final = frozenset({"end", "home", "configure", "enable"})
_LEVELS: Final = {
    "set-percentage": "set_percent",
    "clear-percentage": "clear_percent",
    "set-value": "set_value",
    "clear-value": "clear_value",
}


def read(text: str, drafts: Drafts) -> None:
    """Add the profiles of a script."""
    script = _Script(drafts)
    is_output = False
    for number, line in enumerate(text.splitlines(), start=1):
        prompt = _PROMPT.match(line)
        is_output = is_output and prompt is None
        line = (line[prompt.end() :] if prompt else line).strip()
        if line.split(" ", 1)[0] == "show":
            is_output = prompt is not None  # up to the next prompt
        elif line and line[0] not in "!#" and not is_output:
            script.take([match[1] if match[1] is not None else match[2] for match in _WORD.finditer(line)], number)


_BY_LAST_WORDS: Final = {
    setting.cli[-1]: " ".join(setting.cli) for setting in SETTINGS if len(setting.cli) > 1 and len(setting.cli[-1]) > 8
}
"""Commands by their last word, for those that are written without the mode that they are in."""


class _Script:
    """The position of a script: the profile and the modes inside it."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts
        self._draft: Draft | None = None
        self._modes: list[CliMode] = []
        """One for each line that entered one, the profile's own first; empty outside of a profile."""
        self._is_skipped = False
        """Whether the profile that is open could not be begun."""
        self._is_in_other = False

    def take(self, words: list[str], line: int) -> None:
        """Apply one command of the script."""
        if words[0] in _LEAVE_ALL and len(words) == 1:
            self._leave_all()
        elif words[0] == "exit" and len(words) == 1:
            self._leave_one()
        elif (self._draft is not None or self._is_profile(words)) and any(each.startswith('"') for each in words):
            self._drafts.error("a quote is not closed", line=line, found=" ".join(words), allowed='"…" in one line')
        elif self._is_profile(words):
            self._open(words, line)
        elif self._draft is not None:
            self._command(words, line)
        elif not self._is_skipped:
            verb = words[1] if words[0] in {"create", "no"} and len(words) > 1 else words[0]
            self._is_in_other = verb in _OTHER_HOLDERS or (self._is_in_other and verb != "client-profile")

    def _leave_all(self) -> None:
        self._draft, self._modes, self._is_skipped, self._is_in_other = None, [], False, False

    def _leave_one(self) -> None:
        if len(self._modes) > 1:
            self._modes.pop()
        else:
            self._leave_all()

    def _is_profile(self, words: Sequence[str]) -> bool:
        rest = words[1:] if words[0] in {"create", "no"} else words
        return len(rest) > 1 and rest[0] == "client-profile" and (not self._is_in_other or "message-vpn" in rest)

    def _open(self, words: list[str], line: int) -> None:
        verb = words.pop(0) if words[0] in {"create", "no"} else ""
        name, rest, vpn = words[1], words[2:], None
        if len(rest) > 1 and rest[0] == "message-vpn":
            vpn, rest = rest[1], rest[2:]
        self._leave_all()
        if verb == "no" and not rest:
            self._drafts.forget(name, vpn or DEFAULT_MESSAGE_VPN)
            return
        self._draft = self._drafts.begin(name, vpn, line=line, again=True)
        self._modes = [ROOT]
        self._is_skipped = self._draft is None
        if rest and self._draft is not None:
            self._command(["no", *rest] if verb == "no" else rest, line)

    def _command(self, words: list[str], line: int) -> None:
        """Apply one command inside the profile: words that lead through modes, to a setting with its value."""
        assert self._draft is not None
        is_no = words[0] == "no"
        mode = self._modes[-1]
        rest = words[1:] if is_no else list(words)
        spelled: list[str] = []
        while rest:
            word = completed(mode, rest[0])
            if word is None:
                self._unknown(mode, spelled, rest[0], line)
                return
            spelled.append(word)
            rest = rest[1:]
            below = mode.below[word]
            if isinstance(below, ProfileSetting):
                self._set(below, " ".join([*mode.path, word]), rest, line, is_no=is_no)
                return
            mode = below
        if is_no:
            self._drafts.error("a mode cannot be undone", line=line, place=self._place(mode.path),
                               found="no " + " ".join(spelled), allowed="no and a setting")  # fmt: skip
        elif spelled:
            self._modes.append(mode)

    def _place(self, path: Sequence[str]) -> str:
        assert self._draft is not None
        return "/".join([self._draft.place, *path])

    def _unknown(self, mode: CliMode, spelled: Sequence[str], word: str, line: int) -> None:
        outer = next((each for each in reversed(self._modes) if completed(each, word) is not None), None)
        hint = self._drafts.hint(word, mode.below, line=line, place=" ".join(mode.path))
        if not hint and outer is not None and not spelled:
            hint = f"It is a command of {' '.join(outer.path) or 'client-profile'}: leave the mode with exit."
        if not hint and mode is ROOT and not spelled:
            hint = self._drafts.hint(word, _BY_LAST_WORDS, line=line, place="client-profile …")
            for last, path in _BY_LAST_WORDS.items():
                hint = hint.replace(f"{last}?", f"{path}?")
        if word == "egress" and mode.path == ("queue",):
            form = '<queue name="egress" max-depth=… min-msg-burst=…/>'
            hint = f"A TIBCO appliance has that queue: give it in a scenario, as {form}."
        if hint or mode is not ROOT:
            self._drafts.error(f"{shown(word)} is not a command here", line=line, place=self._place(mode.path),
                               found=word, allowed=", ".join(sorted(mode.below)), hint=hint)  # fmt: skip
        else:
            self._drafts.warn(f"{shown(word)} is not a command of a client profile that is known", line=line,
                              place=self._place(mode.path), found=word, hint="It is left out.")  # fmt: skip

    def _set(self, setting: ProfileSetting, name: str, words: list[str], line: int, *, is_no: bool) -> None:
        assert self._draft is not None
        raw: object
        if setting.kind is ValueKind.BOOLEAN:
            raw = is_no if setting.cli_inverted else not is_no
            is_wrong = bool(words)
        elif is_no:
            raw, is_wrong = setting.default, bool(words)
        elif setting.kind is ValueKind.THRESHOLD:
            raw = {_LEVELS.get(key, key): value for key, value in zip(words[::2], words[1::2], strict=False)}
            is_wrong = not words or len(words) % 2 != 0
        else:
            raw, is_wrong = " ".join(words), not words and setting.kind is not ValueKind.TEXT
        if is_wrong:
            allowed = _usage(setting, name)
            found = ("no " if is_no else "") + " ".join([name, *words])
            self._drafts.error("the command has not the right number of words", line=line,
                               place=self._place(name.split()), found=found, allowed=allowed)  # fmt: skip
            return
        self._drafts.put(self._draft, setting, raw, line=line, name=name, again=True)


def _usage(setting: ProfileSetting, name: str) -> str:
    if setting.kind is ValueKind.BOOLEAN:
        return f"{name}, or no {name}"
    if setting.kind is ValueKind.THRESHOLD:
        return f"{name} set-percentage N clear-percentage N"
    return f"{name} VALUE, or no {name}"


def write(profiles: Selected) -> str:
    """Return a script that sets existing profiles to these values and enters each mode once."""
    lines = ["home", "enable", "configure"]
    for profile, fields in profiles:
        lines.append(f'client-profile "{profile.name}" message-vpn "{profile.message_vpn}"')
        lines += _profile_lines(profile, fields)
        lines.append("exit")
    return "\n".join([*lines, "end"]) + "\n"


def _profile_lines(profile: ClientProfile, fields: frozenset[str]) -> list[str]:
    lines: list[str] = []
    at: tuple[str, ...] = ()
    for setting in sorted((each for each in SETTINGS if each.cli and each.field in fields), key=_mode_order):
        modes = setting.cli[:-1] if setting.kind is not ValueKind.THRESHOLD else setting.cli[:1]
        modes = modes[:1] if modes[:1] == ("event",) else modes
        entered = _entered(modes)
        shared = 0
        while shared < min(len(at), len(entered)) and at[shared] == entered[shared]:
            shared += 1
        lines += [f"{'  ' * depth}exit" for depth in range(len(at), shared, -1)]
        for depth in range(shared, len(entered)):
            lines.append(f"{'  ' * (depth + 1)}{entered[depth]}")
        at = entered
        words = " ".join(setting.cli[len(modes) :])
        lines.append("  " * (len(at) + 1) + _command_line(setting, words, value_of(profile, setting)))
    return lines + [f"{'  ' * depth}exit" for depth in range(len(at), 0, -1)]


def _mode_order(setting: ProfileSetting) -> tuple[bool, tuple[str, ...]]:
    """Return the sort key that puts commands of the profile itself first, then those of each mode."""
    return len(setting.cli) > 1, setting.cli[:-1]


def _entered(modes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commands that enter these modes: `queue D-1` is one command."""
    return (" ".join(modes),) if modes[:1] == ("queue",) else modes


def _command_line(setting: ProfileSetting, words: str, value: Value) -> str:
    if isinstance(value, bool):
        return words if value is not setting.cli_inverted else f"no {words}"
    if value is None or value == "":
        return f"no {words}"
    if isinstance(value, Threshold):
        unit = "percentage" if value.is_percent else "value"
        return f"{words} set-{unit} {value.set_at} clear-{unit} {value.clear_at}"
    return f'{words} "{value}"' if setting.kind is ValueKind.TEXT else f"{words} {value}"
