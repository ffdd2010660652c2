"""`qsctl init`: write a commented starter configuration, or a scenario of a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli._output_files import written
from qsctl.cli.command import Commands
from qsctl.cli.output.render import note
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.simulation.options.captures import Captures
from qsctl.cli.simulation.options.foreign_queue import ForeignQueueOptions, drafted, read_in
from qsctl.errors import UsageError
from qsctl.shipped import shipped

if TYPE_CHECKING:
    from qsctl.sim.brokers.draft import DraftValue
    from qsctl.sim.captured.scenario import CapturedParameter

COMMANDS: Final = Commands(panel=SERVICE_PANEL)

DEFAULT_FILE: Final = "USER_QUEUING_SERVICE.xml"


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
    """The starter file that was written, or its text."""

    template: Template | None
    file: str
    text: str
    refusals: tuple[str, ...] = ()

    field_help: ClassVar[Mapping[str, str]] = {
        "template": "the template it was made from; null: a scenario of a broker",
        "file": "the file written; - for standard output",
        "text": "what was written",
        "refusals": "why `qsctl serve` refuses it in this version; empty where it does not",
        "source": "-o json and yaml: of a scenario, what was captured or listed",
        "broker": "-o json and yaml: of a scenario of a queue, whose preset it has",
        "clients": "-o json and yaml: of a scenario, the number of captured clients",
        "groups": "-o json and yaml: of a scenario, the number of its groups",
        "parameters": "-o json and yaml: of a scenario, what was not captured: path, value, derived or assumed, why",
        "notes": "-o json and yaml: of a scenario, remarks on the captures",
    }

    def blocks(self) -> Sequence[Block]:
        """Return the file's name and the next steps; the text itself if it goes to standard output."""
        if self.file == "-":
            return [TextBlock(self.text.rstrip("\n"))]
        blocks = [TextBlock(f"Wrote {self.file}.", "good"), TextBlock(f"Check it: qsctl validate {self.file}")]
        if self.refusals:
            blocks.append(TextBlock(f"qsctl serve refuses this file: {'; '.join(self.refusals)}.", "bad"))
        return blocks


@dataclass(frozen=True)
class BrokerScenario(StarterFile):
    """A scenario of a broker's clients from captured listings, and the origin of its values."""

    parameters: tuple[CapturedParameter, ...] = ()
    source: str = ""
    clients: int = 0
    groups: int = 0
    notes: tuple[str, ...] = ()

    def document(self) -> Plain:
        """Return the file, and the parameters that were not captured."""
        return {
            "template": None,
            **fields_of(self, "file", "text", "source", "clients", "groups"),
            "refusals": [],
            "parameters": [fields_of(each) for each in self.parameters],
            "notes": list(self.notes),
        }

    def blocks(self) -> Sequence[Block]:
        """Return the file's name, the assumed values, and the next steps."""
        if self.file == "-":
            return [TextBlock(self.text.rstrip("\n"))]
        columns = [
            Column("path", "Parameter"), Column("value", "Value", "right"), Column("origin", "Origin"),
            Column("why", "Why"),
        ]  # fmt: skip
        rows: list[Row] = [fields_of(each) for each in self.parameters[:_SHOWN]]
        blocks: list[Block] = [
            TextBlock(f"Wrote {self.file}: {self.clients} clients of {self.source} in {self.groups} groups.", "good"),
            TableBlock(columns, rows, title="Not captured; change it in the file, or with --set"),
        ]
        if len(self.parameters) > _SHOWN:
            blocks.append(TextBlock(f"and {len(self.parameters) - _SHOWN} more: -o json has all.", "faint"))
        blocks += [TextBlock(each, "faint") for each in self.notes]
        captures = " ".join(f"--from-broker {each}" for each in self.source.split(" and "))
        next_steps = f"Simulate it: qsctl simulate {self.file} --by group"
        return [
            *blocks,
            TextBlock(f"{next_steps}\nCompare it with the captures: qsctl calibrate {self.file} {captures}"),
        ]


