"""`qsctl explain setting NAME`: the description of a service's setting, from the configuration tables."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.declared import DeclaredRows
from qsctl.cli.output.results import Block, Plain, TextBlock
from qsctl.errors import NotFound

if TYPE_CHECKING:
    from qsctl.config.form import SettingPlace

COMMANDS: Final = Commands()


@dataclass(frozen=True)
class ExplainedSetting:
    """A row: a setting with its description."""

    path: Annotated[
        str, "the element below <queuing_service>; @name is an attribute, property/NAME an element of a <property>"
    ]
    meaning: Annotated[str, "what the setting is"]
    allowed: Annotated[str, "its values"]
    default: Annotated[str, "its value where nothing gives one; empty: it has none"]
    section: Annotated[
        str, "where the default is stated, in the Queuing Service User's Manual, or that it is an extension"
    ]
    inherited_from: Annotated[list[str], "the elements further out that may give it, the nearest first"]
    option: Annotated[str, "the option of `qsctl create-queue` that sets it; empty: there is none"]


@dataclass(frozen=True)
class ExplainedSettings(DeclaredRows, rows=ExplainedSetting, items="settings"):
    """The settings that a name refers to, each with its description."""

    settings: tuple[ExplainedSetting, ...]

    def document(self) -> Plain:
        """Return an object with the settings."""
        return {"settings": self.rows()}

    def blocks(self) -> Sequence[Block]:
        """Return a paragraph for each setting."""
        return [TextBlock(_paragraph(each)) for each in self.settings]


@COMMANDS.command(
    "setting",
    examples=(
        "qsctl explain setting max_delivery_retries",
        "qsctl explain setting unacked-threshold  # by the option of create-queue",
        "qsctl explain setting service_limits  # all that an element holds",
    ),
)
def setting(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name or path of an element, a property or an attribute, or an option of create-queue."
        ),
    ],
) -> ExplainedSettings:
    """Explain a setting of a service: meaning, values, default, and where it may be given."""
    from qsctl.config.form import settings_in
    from qsctl.config.tables.service import SERVICE

    places = list(settings_in(SERVICE))
    wanted = name.strip().strip("/<>")
    found = [place for place in places if wanted in _names(place)] or [
        place for place in places if f"/{wanted.lower()}/" in f"/{place.path.lower()}/".replace("@", "")
    ]
    if not found:
        known = {each for place in places for each in (*_names(place), *place.path.split("/"))}
        near = difflib.get_close_matches(wanted, sorted(known), 3)
        raise NotFound(
            f"there is no setting {name}",
            remedy=f"Did you mean {', '.join(near)}?" if near else "List them: qsctl help settings.",
        )
    return ExplainedSettings(tuple(_row(place) for place in found))


def _names(place: SettingPlace) -> set[str]:
    option = place.setting.option
    return {place.path, place.setting.tag, *((option.name, option.name.lstrip("-")) if option else ())}


def _row(place: SettingPlace) -> ExplainedSetting:
    item = place.setting
    default = place.default
    return ExplainedSetting(
        path=place.path,
        meaning=item.help,
        allowed=item.value.allowed,
        default="" if default is None or default == "" else item.value.write(default),
        section=item.section,
        inherited_from=[f"{each.path} of the {each.origin}" for each in place.inherits],
        option=item.option.name if item.option else "",
    )


def _paragraph(row: ExplainedSetting) -> str:
    lines = [row.path, f"  {row.meaning}", f"  Values: {row.allowed}"]
    lines.append(f"  Default: {row.default or 'none'} ({row.section})")
    if row.inherited_from:
        lines.append(f"  Inherited from: {', then '.join(row.inherited_from)}")
    if row.option:
        lines.append(f"  Option of create-queue: {row.option}")
    return "\n".join(lines)
