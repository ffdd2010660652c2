"""Files of alerts in the form of default.alrt, evaluated on a database and on listings of a timer."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.cli.monitoring._alert_file import Alert, read_alerts
from qsctl.cli.monitoring._check_engine import ENGINE_MEASURES
from qsctl.errors import InvalidInput
from tests.cli.monitoring.watched import run, site, timer

FORM = """prologue
    type: alert
    version: 6.2
end_prologue

{ALERT
    { NAME depth }
    { VALUE {outbound queue depth} }
    { SOURCE {lab rad} }
    { MODE actual }
    { WITH -1 }
    { COMP {COMPARISON} }
    { FOR DURATION }
    { WINDOW {* * * * * *} }
    { HOST {} }
    { ACTION {
        { notify {} {appended message} }
    } }
}
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return site(tmp_path / "site.recovery")


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "default.alrt"
    path.write_text(text, encoding="utf-8")
    return path


def form(comparison: str = "> 5", duration: str = "once") -> str:
    return FORM.replace("COMPARISON", comparison).replace("DURATION", duration)


def value(word: str, comparison: str = "> 5", source: str = "{lab rad}") -> str:
    return form(comparison).replace("{outbound queue depth}", word).replace("{lab rad}", source)


def body(comparison: str, duration: str = "once") -> str:
    return form(comparison, duration).partition("end_prologue")[2]


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        (form(), 2, "CRITICAL: depth: queue_messages > 5: lab is 10"),
        (form(">= 11"), 0, "OK: none of 1 alerts fires"),
        (form("== 10"), 2, "lab is 10"),
        (form().replace("WITH -1", "WITH 2"), 0, "none of 1 alerts fires"),
        (form("< 100").replace("WITH -1", "WITH 2"), 2, "lab is 10, rad is 0"),
        (value("{error count}"), 0, "none of 1"),
        (value("{error count}", "> 4"), 2, "lab is 5"),
        (value("{error count}", "> 4", "*"), 2, "error database is 5"),
        (value("{Recovery  Database COUNT}", "> 10", "*"), 2, "is 11"),
        (value("{last receive}", "> 40", "orders"), 2, "orders is 49"),
        (value("oldest_age_s"), 2, "lab is 59"),
        (value("status"), 1, "line 6, depth: VALUE status is not supported"),
        (form("== down"), 1, "COMP '== down' is not a comparison with a number"),
        (form(duration="{a while}"), 1, "FOR 'a while' is not a duration"),
        (form().replace("{* * * * * *}", "8-17/*/*/*"), 1, "WINDOW '8-17/*/*/*' is not always"),
        (form().replace("MODE actual", "MODE average"), 1, "MODE 'average' is not actual"),
        (value("growth_per_min"), 1, "a rate needs two listings"),
        (form() + body("> 1000"), 2, "lab is 10"),
        ("{ALERT { NAME x }", 3, "not closed"),
        ("{ALARM {NAME x}}", 3, "this is not an alert"),
        ("", 3, "no alert in it"),
    ],
)  # fmt: skip
def test_alerts_are_evaluated_or_named(database: Path, tmp_path: Path, text: str, status: int, words: str) -> None:
    done = run("check", "engine", database, "--alerts", write(tmp_path, text))
    assert done.exit_code == status, done.stdout
    assert words in done.stdout


def test_an_alert_with_a_duration_fires_when_it_held_all_that_time(tmp_path: Path) -> None:
    folder = timer(tmp_path / "dumps", [9, 3, 8, 9, 7])
    for duration, status in (
        ("once", 2),
        ("{nmin 2}", 2),
        ("{nmin 3}", 0),
        ("{90 sec}", 2),
        ("{1 hour}", 0),
        ("121", 0),
    ):
        alerts = write(tmp_path, form(duration=duration))
        assert run("check", "engine", folder, "--alerts", alerts).exit_code == status, duration
    rate = value("growth_per_min", "< 0")
    assert run("check", "engine", folder, "--alerts", write(tmp_path, rate)).exit_code == 2
    stale = run("check", "engine", folder, "--alerts", write(tmp_path, form()), "--max-age", "5min")
    assert (stale.exit_code, "old, allowed is 5min" in stale.stdout) == (3, True)


def test_a_user_defines_the_meaning_of_a_word(database: Path, tmp_path: Path) -> None:
    alerts = write(tmp_path, value("opqd"))
    assert run("check", "engine", database, "--alerts", alerts).exit_code == 1
    assert run("check", "engine", database, "--alerts", alerts, "--alert-value", "OPQD=queue_messages").exit_code == 2
    wrong = run("check", "engine", database, "--alerts", alerts, "--alert-value", "opqd=depth")
    assert (wrong.exit_code, "WORD=MEASURE" in wrong.stdout) == (3, True)
    assert run("check", "engine", database, "--alerts", tmp_path / "none").exit_code == 3


def test_every_alert_of_a_file_is_read_with_its_line(tmp_path: Path) -> None:
    read = read_alerts(write(tmp_path, form() + body("<= 3.5", "{nhour 2}")), {}, list(ENGINE_MEASURES))
    assert [(each.line, each.sources, each.relation, each.limit, each.for_s) for each in read.alerts] == [
        (6, ("lab", "rad"), ">", 5.0, 0), (22, ("lab", "rad"), "<=", 3.5, 7200),
    ]  # fmt: skip
    assert all(isinstance(each, Alert) for each in read.alerts)
    with pytest.raises(InvalidInput, match=r"default\.alrt:1"):
        read_alerts(write(tmp_path, '"x" y'), {}, [])
