"""The dashboard and the alert rules use the metrics, labels and events that a service has, and no others."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import qsctl
from qsctl.core.events import Event
from qsctl.core.statistics.status import MemberStatus
from qsctl.instant import SECOND_NS
from qsctl.service.process.metrics import MEMBER_ROWS_MAX, ServiceFigures, documented, families

FOLDER = Path(qsctl.__file__).parent / "monitoring"
DASHBOARD = json.loads((FOLDER / "grafana-dashboard.json").read_text())
RULES = yaml.safe_load((FOLDER / "prometheus-alerts.yml").read_text())["groups"][0]["rules"]

OF_THE_SCRAPE = {"job", "instance"}
ANY = {"Q": 0}
OF_A_QUEUE = {
    field: ANY
    for field in ServiceFigures._fields
    if field
    not in {
        "events",
        "refused",
        "malformed",
        "unexpected",
        "time_to_done",
        "refreshed_at_ns",
        "state",
        "refused_frames",
        "skipped",
        "limits",
        "usage",
        "work_ns",
        "held_back",
        "denied",
        "members",
        "unsigned",
        "refused_letters",
    }
}
OF_A_SERVICE: dict[str, Any] = {
    "limits": {"queues": 1},
    "usage": {"queues": 1},
    "work_ns": {"commands": 1},
    "members": {"Q": (MemberStatus("A", True, "slave", 9, 8, 1, 20, 30, 40, 6, "ok", 5),)},
}
METRICS = {
    sample.name: set(sample.labels) | OF_THE_SCRAPE
    for family in families([ServiceFigures({}, refused=0, malformed=0, unexpected=0, **OF_A_QUEUE, **OF_A_SERVICE)])
    for sample in family.samples
} | {"up": OF_THE_SCRAPE}
PARTS_OF_A_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")
EVENTS = {each.__struct_config__.tag for each in typing.get_args(Event)}


def event(kind: str) -> str:
    return f'qsctl_queue_events_total{{job="qsctl",instance="a",queue="Q",event="{kind}"}}'


def gauge(name: str) -> str:
    return f'qsctl_queue_{name}{{job="qsctl",instance="a",queue="Q"}}'


METRIC = re.compile(r"\b(qsctl_[a-z_]+|up)\b(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
MATCHER = re.compile(r'([a-z_]+)\s*(?:=~|!=|!~|=)\s*"([^"]*)"')


def base(name: str) -> str:
    """The name of a metric, without the suffix of a part of a histogram."""
    return PARTS_OF_A_HISTOGRAM.sub("", name)


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
    shown = {base(name) for parameter in expressions() for name, _ in METRIC.findall(parameter.values[0])}
    assert set(map(base, METRICS)) - shown == {"qsctl_queue_epoch"}


def test_legends_and_texts_name_labels_that_there_are() -> None:
    known = {"queue", "member", "version", "limit", "work", "cause", *OF_THE_SCRAPE}
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
    assert listed == {base(name): labels - {"le"} for name, labels in METRICS.items() if name != "up"}


def test_every_counter_of_a_queue_and_every_event_is_served_before_it_happens() -> None:
    (events,) = (
        family for family in families([ServiceFigures({}, ANY, ANY, 0, 0, 0, ANY, ANY, ANY)]) if "events" in family.name
    )
    assert {each.labels["event"]: each.value for each in events.samples} == dict.fromkeys(EVENTS - {"passed"}, 0)


def gauges_of_members(*members: MemberStatus) -> dict[str, dict[str, float]]:
    figures = ServiceFigures({}, ANY, ANY, 0, 0, 0, ANY, ANY, ANY, members={"Q": members})
    return {
        family.name.removeprefix("qsctl_member_"): {each.labels["member"]: each.value for each in family.samples}
        for family in families([figures])
        if family.name.startswith("qsctl_member_")
    }


def test_gauges_of_a_member_omit_what_is_unknown() -> None:
    known = MemberStatus("A", True, "slave", 9, 8, 1, 20, SECOND_NS // 2, 2 * SECOND_NS, 6, "hangs", 5)
    found = gauges_of_members(known, MemberStatus("B", False))
    assert {name: values["A"] for name, values in found.items()} == {
        "is_voter": 1, "is_up": 1, "durable_index": 9, "applied_index": 8, "lag_entries": 1, "lag_bytes": 20,
        "lag_seconds": 0.5, "silent_seconds": 2, "version": 6, "disk_hangs": 1, "master_priority": 5,
    }  # fmt: skip
    assert {name: values["B"] for name, values in found.items() if "B" in values} == {"is_voter": 0, "is_up": 0}


def test_gauges_of_members_are_bounded_in_number() -> None:
    members = [MemberStatus(str(number), True, "slave", 1) for number in range(MEMBER_ROWS_MAX + 1)]
    assert len(gauges_of_members(*members)["durable_index"]) == MEMBER_ROWS_MAX


FIRST_EVENTS = {
    "QsctlServiceDown": {'up{job="qsctl",instance="a"}': "1x9 0x20"},
    "QsctlDeadLetters": {event("dead_lettered"): "0x9 1x20"},
    "QsctlUndeliverable": {gauge("undeliverable_samples"): "0x9 1x20"},
    "QsctlQueueFull": {gauge("waiting_samples"): "0x30", event("queue_full"): "0x9 1x20"},
    "QsctlRefusedSamples": {event("bounced"): "0x9 1+1x20"},
    "QsctlUnauthorizedCommands": {
        'qsctl_unauthorized_commands_total{job="qsctl",instance="a",cause="unsigned"}': "0x9 1x20"
    },
    "QsctlRefusedLetters": {'qsctl_refused_letters_total{job="qsctl",instance="a",cause="unsigned"}': "0x9 1x20"},
    "QsctlNothingLeaves": {gauge("samples"): "0x5 1x40", event("removed"): "0x45"},
    "QsctlRedeliveries": {event("returned"): "0x9 60+60x30", event("sent"): "0x9 70+70x30"},
    "QsctlProducersHeldBack": {'qsctl_producers_held_back{job="qsctl",instance="a"}': "0x9 1x20"},
    "QsctlStorageTrouble": {gauge("storage_trouble"): "0x9 1x20"},
    "QsctlNoQuorum": {gauge("has_quorum"): "1x9 0x20"},
    "QsctlReplicaBehind": {gauge("replication_lag_entries"): "0x9 20000x30"},
    "QsctlUnexpectedErrors": {'qsctl_unexpected_errors_total{job="qsctl",instance="a"}': "0x9 1x20"},
}
"""By alert, what a scrape a minute sees: the first event of its kind comes in minute 10."""


def test_every_alert_has_a_first_event() -> None:
    assert FIRST_EVENTS.keys() == {rule["alert"] for rule in RULES}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool of Debian's package prometheus is not installed")
def test_every_alert_fires_on_its_first_event_and_not_before(tmp_path: Path) -> None:
    without_texts = [{key: value for key, value in rule.items() if key != "annotations"} for rule in RULES]
    rules = {"groups": [{"name": "qsctl", "rules": without_texts}]}
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    tests = []
    for rule in RULES:
        waits = 2 + int(rule["for"].removesuffix("m"))
        series = [{"series": name, "values": values} for name, values in FIRST_EVENTS[rule["alert"]].items()]
        label = {"queue": "Q"} if "queue" in series[0]["series"] else {}
        job = {"job": "qsctl"} if "by (job, queue)" in rule["expr"] else {"instance": "a"}
        if "by (" not in rule["expr"]:
            job |= {"job": "qsctl"}
        if ", cause)" in rule["expr"]:
            label["cause"] = "unsigned"
        quiet, fires = 5, 10 + waits
        tests.append(
            {
                "interval": "1m",
                "input_series": series,
                "alert_rule_test": [
                    {"eval_time": f"{quiet}m", "alertname": rule["alert"], "exp_alerts": []},
                    {
                        "eval_time": f"{fires}m",
                        "alertname": rule["alert"],
                        "exp_alerts": [{"exp_labels": {**job, **label, **rule["labels"]}}],
                    },
                ],
            }
        )
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", tmp_path / "tests.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