@dataclass(frozen=True)
class QueueScenario(StarterFile):
    """A scenario of a queue of another broker, and the origin of its values."""

    broker: str = ""
    values: tuple[DraftValue, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()

    def document(self) -> Plain:
        """Return the file, and the origin of each value."""
        return {
            "template": None,
            **fields_of(self, "file", "text", "source", "broker"),
            "refusals": [],
            "parameters": [
                {"path": _set_path(each), "value": each.text, "origin": str(each.origin), "why": each.why}
                for each in self.values
            ],
            "notes": list(self.notes),
        }

    def blocks(self) -> Sequence[Block]:
        """Return the file's name, the values that are not known, and the next steps."""
        if self.file == "-":
            return [TextBlock(self.text.rstrip("\n"))]
        columns = [
            Column("setting", "Setting"), Column("value", "Value", "right"), Column("origin", "Origin"),
            Column("path", "Path"),
        ]  # fmt: skip
        of_user = [each for each in self.values if str(each.origin) in {"given", "listed", "assumed"}]
        rows: list[Row] = [
            {"setting": each.word, "value": each.text or "yes", "origin": str(each.origin), "path": _set_path(each)}
            for each in of_user
        ]
        listed = f" as {self.source} lists it" if self.source else ""
        defaults = len(self.values) - len(of_user)
        return [
            TextBlock(f"Wrote {self.file}: a queue of {self.broker}{listed}.", "good"),
            TableBlock(columns, rows, title="What is known of it; change it in the file, or with --set PATH=VALUE"),
            TextBlock(f"and {defaults} defaults and ways of {self.broker}: qsctl help broker-{self.broker}.", "faint"),
            *(TextBlock(each, "faint") for each in self.notes),
            TextBlock(f"Simulate it: qsctl simulate {self.file}"),
        ]


def _set_path(value: DraftValue) -> str:
    from qsctl.sim.brokers.draft import set_path

    return set_path(value.path)


_SHOWN: Final = 30


@COMMANDS.command(
    "init",
    examples=(
        "qsctl init  # USER_QUEUING_SERVICE.xml, which a service loads by itself",
        "qsctl init orders.xml --template persistent",
        "qsctl init - --template request-reply",
        "qsctl init scenario.xml --from-broker https://broker.example:943  # a scenario of its clients",
        "qsctl init scenario.xml --from-broker before.txt --from-broker after.txt --interval 60s",
        "qsctl init orders.xml --from queues.txt --queue orders  # of `rabbitmqctl list_queues`",
        "qsctl init jobs.xml --broker sqs --arrivals 0.033/s --work lognormal:45s,p99=280s",
    ),
)
def init(
    file: Annotated[
        str, typer.Argument(help="File to write; -: standard output. The default one is loaded automatically.")
    ] = DEFAULT_FILE,
    template: Annotated[
        Template, typer.Option("--template", "-t", help="Starter configuration to write.")
    ] = Template.MINIMAL,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace an existing file.")] = False,
    *,
    captures: Captures,
    queue: ForeignQueueOptions,
) -> StarterFile:
    """Write a commented configuration to start from, or a scenario of a broker.

    With --from-broker it is one of a Solace broker's clients, with what was captured: clients, profiles, rates, sizes,
    round trips, what limits those in trouble. With --broker or --from it is one queue of another broker, with the
    limits and defaults that it has. What is not known is assumed, and listed with its path.
    """
    if queue.is_given:
        if captures.from_broker:
            raise UsageError("--from-broker and a queue of another broker are both given", remedy="Give one of them.")
        return _of_queue("scenario.xml" if file == DEFAULT_FILE else file, queue, captures.seconds(), force=force)
    if queue.stray:
        raise UsageError(f"{queue.stray} is of a queue of another broker", remedy="Name it with --broker or --from.")
    if captures.from_broker:
        return _of_broker("scenario.xml" if file == DEFAULT_FILE else file, captures, force=force)
    text = shipped(f"fixtures/config/starter/{template}.xml").read_text(encoding="utf-8")
    written(text, file, force=force)
    refusals = _refusals(template)
    if refusals and file == "-":
        note(f"qsctl serve refuses this file: {'; '.join(refusals)}.")
    return StarterFile(template, file, text, refusals)


def _of_broker(file: str, captures: Captures, *, force: bool) -> StarterFile:
    from qsctl.sim.captured.scenario import scenario_of
    from qsctl.sim.scenario.forms.text import scenario_text
    from qsctl.sim.scenario.rules.scenario import check_rules

    observation, profiles = captures.read()
    made = scenario_of(observation, profiles)
    check_rules(made.scenario)
    text = scenario_text(made.scenario)
    written(text, file, force=force)
    return BrokerScenario(
        None, file, text, (), made.parameters, captures.source, len(observation.clients), len(made.groups),
        observation.notes,
    )  # fmt: skip


def _of_queue(file: str, queue: ForeignQueueOptions, seconds: float | None, *, force: bool) -> StarterFile:
    found = queue.read(seconds)
    folder = Path() if file == "-" else Path(file).parent
    draft = drafted(queue, found, {})
    text = draft.scenario_text(folder)
    read_in(text, folder)  # what breaks a rule is not written
    written(text, file, force=force)
    return QueueScenario(
        None, file, text, (), str(draft.broker), draft.values, queue.source, found.notes
    )  # fmt: skip


def _refusals(template: Template) -> tuple[str, ...]:
    """Return the reasons why a starter configuration is not served, as `validate` and `serve` would report them."""
    from qsctl.config.load import judge_files
    from qsctl.declared.problems import unsupported

    path = shipped(f"fixtures/config/starter/{template}.xml")
    judgement = judge_files([path], variables={}, environment={}, working_directory=Path.cwd(), default_files=False)
    return tuple(problem.message for problem in unsupported(judgement.problems))
