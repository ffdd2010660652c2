"""Files of client profiles: read in any format, chosen by name, written in any format.

Decides: how much of a file is read, and that whatever its octets are, the outcome is profiles or one error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qsctl.config.files.document import DocumentLimits, read_file
from qsctl.declared.problems import InvalidFile, Problem, Severity, did_you_mean, refusal
from qsctl.errors import NotFound, UsageError
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.formats import _ansible as ansible
from qsctl.profiles.formats import _cli_text as cli_text
from qsctl.profiles.formats import _csv_table as csv_table
from qsctl.profiles.formats import _semp_v1 as semp_v1
from qsctl.profiles.formats import _terraform as terraform
from qsctl.profiles.formats import listing, semp_v2, xml
from qsctl.profiles.formats._format import (
    BYTES_MAX,
    HELD_FIELDS,
    HOLDS_MESSAGE_VPN,
    STATES_EVERYTHING,
    format_of,
)
from qsctl.profiles.formats.draft import Drafts, ReadProfile
from qsctl.profiles.formats.kinds import Format
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.ranges import DEFAULT_MESSAGE_VPN, SETTINGS, value_of

_TEXT_READERS: Final = {
    Format.SEMP_V2: semp_v2.read,
    Format.LISTING: listing.read,
    Format.CLI: cli_text.read,
    Format.TERRAFORM: terraform.read,
    Format.ANSIBLE: ansible.read,
    Format.CSV: csv_table.read,
}
_BYTES_READERS: Final = {Format.SEMP_V1: semp_v1.read, Format.XML: xml.read}
_WRITERS: Final = {
    Format.SEMP_V2: semp_v2.write,
    Format.SEMP_V1: semp_v1.write,
    Format.LISTING: listing.write,
    Format.CLI: cli_text.write,
    Format.TERRAFORM: terraform.write,
    Format.ANSIBLE: ansible.write,
    Format.CSV: csv_table.write,
    Format.XML: xml.write,
}


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """The content of a file; `problems` are about values that were left out or could not be read."""

    name: str
    format: Format
    profiles: tuple[ReadProfile, ...]
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems of values that could not be read."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems of values that were left out, or that are not in the file."""
        return tuple(problem for problem in self.problems if problem.severity is not Severity.ERROR)

    @staticmethod
    def concerns(problem: Problem, profiles: Iterable[ReadProfile]) -> bool:
        """Return whether a problem is about one of these profiles, or about the file as a whole."""
        if not problem.path.startswith(_PLACE):
            return True
        return problem.path.startswith(tuple(f"{_PLACE}{read.profile.name}]" for read in profiles))

    def require_every_value(self, profiles: Iterable[ReadProfile], *, but: Collection[str] = ()) -> None:
        """Check that every value of some profiles is known, before they are written again or simulated.

        Args:
            profiles: those that are used.
            but: fields that get another value.

        Raises:
            InvalidFile: a value cannot be read, or is not in the file; names each of them.
        """
        used = list(profiles)
        problems = [problem for problem in self.errors if self.concerns(problem, used)]
        for read in used:
            problems += [
                Problem(Severity.ERROR, self.name, 0, f"{_PLACE}{read.profile.name}]/{field}",
                        f"the value of {field} is not in the file", text,
                        suggestion="Replace it by its value in a copy of the file.")
                for field, text in read.unknown.items()
                if field not in {*but, *_NAMES}
            ]  # fmt: skip
        if problems:
            raise InvalidFile(problems)


_PLACE: Final = "client-profile["
_NAMES: Final = frozenset({"name", "message_vpn"})


def read_profiles(path: Path, form: Format | None = None) -> ProfileFile:
    """Read the client profiles of a file.

    Args:
        path: the file.
        form: its format; None: recognized by the content.

    Returns:
        The profiles; a value that cannot be read is unknown, and named among the problems.

    Raises:
        InvalidFile: no profile can be read: with every problem. Its exit status is another one if the file is missing.
    """
    data = read_file(path, str(path), DocumentLimits(size_bytes=max(BYTES_MAX.values())))
    return parse_profiles(data, str(path), form)


