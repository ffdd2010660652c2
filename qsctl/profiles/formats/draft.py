"""Draft profiles: the values that the reader of each format found, with their lines, checked against the table.

Decides: which values, names and repetitions are errors, in the same words for every format. A reader only reports
values with their places. A value that cannot be read, or that is not in the file (a template, a reference), is unknown:
its problem names it, and the profile has the default in its place. Only a file of which no profile can be read is an
error.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from qsctl.declared.problems import Problem, ProblemList, Severity, shown
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.names import suggestion
from qsctl.profiles.ranges import DEFAULT_MESSAGE_VPN, default_profile
from qsctl.profiles.setting import ProfileSetting, Value, ValueKind

PROFILES_MAX: Final = 1000
"""In one file: more than a broker has."""
UNKNOWN_MAX: Final = 300
"""Names in one file that no setting has."""
_PROBLEMS_KEPT: Final = 1000
NAME_ALLOWED: Final = "up to 32 letters, digits, _ and -"
_NAME = re.compile(r"#?[A-Za-z0-9_-]{1,32}")
_VPN = re.compile(r"[^*?\"\\\x00-\x20\x7f]{1,32}")
_LEVELS: Final = (("set_percent", "clear_percent", True), ("set_value", "clear_value", False))


@dataclass(slots=True)
class Draft:
    """One profile while its file is read. `place` names it in problems; `line` is where it begins, 0 where unknown."""

    name: str
    message_vpn: str
    place: str
    line: int
    values: dict[str, Value] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadProfile:
    """A profile with the fields that its file states; the others have their default.

    `unknown` has the text of each field that the file states without a known value: one that cannot be read, or that is
    defined in another file. `name` and `message_vpn` may be among them; a name made of that text replaces them.
    """

    profile: ClientProfile
    stated: frozenset[str]
    unknown: Mapping[str, str] = field(default_factory=dict)


class Drafts:
    """The profiles and problems of one file, in its order.

    Args:
        file: the file's name in problems.
        is_written_by_hand: whether a name that is nearly a setting's is a mistake; a broker makes none, and a newer one
            has settings that are not known here.
    """

    def __init__(self, file: str, *, is_written_by_hand: bool = True) -> None:
        self.file = file
        self._is_written_by_hand = is_written_by_hand
        self.problems = ProblemList(file, _PROBLEMS_KEPT)
        self._drafts: dict[tuple[str, str], Draft] = {}
        self._hints: dict[tuple[str, str], str] = {}
        self._deleted = ""
        """The last profile that the file makes and deletes again."""

    def error(
        self, message: str, *, line: int = 0, place: str = "", found: object = "", allowed: str = "", hint: str = ""
    ) -> None:
        """Add an error; reading continues."""
        self._add(Severity.ERROR, message, line, place, found, allowed, hint)

    def warn(
        self, message: str, *, line: int = 0, place: str = "", found: object = "", allowed: str = "", hint: str = ""
    ) -> None:
        """Add a warning about something that is left out."""
        self._add(Severity.WARNING, message, line, place, found, allowed, hint)

    def _add(
        self, severity: Severity, message: str, line: int, place: str, found: object, allowed: str, hint: str
    ) -> None:
        text = shown(str(found)[:1000])
        self.problems.extend([Problem(severity, self.file, line, shown(place), message, text, allowed, hint)])

    def begin(self, name: object, message_vpn: object = None, *, line: int = 0, again: bool = False) -> Draft | None:
        """Return a new draft, or with `again` the existing one of that name; None, with an error, where neither is
        possible.

        Args:
            name: of the profile.
            message_vpn: None where the file does not state it: then it is `default`.
            line: where it begins.
            again: whether a second definition continues the first, as commands do.
        """
        vpn = DEFAULT_MESSAGE_VPN if message_vpn is None else message_vpn
        place = f"client-profile[{name}]" if isinstance(name, str) else "client-profile"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.error(
                "this is not a name of a client profile", line=line, place=place, found=name, allowed=NAME_ALLOWED
            )
            return None
        if not isinstance(vpn, str) or not _VPN.fullmatch(vpn) or not vpn.isprintable():
            allowed = "1 to 32 characters without blanks, quotes, *, ? and backslashes"
            self.error("this is not a name of a message VPN", line=line, place=place, found=vpn, allowed=allowed)
            return None
        key = (vpn, name)
        if key in self._drafts:
            if again:
                return self._drafts[key]
            first = self._drafts[key].line
            where = f" (the first is in line {first})" if first else ""
            self.error(f"a second profile {name} of message VPN {vpn}{where}", line=line, place=place)
            return None
        if len(self._drafts) >= PROFILES_MAX:
            if len(self._drafts) == PROFILES_MAX:
                self.error("there are too many profiles", line=line, allowed=f"at most {PROFILES_MAX}")
            return None
        draft = self._drafts[key] = Draft(name, vpn, place, line)
        return draft

    def leave_unknown(
        self, draft: Draft, field_name: str, text: str, *, line: int = 0, name: str = "", hint: str = ""
    ) -> None:
        """Mark a setting as unknown, with a warning: the file does not state its value.

        Args:
            draft: the profile.
            field_name: a field of `ClientProfile`.
            text: what the file has in its place.
            line: its line.
            name: the file's spelling of the setting.
            hint: what to do, or the replacement.
        """
        spelled = name or field_name
        draft.values.pop(field_name, None)
        draft.unknown[field_name] = shown(text)
        self.warn(f"the value of {spelled} is not in the file", line=line, place=f"{draft.place}/{spelled}", found=text,
                  hint=hint or "It is left out: its value is elsewhere.")  # fmt: skip

    def forget(self, name: str, message_vpn: str) -> None:
        """Remove a profile that the file deletes again."""
        if self._drafts.pop((message_vpn, name), None) is not None:
            self._deleted = name

    def put(
        self, draft: Draft, setting: ProfileSetting, raw: object, *, line: int = 0, name: str = "", again: bool = False
    ) -> None:
        """Set one value; `name` is the file's spelling of the setting. A second value is an error unless `again`."""
        spelled = name or setting.semp_v2
        if setting.kind is ValueKind.THRESHOLD and isinstance(raw, Mapping):
            value = self._threshold(draft, setting, raw, line, spelled)
            if value is None:
                return
        else:
            try:
                value = setting.read(raw)
            except ValueError:
                self._wrong_value(draft, setting, raw, line, spelled)
                return
        if setting.field in draft.values and not again:
            first = draft.lines[setting.field]
            where = f" (the first is in line {first})" if first else ""
            self.error(f"a second {spelled}{where}", line=line, place=f"{draft.place}/{spelled}", found=raw)
            return
        draft.values[setting.field] = value
        draft.lines[setting.field] = line
        draft.unknown.pop(setting.field, None)

    def _wrong_value(self, draft: Draft, setting: ProfileSetting, raw: object, line: int, spelled: str) -> None:
        place = f"{draft.place}/{spelled}"
        self.error(f"{spelled} has no valid value", line=line, place=place, found=raw, allowed=setting.allowed)
        self._lose(draft, setting, raw)

    @staticmethod
    def _lose(draft: Draft, setting: ProfileSetting, raw: object) -> None:
        """Mark a setting as unknown, unless an earlier value of it was read."""
        if setting.field not in draft.values:
            draft.unknown[setting.field] = shown(str(raw)[:1000])

    def _threshold(
        self, draft: Draft, setting: ProfileSetting, levels: Mapping[str, object], line: int, spelled: str
    ) -> Value:
        """Return a threshold of two percentages or two counts; where a broker gives both, the percentages were set."""
        place = f"{draft.place}/{spelled}"
        known = [name for pair in _LEVELS for name in pair[:2]]
        for name in levels:
            if name not in known:
                hint = self.hint(name, known, line=line)
                self.error(f"unknown level {shown(name)}", line=line, place=place, allowed=", ".join(known), hint=hint)
        for set_name, clear_name, is_percent in _LEVELS:
            set_at, clear_at = levels.get(set_name), levels.get(clear_name)
            if set_at is None and clear_at is None:
                continue
            if set_at is None or clear_at is None:
                missing = set_name if set_at is None else clear_name
                self.error(f"{missing} is missing", line=line, place=place, allowed=f"{set_name} and {clear_name}")
                self._lose(draft, setting, f"{set_name} {set_at}, {clear_name} {clear_at}")
                return None
            try:
                return setting.threshold(set_at, clear_at, is_percent=is_percent)
            except ValueError:
                found = f"{set_name} {set_at}, {clear_name} {clear_at}"
                self._wrong_value(draft, setting, found, line, spelled)
                return None
        return setting.default

    def unknown(self, draft: Draft, name: str, known: Iterable[str], *, line: int = 0, found: object = "") -> None:
        """Report a name that the format's table does not have.

        One that resembles a known name is an error, since its value would be lost unnoticed; any other may belong to
        another version of the broker and is a warning.
        """
        hint = self.hint(name, known, line=line) if self._is_written_by_hand else ""
        note = self.error if hint else self.warn
        place = f"{draft.place}/{name}"
        note(f"{shown(name)} is not a setting of a client profile that is known", line=line, place=place, found=found,
             hint=hint or "It is left out.")  # fmt: skip

    def hint(self, name: str, known: Iterable[str], *, line: int, place: str = "") -> str:
        """Return a sentence with the probable spelling of an unknown name; empty where no known name resembles it.

        The search is slow: each name is searched once, and only a bounded number of names, since a file with more is
        not of the format.

        Args:
            name: as it was written.
            known: the names that `place` has.
            line: its line.
            place: the place of the name, such as a mode.
        """
        key = (place, name)
        if key not in self._hints:
            if len(self._hints) >= UNKNOWN_MAX:
                if len(self._hints) == UNKNOWN_MAX:
                    self._hints["", ""] = ""
                    self.error("there are too many unknown names", line=line, allowed=f"at most {UNKNOWN_MAX}")
                return ""
            self._hints[key] = suggestion(name, known)
        return self._hints[key]

    def finish(self, *, may_be_empty: bool = False) -> tuple[ReadProfile, ...]:
        """Return the profiles.

        Raises:
            InvalidFile: the file has no profile and may not be empty, or no value of any profile can be read.
        """
        if not (self._drafts or may_be_empty or self.problems.errors):
            hint = f"It makes {self._deleted} and deletes it again." if self._deleted else ""
            self.error("there is no client profile in this file", allowed="at least one", hint=hint)
        self.problems.problems.sort(key=lambda problem: problem.line)
        if not any(draft.values for draft in self._drafts.values()):
            self.problems.check("the file")
        return tuple(_made(draft) for draft in self._drafts.values())


def _made(draft: Draft) -> ReadProfile:
    values: dict[str, Any] = dict(draft.values)
    profile = dataclasses.replace(default_profile(draft.name, draft.message_vpn), **values)
    return ReadProfile(profile, frozenset(draft.values), dict(draft.unknown))
