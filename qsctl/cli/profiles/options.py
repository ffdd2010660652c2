"""Options of the commands on client profiles, and what they read: one profile of a file, a selection of settings."""

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
    """Read a file of client profiles; what was left out, and what could not be read, is noted on standard error.

    Raises:
        ProfileError: no profile can be read; with every problem.
    """
    from qsctl.profiles.formats.file import read_profiles

    return noted(read_profiles(path, form))


def noted(file: ProfileFile, chosen: ReadProfile | None = None) -> ProfileFile:
    """Return what was read, with what was left out, and what could not be read, noted on standard error.

    Args:
        file: what was read.
        chosen: the profile that is used; None: all of them. What concerns another one is not noted.
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
"""Of each kind; more are counted."""


def file_and_name(place: str) -> tuple[Path, str | None]:
    """Return the file and the profile of FILE[#NAME]; a file with # in its own name is one."""
    path, _, name = place.rpartition("#")
    return (Path(path), name or None) if path and not Path(place).exists() else (Path(place), None)


@dataclass(frozen=True)
class ProfileChoice(OptionGroup):
    """The profile that is meant, of a file in any format."""

    name: NameOption = None
    message_vpn: VpnOption = None
    form: FromOption = None

    def open(self, path: Path) -> tuple[ProfileFile, ReadProfile]:
        """Read the file and the one profile; see `open_file` and `choose`."""
        from qsctl.profiles.formats.file import choose, read_profiles

        path, own = file_and_name(str(path))
        file = read_profiles(path, self.form)
        chosen = choose(file, own or self.name, self.message_vpn, how="With FILE#NAME or --name")
        return noted(file, chosen), chosen

    def open_either(self, path: Path | None, broker: BrokerAddress) -> tuple[ProfileFile, ReadProfile]:
        """Read the file, or ask the broker, and return the one profile.

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
    """Ask a broker for its client profiles; what was left out is noted on standard error."""
    with broker.opened(message_vpn) as opened:
        return noted(opened.profiles())


@dataclass(frozen=True)
class OutputFile(OptionGroup):
    """The file that profiles are written to."""

    out: OutOption = None
    force: ForceOption = False

    def write(self, text: str) -> str:
        """Write it there; see `written`."""
        return written(text, self.out, force=self.force)


def setting_named(name: str) -> ProfileSetting:
    """Return the setting of a name in any format's spelling.

    Raises:
        UsageError: there is none, with what was probably meant.
    """
    from qsctl.profiles.names import find_setting, suggestion
    from qsctl.profiles.ranges import BY_FIELD, BY_SEMP_V2, SETTINGS

    setting = find_setting(name, SETTINGS)
    if setting is None:
        hint = suggestion(name, [*BY_FIELD, *BY_SEMP_V2])
        raise UsageError(
            f"{name!r} is no setting of a client profile",
            remedy=hint or "`qsctl client-profile show FILE -o csv` names all of them.",
        )
    return setting


def note_lost(lost: Sequence[str], form: Format) -> None:
    """Note on standard error which values a format cannot hold."""
    if lost:
        note(f"{form} cannot hold {', '.join(lost)}: left out")
