"""Options of `qsctl web` for the view "What if"."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from qsctl.web._context import AskedSources

PANEL: Final = "What if"


@dataclass(frozen=True)
class WhatIfOptions(OptionGroup):
    """Files for the view, in addition to the built-in scenarios and the presets of brokers."""

    scenario: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", rich_help_panel=PANEL, help="Scenario file to vary; may be repeated.", show_default="none"
        ),
    ] = None
    client_profile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[PROFILE=]FILE[#NAME]", rich_help_panel=PANEL,
            help="Client profile of a broker to vary, in the first --scenario, or in the ready scenario burst; may be "
            "repeated.",
            show_default="none",
        ),
    ] = None  # fmt: skip
    recording: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN", rich_help_panel=PANEL, show_default="none",
            help="Run folder of a recording to replay with other settings, by path or URI; may be repeated.",
        ),
    ] = None  # fmt: skip

    def sources(self) -> AskedSources:
        """Return the files; each is read once, so that an invalid file ends the command.

        Raises:
            QsctlError: a file cannot be read, or is invalid.
        """
        from qsctl.web._context import AskedSources
        from qsctl.web._what_if_sources import SourceKind, sources_of

        asked = AskedSources(tuple(self.scenario or ()), tuple(self.client_profile or ()), tuple(self.recording or ()))
        if any(asked):
            of_files = {SourceKind.FILE, SourceKind.PROFILE, SourceKind.RECORDING}
            for each in sources_of(*asked).by_name.values():
                if each.kind in of_files:
                    each.scenario()
        return asked
