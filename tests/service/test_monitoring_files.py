"""The dashboard and the alert rules use the metrics, labels and events that a service has, and no others."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import qsctl
from qsctl.core.events import Event
from qsctl.service.metrics import Figures, documented, families

FOLDER = Path(qsctl.__file__).parent / "monitoring"
DASHBOARD = json.loads((FOLDER / "grafana-dashboard.json").read_text())
RULES = yaml.safe_load((FOLDER / "prometheus-alerts.yml").read_text())["groups"][0]["rules"]

OF_THE_SCRAPE = {"job", "instance"}
ANY = {"Q": 0}
METRICS = {
    sample.name: set(sample.labels) | OF_THE_SCRAPE
    for family in families([Figures({("sent", "Q"): 0}, ANY, ANY, 0, 0, 0, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY)])
    for sample in family.samples
} | {"up": OF_THE_SCRAPE}
EVENTS = {each.__struct_config__.tag for each in typing.get_args(Event)}

METRIC = re.compile(r"\b(qsctl_[a-z_]+|up)\b(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
MATCHER = re.compile(r'([a-z_]+)\s*(?:=~|!=|!~|=)\s*"([^"]*)"')


def expressions() -> Iterator[Any]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield pytest.param(target["expr"], id=f"{panel['title']}: {target['legendFormat']}")
    for rule in RULES:
        yield pytest.param(rule["expr"], id=rule["alert"])


@pytest.mark.parametrize("expression", list(expressions()))
def test_expression_uses_what_there_is(expression: str) -> None:
    used = METRIC.findall(expression)
    assert used
    labels = set()
    for name, matchers in used:
        assert name in METRICS, f"there is no metric {name}"
        for label, value in MATCHER.findall(matchers):
            assert label in METRICS[name], f"{name} has no label {label}"
            if label == "event":
                assert value in EVENTS, f"there is no event {value}"
        labels |= METRICS[name]
    for group in GROUPED.findall(expression):
        assert {each.strip() for each in group.split(",")} <= labels
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")


def test_a_counter_is_only_read_as_a_rate() -> None:
    for parameter in expressions():
        (expression,) = parameter.values
        for found in METRIC.finditer(expression):
            if found[1].endswith("_total"):
                before = expression[: found.start()]
                assert before.endswith(("rate(", "increase(")), expression


def test_every_metric_of_a_queue_is_on_the_dashboard_but_the_epoch() -> None:
    shown = {name for parameter in expressions() for name, _ in METRIC.findall(parameter.values[0])}
    assert set(METRICS) - shown == {"qsctl_queue_epoch"}


def test_legends_and_texts_name_labels_that_there_are() -> None:
    known = {"queue", *OF_THE_SCRAPE}
    texts = [target["legendFormat"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    for text in texts:
        assert set(re.findall(r"\{\{(\w+)\}\}", text)) <= known
    for rule in RULES:
        assert {"alert", "expr", "for", "labels", "annotations"} == set(rule)
        assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= known
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_panels_have_places_and_numbers_of_their_own() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in DASHBOARD["panels"])


def test_documented_metrics_are_those_that_are_served() -> None:
    listed = {name: set(filter(None, labels.split(", "))) | OF_THE_SCRAPE for name, _, labels, _ in documented()}
    assert listed == {name: labels for name, labels in METRICS.items() if name != "up"}
