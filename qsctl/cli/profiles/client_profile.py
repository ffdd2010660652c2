"""`qsctl client-profile …`: show, set and reset settings of a broker's client profiles, in files of any format."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from qsctl.cli.broker_options import BrokerAddress
from qsctl.cli.command import Commands
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.profiles import _checks as profile_checks
from qsctl.cli.profiles import _conversion as profile_conversion
from qsctl.cli.profiles import _desired as desired_profiles
from qsctl.cli.profiles._results import ProfileText, ShownProfile
from qsctl.cli.profiles.options import (
    FileArgument,
    FileOrBrokerArgument,
    OutputFile,
    ProfileChoice,
    note_lost,
    setting_named,
)
from qsctl.errors import InvalidInput, UsageError

if TYPE_CHECKING:
    from qsctl.profiles.client_profile import ClientProfile
    from qsctl.profiles.formats.file import ProfileFile
    from qsctl.profiles.formats.selection import Selected
    from qsctl.profiles.setting import ProfileSetting, Value


COMMANDS: Final = Commands(
    panel=SIMULATION_PANEL,
    group="client-profile",
    help="Read, check, change and convert client profiles of a Solace broker, in files and on the broker.",
    parts=(profile_conversion.COMMANDS, profile_checks.COMMANDS, desired_profiles.COMMANDS),
)


@COMMANDS.command(
    "show",
    examples=(
        "qsctl client-profile show profile.json --changed",
        "qsctl client-profile show broker.cfg --name web -o yaml",
        "qsctl client-profile show --broker site --name web --changed",
    ),
)
def show(
    file: FileOrBrokerArgument = None,
    *,
    which: ProfileChoice,
    broker: BrokerAddress,
    changed: Annotated[
        bool, typer.Option("--changed", help="Show only settings that are not at their default.")
    ] = False,
) -> ShownProfile:
    """Show every setting of a client profile with its default; -o json also with its range and source."""
    read, chosen = which.open_either(file, broker)
    return ShownProfile(
        chosen.profile, chosen.stated, str(file or read.name), str(read.format), changed, chosen.unknown
    )


@COMMANDS.command(
    "set",
    examples=(
        "qsctl client-profile set profile.json queueDirect1MaxDepth=100 --out new.json",
        "qsctl client-profile set broker.cfg 'queue D-1 max-depth=100' egress_flows_threshold=80%/60% --name web",
    ),
)
def set_settings(
    file: FileArgument,
    assignments: Annotated[
        list[str],
        typer.Argument(
            metavar="SETTING=VALUE...",
            help="Settings by the name of any format, as in d_1_max_depth_work_units=100, queueDirect1MaxDepth=100 or "
            "'queue[D-1]/max-depth=100'; the two levels of a threshold as 80%/60% or 900/800.",
        ),
    ],
    *,
    which: ProfileChoice,
    output: OutputFile,
) -> ProfileText:
    """Set settings of a client profile: print the file with them, in its own format, or write it with --out."""
    changes = {}
    for assignment in assignments:
        spelled, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"{assignment!r} is not SETTING=VALUE", remedy="As in queueDirect1MaxDepth=100.")
        setting = setting_named(spelled)
        changes[setting.field] = _value(setting, spelled, text)
    return _changed(file, which, changes, output)


@COMMANDS.command(
    "reset",
    examples=(
        "qsctl client-profile reset profile.tf queueDirect1MaxDepth  # as `no max-depth` does",
        "qsctl client-profile reset profile.json --all --out plain.json",
    ),
)
def reset(
    file: FileArgument,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[SETTING...]", help="Settings by the name of any format.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Reset every setting.")] = False,
    *,
    which: ProfileChoice,
    output: OutputFile,
) -> ProfileText:
    """Reset settings of a client profile to the vendor's defaults, as the CLI's `no` commands do."""
    from qsctl.profiles.ranges import SETTINGS

    if every == bool(settings):
        raise UsageError("name settings, or all of them with --all", remedy="As in: reset FILE queueDirect1MaxDepth.")
    named = SETTINGS if every else [setting_named(each) for each in settings or ()]
    changes = {setting.field: setting.default for setting in named}
    return _changed(file, which, changes, output)


def _value(setting: ProfileSetting, spelled: str, text: str) -> Value:
    levels = setting.levels_of(text)
    try:
        if levels is None:
            return setting.read(text)
        set_at, clear_at = levels.values()
        return setting.threshold(set_at, clear_at, is_percent="set_percent" in levels)
    except ValueError:
        raise InvalidInput(f"{spelled}={text} has no valid value", remedy=f"Allowed: {setting.allowed}.") from None


def _changed(file: Path, which: ProfileChoice, changes: dict[str, Value], output: OutputFile) -> ProfileText:
    """Return a file's profiles after changing one of them; settings that the file omits stay omitted."""
    from qsctl.profiles.formats.file import lost_fields, write_profiles

    read, chosen = which.open(file)
    read.require_every_value([chosen], but=changes)
    read.require_every_value([each for each in read.profiles if each is not chosen])
    values: dict[str, Any] = dict(changes)
    profile = dataclasses.replace(chosen.profile, **values)
    selected: Selected = [
        (profile, each.stated | set(changes)) if each is chosen else (each.profile, each.stated)
        for each in read.profiles
    ]
    _refuse_what_would_be_lost(read, profile, changes)
    text = write_profiles(selected, read.format)
    profiles = [each for each, _ in selected]
    lost = lost_fields(profiles, read.format)
    note_lost(lost, read.format)
    names = tuple(each.name for each in profiles)
    return ProfileText(text, output.write(text), str(read.format), names, lost)


def _refuse_what_would_be_lost(read: ProfileFile, profile: ClientProfile, changes: dict[str, Value]) -> None:
    """Refuse to set a value that the file's format cannot hold, since the change would be lost."""
    from qsctl.profiles.formats.file import lost_fields

    lost = [field for field in lost_fields([profile], read.format) if field in changes]
    if lost:
        raise InvalidInput(
            f"format {read.format} has no place for {', '.join(lost)}",
            remedy="Convert the file first: qsctl client-profile export FILE --to semp-v2 --out OTHER.",
        )
