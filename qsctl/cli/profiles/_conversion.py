"""`qsctl client-profile import|export`: convert client profiles from one format to another."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.render import note
from qsctl.cli.profiles._results import ProfileText
from qsctl.cli.profiles.options import (
    FileArgument,
    FromOption,
    NameOption,
    OutputFile,
    ProfileChoice,
    VpnOption,
    file_and_name,
    note_lost,
    open_file,
)
from qsctl.errors import InvalidInput
from qsctl.profiles.formats.kinds import Format

if TYPE_CHECKING:
    from qsctl.profiles.client_profile import ClientProfile
    from qsctl.profiles.formats.draft import ReadProfile
    from qsctl.profiles.formats.file import ProfileFile

COMMANDS: Final = Commands()


@COMMANDS.command(
    "import",
    examples=(
        "qsctl client-profile import broker.cfg web.json --out profiles.xml",
        "qsctl client-profile import reply.xml --from semp-v1",
    ),
)
def import_profiles(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of client profiles, in any format; FILE#NAME is one profile."),
    ],
    form: FromOption = None,
    *,
    output: OutputFile,
) -> ProfileText:
    """Make one <profiles> file of all profiles of some files: a scenario refers to it with <profile name= file=>."""
    from qsctl.profiles.formats.file import every_field, write_profiles

    profiles: dict[str, ClientProfile] = {}
    for place in files:
        for each in _imported(place, form):
            other = profiles.setdefault(each.profile.name, each.profile)
            if other != each.profile:
                vpns = dict.fromkeys((other.message_vpn, each.profile.message_vpn))
                raise InvalidInput(
                    f"{place}: there are two different profiles {each.profile.name}, of message VPN "
                    f"{' and '.join(vpns)}",
                    remedy="A scenario identifies a profile by its name alone: choose with FILE#NAME, or import them "
                    "into files of their own.",
                )
    text = write_profiles([every_field(each) for each in profiles.values()], Format.XML)
    return _result(text, list(profiles.values()), Format.XML, output)


def _imported(place: Path, form: Format | None) -> Sequence[ReadProfile]:
    """Return all profiles of FILE, or the one that FILE#NAME names."""
    path, name = file_and_name(str(place))
    if name is None:
        file = open_file(path, form)
        chosen: Sequence[ReadProfile] = file.profiles
    else:
        file, one = ProfileChoice(form=form).open(place)
        chosen = (one,)
    file.require_every_value(chosen)
    return chosen


@COMMANDS.command(
    "export",
    examples=(
        "qsctl client-profile export profile.json --to cli",
        "qsctl client-profile export new.json --against old.json --to semp-v2  # the body of a PATCH",
        "qsctl client-profile export broker.cfg --all --to terraform --out profiles.tf",
    ),
)
def export(
    file: FileArgument,
    to: Annotated[Format, typer.Option(help="Format to write.")],
    name: NameOption = None,
    message_vpn: VpnOption = None,
    every: Annotated[bool, typer.Option("--all", help="Export all profiles of the file.")] = False,
    changed: Annotated[
        bool, typer.Option("--changed", help="Show only settings that are not at their default.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Profiles to compare with, as FILE or FILE#NAME: only settings that differ are written.",
        ),
    ] = None,
    form: FromOption = None,
    *,
    output: OutputFile,
) -> ProfileText:
    """Write client profiles in another format: a PATCH of SEMP v2, a CLI script, Terraform, Ansible, a listing, XML."""
    from qsctl.profiles.formats.file import write_profiles

    read = open_file(file, form).profiles if every else (ProfileChoice(name, message_vpn, form).open(file)[1],)
    others = _Others(against)
    selected = [
        (each.profile, _fields(each, changed=changed, against=others.of(each)) - each.unknown.keys()) for each in read
    ]
    text = write_profiles(selected, to)
    unknown = tuple(dict.fromkeys(field for each in read for field in each.unknown))
    if unknown:
        note(f"{', '.join(unknown)}: values not in the file, left out")
    return dataclasses.replace(_result(text, [profile for profile, _ in selected], to, output), unknown=unknown)


class _Others:
    """The profiles of the file of `--against`.

    Args:
        place: FILE[#NAME]; None without `--against`.
    """

    def __init__(self, place: Path | None) -> None:
        self._name: str | None = None
        self._file: ProfileFile | None = None
        if place is not None:
            path, self._name = file_and_name(str(place))
            self._file = open_file(path, None)

    def of(self, read: ReadProfile) -> ClientProfile | None:
        """Return the profile to compare with: the named one, the only one, or the one of the same name."""
        from qsctl.profiles.formats.file import choose

        if self._file is None:
            return None
        is_one = len(self._file.profiles) == 1
        name = self._name or (None if is_one else read.profile.name)
        return choose(self._file, name, how="Behind the file of --against with #").profile


def _fields(read: ReadProfile, *, changed: bool, against: ClientProfile | None) -> frozenset[str]:
    from qsctl.profiles.difference import differences
    from qsctl.profiles.ranges import SETTINGS, value_of

    fields = frozenset(setting.field for setting in SETTINGS)
    if changed:
        fields &= {setting.field for setting in SETTINGS if value_of(read.profile, setting) != setting.default}
    if against is not None:
        fields &= {each.field for each in differences(against, read.profile)}
    return fields


def _result(text: str, profiles: Sequence[ClientProfile], form: Format, output: OutputFile) -> ProfileText:
    from qsctl.profiles.formats.file import lost_fields

    lost = lost_fields(profiles, form)
    note_lost(lost, form)
    return ProfileText(text, output.write(text), str(form), tuple(each.name for each in profiles), lost)
