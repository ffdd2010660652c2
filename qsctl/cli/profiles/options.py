"""Options of the commands on client profiles that select a file, one of its profiles, and the output file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli._output_files import written
from qsctl.cli.broker_options import BrokerAddress
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.output.render import note
from qsctl.errors import UsageError
from qsctl.profiles.formats.kinds import Format

if TYPE_CHECKING:
    from qsctl.profiles.formats.draft import ReadProfile
    from qsctl.profiles.formats.file import ProfileFile
    from qsctl.profiles.setting import ProfileSetting


FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="File of client profiles, in any format; FILE#NAME is one of its profiles."),
]
FileOrBrokerArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="File of client profiles, in any format; FILE#NAME is one of its profiles; left out with --broker.",
        show_default=False,
    ),
]
NameOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the profile, where the file has several.")
]
VpnOption = Annotated[
    str | None, typer.Option(metavar="VPN", help="Message VPN of the profile, where the file has several.")
]
FromOption = Annotated[
    Format | None,
    typer.Option("--from", help="Format of the file.", show_default="recognized by its content"),
]
OutOption = Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.", show_default="standard output")]
ForceOption = Annotated[
    bool,
    typer.Option("--force", "-f", help="Replace an existing file; what else it contains is lost, comments included."),
]


def open_file(path: Path, form: Format | None) -> ProfileFile:
    """Read a file of client profiles, and note its omitted parts and unreadable values on standard error.

    Raises:
        InvalidFile: no profile can be read; with every problem.
    """
    from qsctl.profiles.formats.file import read_profiles

    return noted(read_profiles(path, form))


def noted(file: ProfileFile, chosen: ReadProfile | None = None) -> ProfileFile:
    """Note the problems of a file on standard error, and return the file.

    Args:
        file: the profiles that were read.
        chosen: the profile that is used, for its problems alone; None for those of all.
    """
    errors, others = (
        [each for each in problems if chosen is None or file.concerns(each, [chosen])]
        for problems in (file.errors, file.warnings)
    )
    for problem in (*errors[:_NOTED], *others[:_NOTED]):
        note(str(problem))
    for kind, problems in (("values that cannot be read", errors), ("warnings", others)):
        if len(problems) > _NOTED:
            note(f"… and {len(problems) - _NOTED} more {kind}")
    return file


_NOTED: Final = 10
"""Largest number of notes of each kind; further ones are only counted."""


def file_and_name(place: str) -> tuple[Path, str | None]:
    """Return the file and the profile's name of FILE[#NAME]; an existing file's name may contain a #."""
    path, _, name = place.rpartition("#")
    return (Path(path), name or None) if path and not Path(place).exists() else (Path(place), None)


@dataclass(frozen=True)
class ProfileChoice(OptionGroup):
    """The options that select a profile of a file in any format."""

    name: NameOption = None
    message_vpn: VpnOption = None
    form: FromOption = None

    def open(self, path: Path) -> tuple[ProfileFile, ReadProfile]:
        """Read the file and select the profile; raises as `open_file` and `choose`."""
        from qsctl.profiles.formats.file import choose, read_profiles

        path, own = file_and_name(str(path))
        file = read_profiles(path, self.form)
        chosen = choose(file, own or self.name, self.message_vpn, how="With FILE#NAME or --name")
        return noted(file, chosen), chosen

    def open_either(self, path: Path | None, broker: BrokerAddress) -> tuple[ProfileFile, ReadProfile]:
        """Read the file, or query the broker, and select the profile.

        Raises:
            UsageError: neither is named, or both are.
        """
        from qsctl.profiles.formats.file import choose

        if (path is None) != bool(broker.broker):
            what = "there is no file" if path is None else f"{path} and --broker are both given"
            raise UsageError(what, remedy="Name a file of client profiles, or a broker with --broker.")
        if path is not None:
            return self.open(path)
        file = profiles_of(broker, self.message_vpn)
        return file, choose(file, self.name, self.message_vpn)


def profiles_of(broker: BrokerAddress, message_vpn: str | None) -> ProfileFile:
    """Query the client profiles of a broker, and note omitted parts on standard error."""
    with broker.opened(message_vpn) as opened:
        return noted(opened.profiles())


@dataclass(frozen=True)
class OutputFile(OptionGroup):
    """The options of the file that profiles are written to."""

    out: OutOption = None
    force: ForceOption = False

    def write(self, text: str) -> str:
        """Write a text to the file or to standard output; return the file's name. Raises as `written`."""
        return written(text, self.out, force=self.force)


def setting_named(name: str) -> ProfileSetting:
    """Return the setting of a name in the spelling of any format.

    Raises:
        UsageError: there is none; the remedy has similar names.
    """
    from qsctl.profiles.names import find_setting, suggestion
    from qsctl.profiles.ranges import BY_FIELD, BY_SEMP_V2, SETTINGS

    setting = find_setting(name, SETTINGS)
    if setting is None:
        hint = suggestion(name, [*BY_FIELD, *BY_SEMP_V2])
        raise UsageError(
            f"{name!r} is not a setting of a client profile",
            remedy=hint or "`qsctl client-profile show FILE -o csv` names all of them.",
        )
    return setting


def note_lost(lost: Sequence[str], form: Format) -> None:
    """Note on standard error the values that a format cannot hold."""
    if lost:
        note(f"{form} cannot hold {', '.join(lost)}: left out")
