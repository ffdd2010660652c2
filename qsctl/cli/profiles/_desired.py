"""`qsctl client-profile plan|apply`: make the client profiles of a broker equal to those of a file."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli.broker_options import BrokerAddress
from qsctl.cli.command import Commands
from qsctl.cli.confirmation import Declined
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, counted, plain
from qsctl.cli.profiles._results import shown_value
from qsctl.cli.profiles.options import FileArgument, NameOption, VpnOption, file_and_name, noted, open_file
from qsctl.errors import ExitStatus, NotFound, PartlyDone, QsctlError, Refused, UsageError

if TYPE_CHECKING:
    from qsctl.broker.semp import SempBroker
    from qsctl.profiles.formats.draft import ReadProfile
    from qsctl.profiles.plan import ProfileChange

COMMANDS: Final = Commands()


@dataclass(frozen=True)
class PlannedProfiles(Result):
    """A plan that makes the broker's profiles equal to the file's, or its outcome."""

    broker: str
    file: str
    changes: tuple[ProfileChange, ...]
    done: int | None = None
    """Number of profiles created or changed; None if it was only planned."""

    field_help: ClassVar[Mapping[str, str]] = {
        "message_vpn": "message VPN of the profile",
        "profile": "name of the profile",
        "action": "create or change",
        "setting": "the setting, as `client-profile set` names it; empty of a profile that is created with defaults",
        "semp_v2": "its attribute of SEMP v2",
        "before": "its value on the broker, of a new profile the default; null: the platform decides",
        "after": "its value in the file",
        "deprecated": "why the setting has no effect any more; empty where it has",
        "broker": "-o json and yaml: the broker",
        "file": "-o json and yaml: the file",
        "changes": "-o json and yaml: the rows",
        "done": "-o json and yaml: profiles created or changed; null: it was only planned",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO for a plan with changes, else DONE."""
        return ExitStatus.NO if self.done is None and self.changes else ExitStatus.DONE

    def rows(self) -> Sequence[Row]:
        """Return one row per setting."""
        from qsctl.profiles.ranges import BY_FIELD

        found: list[Row] = []
        for each in self.changes:
            profile: Row = {
                "message_vpn": each.message_vpn,
                "profile": each.name,
                "action": "create" if each.is_new else "change",
            }
            found += [
                {
                    **profile,
                    "setting": one.field,
                    "semp_v2": BY_FIELD[one.field].semp_v2,
                    "before": plain(one.first),
                    "after": plain(one.second),
                    "deprecated": BY_FIELD[one.field].deprecated,
                }
                for one in each.settings
            ] or [{**profile, "setting": "", "semp_v2": "", "before": None, "after": None, "deprecated": ""}]
        return found

    def document(self) -> Plain:
        """Return the rows, with the broker, the file, and the number of changed profiles."""
        return {"broker": self.broker, "file": self.file, "changes": list(self.rows()), "done": self.done}

    def blocks(self) -> Sequence[Block]:
        """Return a table of the differences, and a sentence."""
        if not self.changes:
            return [TextBlock(f"{self.broker} is as {self.file} has it.", "good")]
        rows: list[Row] = []
        for change in self.changes:
            head: Row = {
                "profile": f"{change.message_vpn}/{change.name}",
                "action": "create" if change.is_new else "change",
            }
            rows += [
                {**head, "setting": one.field, "before": shown_value(one.first), "after": shown_value(one.second)}
                for one in change.settings
            ] or [head]
        columns = [
            Column("profile", "Profile"), Column("action", "Action"), Column("setting", "Setting"),
            Column("before", "On the broker", "right"), Column("after", "In the file", "right"),
        ]  # fmt: skip
        blocks: list[Block] = [TableBlock(columns, rows)]
        if self.done is None:
            return [*blocks, TextBlock("Nothing was changed; `qsctl client-profile apply` does it.", "faint")]
        return [
            *blocks,
            TextBlock(f"{counted(self.done, 'profile')} changed, and read again: they are as wanted.", "good"),
        ]


@dataclass(frozen=True)
class WantedProfiles(OptionGroup):
    """The options that select the desired profiles of a file, and the settings to compare."""

    name: NameOption = None
    message_vpn: VpnOption = None
    target_vpn: Annotated[
        str | None,
        typer.Option(
            metavar="VPN", help="Message VPN of the broker that the profiles are for.", show_default="the file's"
        ),
    ] = None
    every_setting: Annotated[
        bool, typer.Option("--every-setting", help="Reset settings that the file does not state to their defaults.")
    ] = False

    def of(self, place: Path) -> list[ReadProfile]:
        """Return the selected profiles of a file, with the message VPN that they are meant for.

        Raises:
            NotFound: the file has no profile of that name.
            InvalidFile: a value of them cannot be read.
            UsageError: the file does not have a name's value, or names would be equal in the target message VPN.
        """
        path, own = file_and_name(str(place))
        file = open_file(path, None)
        wanted = own or self.name
        found = [
            each
            for each in file.profiles
            if wanted in {None, each.profile.name} and self.message_vpn in {None, each.profile.message_vpn}
        ]
        if not found:
            raise NotFound(
                f"{path} has no client profile of this name",
                remedy=f"`qsctl client-profile show {path}` lists its profiles.",
            )
        file.require_every_value(found)
        for each in found:
            for field in each.unknown.keys() - ({"message_vpn"} if self.target_vpn is not None else set()):
                what = field.replace("_", " ").replace("vpn", "VPN")
                raise UsageError(
                    f"the {what} of {each.profile.name} is not in the file: {each.unknown[field]}",
                    remedy="Name the message VPN with --target-vpn."
                    if field == "message_vpn"
                    else "Replace it by its value in a copy of the file.",
                )
        if self.target_vpn is None:
            return found
        moved = [
            dataclasses.replace(each, profile=dataclasses.replace(each.profile, message_vpn=self.target_vpn))
            for each in found
        ]
        if len({each.profile.name for each in moved}) < len(moved):
            raise UsageError(
                f"several profiles of one name would be of message VPN {self.target_vpn}",
                remedy="Choose those of one message VPN of the file with --message-vpn.",
            )
        return moved