def parse_profiles(data: bytes, name: str, form: Format | None = None) -> ProfileFile:
    """Read the client profiles in the content of a file; see `read_profiles`.

    Args:
        data: the content.
        name: the file's name in problems.
        form: its format; None: recognized by the content.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"octet 0x{data[error.start]:02x}"
        raise refusal(name, "this is not UTF-8", line=line, found=found, allowed="UTF-8") from None
    if not text.strip():
        raise refusal(name, "the file is empty", allowed="a client profile")
    chosen = form or format_of(text, name)
    if len(data) > BYTES_MAX[chosen]:
        allowed = f"at most {BYTES_MAX[chosen]:,} bytes of format {chosen}"
        raise refusal(name, "the file is too large", found=f"{len(data):,} bytes", allowed=allowed)
    drafts = Drafts(name)
    if chosen in _BYTES_READERS:
        _BYTES_READERS[chosen](data, drafts)
    else:
        _TEXT_READERS[chosen](text.replace("\r\n", "\n"), drafts)
    profiles = drafts.finish()
    return ProfileFile(name, chosen, profiles, tuple(drafts.problems.problems))


def choose(
    file: ProfileFile, name: str | None = None, message_vpn: str | None = None, *, how: str = "With --name"
) -> ReadProfile:
    """Return the profile with the given name, or the only one.

    Args:
        file: the content of the file.
        name: of the profile; None where the file has only one.
        message_vpn: of the profile; None where the name is unique without it.
        how: how the user gives a name, for the message.

    Raises:
        NotFound: there is none of that name.
        UsageError: there are several.
    """
    found = [each for each in file.profiles if name in {None, each.profile.name}]
    found = [each for each in found if message_vpn in {None, each.profile.message_vpn}]
    if len(found) == 1:
        return found[0]
    there = [f"{each.profile.name} of message VPN {each.profile.message_vpn}" for each in file.profiles]
    shown = ", ".join(there[:10]) + (f" and {len(there) - 10} more" if len(there) > 10 else "")
    if found:
        raise UsageError(f"{file.name} has {len(found)} profiles: name one", remedy=f"{how} one of: {shown}.")
    wanted = f"profile {name}" if name is not None else "profile"
    wanted += f" of message VPN {message_vpn}" if message_vpn is not None else ""
    hint = did_you_mean(name or "", [each.profile.name for each in file.profiles])
    raise NotFound(f"{file.name} has no {wanted}", remedy=f"It has {shown}. {hint}".rstrip())


def write_profiles(profiles: Selected, form: Format) -> str:
    """Return the text of profiles in a format; fields that it cannot hold are left out (see `lost_fields`).

    Raises:
        InvalidFile: a value would be read back as another one.
    """
    held = HELD_FIELDS[form]
    return _WRITERS[form]([(profile, fields & held) for profile, fields in profiles])


def every_field(profile: ClientProfile) -> tuple[ClientProfile, frozenset[str]]:
    """Return the profile with all its fields, for a writer."""
    return profile, frozenset(setting.field for setting in SETTINGS)


def fields_not_known(read: ReadProfile, form: Format) -> frozenset[str]:
    """Return the fields that a file does not determine: its format cannot hold them, or their value is unknown.

    Args:
        read: a profile of the file.
        form: the file's format.
    """
    held = HELD_FIELDS[form] & read.stated if form in STATES_EVERYTHING else HELD_FIELDS[form]
    names = frozenset() if form in HOLDS_MESSAGE_VPN else frozenset({"message_vpn"})
    return (frozenset(setting.field for setting in SETTINGS) - held) | names | frozenset(read.unknown)


def lost_fields(profiles: Iterable[ClientProfile], form: Format) -> tuple[str, ...]:
    """Return the fields whose values a format cannot hold and that are not at their default, in the table's order."""
    given = tuple(profiles)
    lost = [
        setting.field
        for setting in SETTINGS
        if setting.field not in HELD_FIELDS[form]
        and any(value_of(profile, setting) != setting.default for profile in given)
    ]
    if form not in HOLDS_MESSAGE_VPN and any(profile.message_vpn != DEFAULT_MESSAGE_VPN for profile in given):
        lost.insert(0, "message_vpn")
    return tuple(lost)
