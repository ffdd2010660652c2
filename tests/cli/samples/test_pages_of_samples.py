"""The pages `samples`, `bridge`, `health` and `bench`: their tours are run, and their tables name what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import qsctl
from qsctl.cli.monitoring._check_values import DEAD_LETTER_MEASURES, SERVICE_MEASURES
from tests.commands import command_line
from tests.documents import page, tour


def run(command: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == "qsctl"
    done = CliRunner().invoke(command_line(), arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return (done.stdout + done.stderr).rstrip("\n")


def without_what_varies(text: str) -> str:
    return re.sub(r"(?<=incarnation)( +)[0-9a-f]{16}\b", r"\1INCARNATION", re.sub(r"\b1\d{18}\b", "INSTANT", text))


@pytest.mark.parametrize("name", ["samples", "bridge", "health"])
def test_tour_prints_what_its_page_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = tour(page(name))
    assert len(commands) >= 6
    for command, output in commands:
        assert without_what_varies(run(command)) == without_what_varies(output), command


def test_page_of_health_names_every_alert_and_measure() -> None:
    text = page("health")
    rules = yaml.safe_load((Path(qsctl.__file__).parent / "monitoring" / "prometheus-alerts.yml").read_text())
    named = set(re.findall(r"Qsctl[A-Za-z]+", text))
    assert named == {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    for measure in (*SERVICE_MEASURES, *DEAD_LETTER_MEASURES[1:]):
        assert f"`{measure}`" in text


def test_page_of_bench_names_the_options_there_are() -> None:
    shown = run("qsctl bench --help")
    for option in set(re.findall(r"`(--[a-z0-9-]+)", page("bench"))):
        assert option in shown, option
