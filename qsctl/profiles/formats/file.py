"""Files of client profiles: read in any format, chosen by name, written in any format.

Decides: how much of a file is read, and that whatever its octets are, the outcome is profiles or one error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qsctl.config.document import DocumentLimits, read_file
from qsctl.config.problems import ConfigError, Problem, did_you_mean
from qsctl.errors import NotFound, UsageError
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.formats import ansible, cli_text, listing, semp_v1, semp_v2, terraform, xml
from qsctl.profiles.formats.draft import Drafts, ReadProfile
from qsctl.profiles.formats.format import BYTES_MAX, HELD_FIELDS, HOLDS_MESSAGE_VPN, format_of
from qsctl.profiles.formats.kinds import Format
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.problems import ProfileError, refusal
from qsctl.profiles.ranges import DEFAULT_MESSAGE_VPN, SETTINGS, value_of

_TEXT_READERS: Final = {
    Format.SEMP_V2: semp_v2.read,
    Format.LISTING: listing.read,
    Format.CLI: cli_text.read,
    Format.TERRAFORM: terraform.read,
    Format.ANSIBLE: ansible.read,
}
_BYTES_READERS: Final = {Format.SEMP_V1: semp_v1.read, Format.XML: xml.read}
_WRITERS: Final = {
    Format.SEMP_V2: semp_v2.write,
    Format.SEMP_V1: semp_v1.write,
    Format.LISTING: listing.write,
    Format.CLI: cli_text.write,
    Format.TERRAFORM: terraform.write,
    Format.ANSIBLE: ansible.write,
    Format.XML: xml.write,
}


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """What a file holds; `warnings` says what was left out."""

    name: str
    format: Format
    profiles: tuple[ReadProfile, ...]
    warnings: tuple[Problem, ...]


def read_profiles(path: Path, form: Format | None = None) -> ProfileFile:
    """Read the client profiles of a file.

    Args:
        path: the file.
        form: its format; None: recognized by the content.

    Raises:
        ProfileError: with every problem; its exit status says whether the file is only missing.
    """
    try:
        data = read_file(path, str(path), DocumentLimits(size_bytes=max(BYTES_MAX.values())))
    except ConfigError as error:
        raise ProfileError(error.problems) from None
    return parse_profiles(data, str(path), form)


def parse_profiles(data: bytes, name: str, form: Format | None = None) -> ProfileFile:
    """Read the client profiles of some octets; see `read_profiles`.

    Args:
        data: the file.
        name: what problems call it.
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
    return ProfileFile(name, chosen, drafts.finish(), tuple(drafts.problems))


def choose(
    file: ProfileFile, name: str | None = None, message_vpn: str | None = None, *, how: str = "With --name"
) -> ReadProfile:
    """Return the one profile that is meant.

    Args:
        file: what was read.
        name: of the profile; None where the file has only one.
        message_vpn: of the profile; None where the name is clear without.
        how: the words for how a name is given.

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
        ProfileError: a value would be read back as something else.
    """
    held = HELD_FIELDS[form]
    return _WRITERS[form]([(profile, fields & held) for profile, fields in profiles])


def every_field(profile: ClientProfile) -> tuple[ClientProfile, frozenset[str]]:
    """Return the profile with all its fields, for a writer."""
    return profile, frozenset(setting.field for setting in SETTINGS)


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