@COMMANDS.command(
    "plan",
    examples=(
        "qsctl client-profile plan web.json --broker site  # exit status 1 if there is anything to do",
        "qsctl client-profile plan profiles.tf --broker https://broker.example:943 -o json",
    ),
)
def plan(file: FileArgument, *, wanted: WantedProfiles, broker: BrokerAddress) -> PlannedProfiles:
    """Show what makes a broker's client profiles equal to those of a file. Nothing is changed.

    What the file does not state stays as it is. Exits with 1 where there is something to do.
    """
    profiles = _wanted(file, wanted, broker)
    with broker.opened(None) as opened:
        return _planned(opened, file, profiles, every_setting=wanted.every_setting)


@COMMANDS.command(
    "apply",
    examples=(
        "qsctl client-profile apply web.json --broker site",
        "qsctl client-profile apply broker.cfg --name web --target-vpn markets --broker site --yes",
    ),
)
def apply(
    file: FileArgument,
    *,
    wanted: WantedProfiles,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the question on a terminal.")] = False,
    broker: BrokerAddress,
) -> PlannedProfiles:
    """Make a broker's client profiles equal to those of a file: create and change them; none is deleted.

    What the file does not state stays as it is. Without a terminal nothing is changed unless --yes is given. The
    profiles are read again afterwards. Interrupted, it is run again.
    """
    profiles = _wanted(file, wanted, broker)
    with broker.opened(None) as opened:
        planned = _planned(opened, file, profiles, every_setting=wanted.every_setting)
        if planned.changes and not yes:
            _ask(planned)
        _carry_out(opened, planned.changes)
        left = _planned(opened, file, profiles, every_setting=wanted.every_setting) if planned.changes else planned
        if left.changes:
            settings = ", ".join(f"{row['profile']} {row['setting']}" for row in left.rows())
            raise PartlyDone(
                f"{opened.name} accepted the changes, and has other values: {settings}",
                remedy="Another program may change it, or the broker ignores these settings.",
            )
        return dataclasses.replace(planned, done=len(planned.changes))


def _wanted(file: Path, wanted: WantedProfiles, broker: BrokerAddress) -> list[ReadProfile]:
    if not broker.broker:
        raise UsageError("no broker is given", remedy="Name it with --broker URL or --broker CONTEXT.")
    return wanted.of(file)


def _planned(
    broker: SempBroker, file: Path, profiles: Sequence[ReadProfile], *, every_setting: bool
) -> PlannedProfiles:
    """Compare the profiles with those in the same message VPNs of the broker."""
    from qsctl.profiles.plan import profile_changes

    there: list[ReadProfile] = []
    for vpn in dict.fromkeys(each.profile.message_vpn for each in profiles):
        there += noted(broker.profiles(vpn)).profiles
    changes = profile_changes(profiles, there, every_setting=every_setting)
    return PlannedProfiles(broker.name, str(file), tuple(changes))


def _ask(planned: PlannedProfiles) -> None:
    """Show a plan and ask for confirmation on a terminal.

    Raises:
        Declined: the answer is no.
        Refused: there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            f"nothing was changed on {planned.broker}: there is no terminal for the confirmation",
            remedy="Check `qsctl client-profile plan`, then give --yes.",
        )
    for row in planned.rows():
        typer.echo(
            f"{row['action']} {row['message_vpn']}/{row['profile']}: {row['setting']} {row['before']} → {row['after']}",
            err=True,
        )
    if not typer.confirm(f"Change {planned.broker}?", err=True):
        raise Declined("nothing was done", remedy="With --yes nothing is asked.")


def _carry_out(broker: SempBroker, changes: Sequence[ProfileChange]) -> None:
    """Create and change the broker's profiles.

    Raises:
        PartlyDone: the broker refused a change after others were done.
    """
    for done, change in enumerate(changes):
        carry = broker.create_profile if change.is_new else broker.change_profile
        try:
            carry(change.message_vpn, change.name, change.attributes)
        except QsctlError as error:
            if not done:
                raise
            raise PartlyDone(
                f"{done} of {len(changes)} profiles are changed; {change.message_vpn}/{change.name}: {error.message}",
                remedy=f"{error.remedy} Run the command again: it goes on from there.".strip(),
            ) from error
