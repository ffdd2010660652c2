"""`qsctl init`: write a commented configuration to start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.render import note
from qsctl.cli.output.results import Block, Result, TextBlock
from qsctl.cli.output_files import written
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.shipped import shipped

COMMANDS: Final = Commands(panel=SERVICE_PANEL)


class Template(StrEnum):
    """Starter configurations that come with qsctl, in `fixtures/config/starter`."""

    MINIMAL = "minimal"
    WORK_QUEUE = "work-queue"
    PERSISTENT = "persistent"
    REQUEST_REPLY = "request-reply"
    MONITORED = "monitored"
    REPLICATED = "replicated"


@dataclass(frozen=True)
class StarterFile(Result):
    """The file that was written, or its text."""

    template: Template
    file: str
    text: str
    refusals: tuple[str, ...] = ()

    field_help: ClassVar[Mapping[str, str]] = {
        "template": "the template it was made from",
        "file": "the file written; - for standard output",
        "text": "what was written",
        "refusals": "why `qsctl serve` refuses it in this version; empty where it does not",
    }

    def blocks(self) -> Sequence[Block]:
        """Return what was written and how to go on; the text itself for standard output."""
        if self.file == "-":
            return [TextBlock(self.text.rstrip("\n"))]
        blocks = [TextBlock(f"Wrote {self.file}.", "good"), TextBlock(f"Check it: qsctl validate {self.file}")]
        if self.refusals:
            blocks.append(TextBlock(f"qsctl serve refuses this file: {'; '.join(self.refusals)}.", "bad"))
        return blocks


@COMMANDS.command(
    "init",
    examples=(
        "qsctl init  # USER_QUEUING_SERVICE.xml, which a service loads by itself",
        "qsctl init orders.xml --template persistent",
        "qsctl init - --template request-reply",
    ),
)
def init(
    file: Annotated[
        str, typer.Argument(help="File to write; -: standard output. The default one is loaded automatically.")
    ] = "USER_QUEUING_SERVICE.xml",
    template: Annotated[
        Template, typer.Option("--template", "-t", help="Starter configuration to write.")
    ] = Template.MINIMAL,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replacement of an existing file.")] = False,
) -> StarterFile:
    """Write a commented configuration to start from."""
    text = shipped(f"fixtures/config/starter/{template}.xml").read_text(encoding="utf-8")
    written(text, file, force=force)
    refusals = _refusals(template)
    if refusals and file == "-":
        note(f"qsctl serve refuses this file: {'; '.join(refusals)}.")
    return StarterFile(template, file, text, refusals)


def _refusals(template: Template) -> tuple[str, ...]:
    """Why the template is not served: the judgement of `validate` and `serve`."""
    from qsctl.config.load import judge_files
    from qsctl.config.problems import unsupported

    path = shipped(f"fixtures/config/starter/{template}.xml")
    judgement = judge_files([path], variables={}, environment={}, working_directory=Path.cwd(), default_files=False)
    return tuple(problem.message for problem in unsupported(judgement.problems))
