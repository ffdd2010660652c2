"""`qsctl metrics …`: the metrics of a service for Prometheus, with a dashboard and alert rules that use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from qsctl.cli.command import Commands
from qsctl.cli.output.results import ListResult, Row
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.shipped_file import ForceOption, OutOption, ShippedFile, shipped_file

COMMANDS: Final = Commands(
    panel=SAMPLES_PANEL, group="metrics", help="Metrics of a service for Prometheus: names, a dashboard, alert rules."
)

FOLDER: Final = Path(__file__).resolve().parents[2] / "monitoring"


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
def dashboard(out: OutOption = None, force: ForceOption = False) -> ShippedFile:
    """Write a dashboard for Grafana: depth, rates, consumers, redeliveries, dead letters, replicas, trouble."""
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
