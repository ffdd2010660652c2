"""`qsctl metrics …`: the metrics of a service or an engine for Prometheus, with a dashboard and alert rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from qsctl.cli._output_files import replace_text
from qsctl.cli._shipped_file import ForceOption, OutOption, ShippedFile, shipped_file
from qsctl.cli.command import Commands
from qsctl.cli.engine.looks import LookOptions, SourcesArgument, WatchedEngine
from qsctl.cli.output.declared import DeclaredResult
from qsctl.cli.output.results import Block, LinesBlock, ListResult, Plain, Row, TextBlock
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.errors import ExitStatus

COMMANDS: Final = Commands(
    panel=SAMPLES_PANEL,
    group="metrics",
    help="Metrics of a service or engine for Prometheus: names, a dashboard, alert rules.",
)

FOLDER: Final = Path(__file__).resolve().parents[2] / "monitoring"


@dataclass(frozen=True)
class MetricList(ListResult):
    """The metrics that a service exports."""

    metrics: tuple[tuple[str, str, str, str], ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "name": "name of the metric",
        "type": "counter or gauge",
        "labels": "its labels",
        "help": "what it counts or measures",
    }

    def rows(self) -> list[Row]:
        """Return one row per metric."""
        return [dict(zip(self.field_help, each, strict=True)) for each in self.metrics]


@COMMANDS.command("list", examples=("qsctl metrics list", "qsctl metrics list -o json"))
def list_metrics() -> MetricList:
    """Show the metrics that `qsctl serve --metrics-port` serves, with their labels."""
    from qsctl.service.process.metrics import documented

    return MetricList(tuple(documented()))


@COMMANDS.command(
    "dashboard",
    examples=(
        "qsctl metrics dashboard --out qsctl-dashboard.json  # import it in Grafana",
        "qsctl metrics dashboard > qsctl-dashboard.json",
    ),
)
def dashboard(out: OutOption = None, force: ForceOption = False) -> ShippedFile:
    """Write a dashboard for Grafana: depth, rates, consumers, redeliveries, dead letters, replicas, faults."""
    return shipped_file(FOLDER / "grafana-dashboard.json", out, force=force)


@COMMANDS.command(
    "alerts",
    examples=(
        "qsctl metrics alerts --out /etc/prometheus/rules/qsctl.yml",
        "qsctl metrics alerts > qsctl.yml",
    ),
)
def alerts(out: OutOption = None, force: ForceOption = False) -> ShippedFile:
    """Write alert rules for Prometheus: a service that is gone, dead letters, full queues, disks, replicas."""
    return shipped_file(FOLDER / "prometheus-alerts.yml", out, force=force)


@dataclass(frozen=True)
class EngineMetrics(DeclaredResult):
    """The metrics of an engine, printed or written."""

    watched: WatchedEngine
    text: Annotated[str, "the metrics in the text format of Prometheus"]
    file: Annotated[str, "where they were written"]

    @property
    def exit_status(self) -> ExitStatus:
        """Return DAMAGED if a part could not be read, else DONE."""
        return ExitStatus.DAMAGED if self.watched.damage else ExitStatus.DONE

    def document(self) -> Plain:
        """Return the text, or the path that it was written to."""
        return {"file": self.file} if self.file else {"text": self.text}

    def blocks(self) -> list[Block]:
        """Return the text unchanged, or a sentence with the path."""
        return [TextBlock(f"{self.file} is written", "good")] if self.file else [LinesBlock(self.text.splitlines())]


@COMMANDS.command(
    "engine",
    examples=(
        "qsctl metrics engine hospital.recovery",
        "qsctl metrics engine /var/dumps --out /var/lib/node_exporter/engine.prom  # by a timer, for the node exporter",
    ),
)
def engine(
    sources: SourcesArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write, in one step: a reader never sees half of it; an existing file is replaced.",
            show_default="standard output",
        ),
    ] = None,
    *,
    options: LookOptions,
) -> EngineMetrics:
    """Print the figures of an integration engine's databases for Prometheus, or write them for its node exporter."""
    from qsctl.cli.monitoring._engine_metrics import engine_metrics

    watched = options.look(sources)
    text = engine_metrics(watched)
    if out is not None:
        replace_text(out, text)
    return EngineMetrics(watched, text, "" if out is None else str(out))
