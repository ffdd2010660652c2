"""`qsctl metrics …`: the metrics of a service for Prometheus, with a dashboard and alert rules that use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.results import Block, LinesBlock, ListResult, Plain, Result, Row, TextBlock
from qsctl.cli.output_files import written

COMMANDS: Final = Commands(
    panel="Monitor", group="metrics", help="Metrics of a service for Prometheus: names, a dashboard, alert rules."
)

FOLDER: Final = Path(__file__).resolve().parents[2] / "monitoring"

OutOption = Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.", show_default="standard output")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwriting of a file that is there.")]


@dataclass(frozen=True)
class MetricList(ListResult):
    """The metrics that a service serves."""

    metrics: tuple[tuple[str, str, str, str], ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "name": "name of the metric",
        "type": "counter or gauge",
        "labels": "its labels",
        "help": "what it counts or measures",
    }

    def rows(self) -> list[Row]:
        """One row a metric."""
        return [dict(zip(self.field_help, each, strict=True)) for each in self.metrics]


@dataclass(frozen=True)
class MonitoringFile(Result):
    """A file that another program reads."""

    text: str
    file: str

    field_help: ClassVar[Mapping[str, str]] = {"text": "the file's content", "file": "where it was written"}

    def document(self) -> Plain:
        """The content, or where it is."""
        return {"file": self.file} if self.file else {"text": self.text}

    def blocks(self) -> list[Block]:
        """The content as it is, or a sentence."""
        return [TextBlock(f"{self.file} is written", "good")] if self.file else [LinesBlock(_lines(self.text))]


@COMMANDS.command("list", examples=("qsctl metrics list", "qsctl metrics list -o json"))
def list_metrics() -> MetricList:
    """Show the metrics that `qsctl serve --metrics-port` serves, with their labels."""
    from qsctl.service.metrics import documented

    return MetricList(tuple(documented()))


@COMMANDS.command(
    "dashboard",
    examples=(
        "qsctl metrics dashboard --out qsctl-dashboard.json  # import it in Grafana",
        "qsctl metrics dashboard > qsctl-dashboard.json",
    ),
)
def dashboard(out: OutOption = None, force: ForceOption = False) -> MonitoringFile:
    """Write a dashboard for Grafana: depth, rates, consumers, redeliveries, dead letters, replicas, trouble."""
    return _file("grafana-dashboard.json", out, force=force)


@COMMANDS.command(
    "alerts",
    examples=(
        "qsctl metrics alerts --out /etc/prometheus/rules/qsctl.yml",
        "qsctl metrics alerts > qsctl.yml",
    ),
)
def alerts(out: OutOption = None, force: ForceOption = False) -> MonitoringFile:
    """Write alert rules for Prometheus: a service that is gone, dead letters, full queues, disks, replicas."""
    return _file("prometheus-alerts.yml", out, force=force)


def _file(name: str, out: Path | None, *, force: bool) -> MonitoringFile:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return MonitoringFile(text, written(text, out, force=force))


def _lines(text: str) -> Iterable[str]:
    return text.splitlines()
