"""`qsctl engine run` and `crash-points`: a recovery database over several runs, kills and wrong input."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from qsctl.core.integration.message import Message
from qsctl.errors import ExitStatus
from qsctl.sim.engine.recovery_store import read_recovery_database
from tests.commands import command_line
from tests.patience import PATIENCE_S, eventually
from tests.processes import running

SMALL = """<scenario name="small" model="integration" horizon="20s">
  <engine icl-delay="1ms">
    <process name="p">
      <thread name="in"><inbound logging="$(LOGGING)"><constant rate="10/s"/>
        <procedure does="error" every="40" text="no PID"/>
        <route><detail to="fast slow"/></route></inbound></thread>
      <thread name="fast"><outbound><constant rate="100/s"/></outbound></thread>
      <thread name="slow"><outbound><constant rate="5/s"/></outbound></thread>
    </process>
  </engine>
</scenario>
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGGING", "yes")
    path = tmp_path / "small.xml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command_line(), ["engine", *map(str, arguments)])


def document(*arguments: object) -> dict[str, Any]:
    done = run(*arguments, "-o", "json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_names_the_queue_where_messages_wait(small: Path) -> None:
    done = run("run", small)
    assert done.exit_code == 0
    assert "200 messages sent to it" in done.stdout
    assert "Messages wait in the outbound-post-TPS queue of slow: 95, the oldest for" in " ".join(done.stdout.split())


def test_runs_with_one_database_are_one_story(small: Path) -> None:
    first = document("run", small, "--database", "r.db", "--until", "8s")
    second = document("run", small, "--database", "r.db", "--until", "14s")
    last = document("run", small, "--database", "r.db", "--drain")
    assert (first["from_s"], first["until_s"], second["from_s"], last["from_s"]) == (0, 8, 8, 14)
    assert second["recovered"] == first["left"] > 0
    assert last["recovered"] == second["left"] > 0
    assert sum(each["offered"] for each in (first, second, last)) == 200
    assert sum(each["failed"] for each in (first, second, last)) == 5
    duplicates = second["possible_duplicates"] + last["possible_duplicates"]
    delivered = sum(each["delivered"] for each in (first, second, last))
    assert 2 * 195 <= delivered <= 2 * 195 + duplicates
    assert (last["left"], last["errors"]) == (0, 5)
    assert last["total"] == {"offered": 200, "delivered": delivered, "failed": 5, "lost": 0}
    assert {each.error_text for each in read_recovery_database(Path("r.db")).database.failed()} == {"no PID"}


def test_without_logging_an_end_loses_what_was_in_the_engine(small: Path) -> None:
    first = document("run", small, "--var", "LOGGING=no", "--database", "r.db", "--until", "10s")
    assert first["left"] == 0
    second = document("run", small, "--var", "LOGGING=no", "--database", "r.db", "--drain")
    assert second["recovered"] == 0
    lost = sum(each["length_messages"] for each in first["queues"]) + 1  # and the one that was being delivered
    assert first["delivered"] + second["delivered"] == 2 * 195 - lost
    assert (second["lost"], second["total"]["lost"]) == (lost, lost)


def test_an_engine_that_was_down_for_a_while_finds_its_senders_with_what_they_held(small: Path) -> None:
    document("run", small, "--database", "r.db", "--until", "5s")
    early = run("run", small, "--database", "r.db", "--from", "4s")
    assert (early.exit_code, "is before 5s, where the database ends" in early.output) == (ExitStatus.USAGE, True)
    after = document("run", small, "--database", "r.db", "--from", "15s", "--drain")
    assert (after["from_s"], after["offered"], after["total"]["offered"]) == (15, 150, 200)
    assert after["waiting_at_senders"] == 0


def held(path: Path) -> list[Message]:
    return read_recovery_database(path).database.messages()


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_engine_loses_nothing_that_was_answered(small: Path, signal_number: int) -> None:
    command = [sys.executable, "-m", "qsctl", "engine", "run", str(small), "--database", "r.db", "--speed", "5"]
    with running(command, cwd=small.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        eventually(lambda: Path("r.db").exists() and len(held(Path("r.db"))) > 3)
        refused = run("run", small, "--database", "r.db")
        assert refused.exit_code == ExitStatus.REFUSED
        assert "in use by another process" in refused.output
        process.send_signal(signal_number)
        process.wait(PATIENCE_S)
    left = held(Path("r.db"))
    after = document("run", small, "--database", "r.db", "--drain")
    assert after["recovered"] == len(left) > 0
    assert after["left"] == 0


STOPPED = """<scenario name="stopped" model="integration" horizon="300s">
  <engine>
    <process name="p">
      <thread name="in"><inbound><constant rate="2/s"/><route><detail to="out"/></route></inbound>STOP_IN</thread>
      <thread name="out"><outbound><constant rate="100/s"/></outbound>STOP_OUT</thread>
    </process>
  </engine>
</scenario>
"""


@pytest.mark.slow
@pytest.mark.parametrize("stopped", ["STOP_IN", "STOP_OUT"])
def test_a_killed_engine_goes_on_with_what_its_senders_hold_and_sends_nothing_twice(small: Path, stopped: str) -> None:
    """Two messages a second to a stopped thread: they wait at their sender, or behind the engine, when it is killed."""
    stop = '<stop start="1s" duration="200s"/>'
    text = STOPPED.replace(stopped, stop).replace("STOP_IN", "").replace("STOP_OUT", "")
    small.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "qsctl", "engine", "run", str(small), "--database", "r.db", "--speed", "20"]
    with running(command, cwd=small.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        eventually(lambda: Path("r.db").exists() and read_recovery_database(Path("r.db")).peers.at_ns > 20 * 10**9)
        process.kill()
        process.wait(PATIENCE_S)
    before = read_recovery_database(Path("r.db")).peers
    after = document("run", small, "--database", "r.db")
    assert after["from_s"] == before.at_ns / 1e9 > 20
    waiting = sum(len(each.sizes_bytes) for each in before.senders.values())
    assert (waiting > 30) == (stopped == "STOP_IN")
    assert after["offered"] + before.offered == 600
    assert after["total"] == {"offered": 600, "delivered": 600, "failed": 0, "lost": 0}
    assert (after["waiting_at_senders"], after["possible_duplicates"], after["left"]) == (0, 0, 0)


def test_crash_points_hold_and_show_what_recovery_did(small: Path) -> None:
    found = document("crash-points", small, "--set", "horizon=2s", "--no-nested")
    assert found["violations"] == []
    assert found["points"] > found["records"] > 100
    rows = {row["after"]: row for row in found["rows"]}
    assert rows["removal: translated"]["moved_on"] > 0
    assert rows["copy into partial queue"]["translated_again"] > 0
    shown = run("crash-points", small, "--set", "horizon=1s", "--every", "9")
    assert "All messages or no messages everywhere, none twice" in shown.stdout


def test_crash_points_exit_1_where_a_promise_is_broken(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qsctl.core.integration.database import Database

    monkeypatch.setattr(Database, "counts", lambda *_: True)
    done = run("crash-points", small, "--set", "horizon=2s", "--no-nested")
    assert done.exit_code == ExitStatus.NO
    assert "delivered twice without the flag of a possible duplicate" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("run", "nowhere"), ExitStatus.NOT_FOUND, "no such file and no ready scenario"),
        (("run", "burst"), ExitStatus.USAGE, "is of model solace, not integration"),
        (("crash-points", "burst"), ExitStatus.USAGE, "Name a scenario with an <engine>"),
        (("run", "small.xml", "--until", "soon"), ExitStatus.USAGE, "not a duration"),
        (("run", "small.xml", "--from", "30s"), ExitStatus.USAGE, "the run would begin at 30s, and ends at 20s"),
        (("run", "small.xml", "--database", "."), ExitStatus.NO, "is not a plain file"),
        (("run", "small.xml", "--database", "no/r.db"), ExitStatus.NOT_FOUND, "no such directory"),
        (("run", "small.xml", "--database", "small.xml"), ExitStatus.DAMAGED, "is not a recovery database"),
    ],
)
def test_wrong_input_is_one_error_with_its_status(
    small: Path, arguments: tuple[str, ...], status: ExitStatus, words: str
) -> None:
    before = small.read_text()
    done = run(*arguments)
    assert (done.exit_code, words in " ".join(done.output.split())) == (status, True), done.output
    assert small.read_text() == before


BROKEN = (
    (
        '<detail to="fast slow"/>',
        '<detail to="fats"/>',
        "there is no thread 'fats' with an outbound side; did you mean 'fast'?",
    ),
    ('<detail to="fast slow"/>', "<detail/>", "a route detail without a destination"),
    ("<route><detail", "<procedure does='reroute'/><route><detail", "does is reroute, which is not allowed here"),
    ('name="slow"', 'name="fast"', "a second <thread> named 'fast'"),
    ('does="error"', 'does="erorr"', "does is 'erorr'"),
    ('<constant rate="5/s"/>', "", "<outbound> has none of <poisson>, <constant>"),
    ('<constant rate="5/s"/>', '<constant rate="0/s"/>', "takes nothing"),
)


@pytest.mark.parametrize(("was", "becomes", "words"), BROKEN)
def test_a_wrong_scenario_is_reported_with_its_line(small: Path, was: str, becomes: str, words: str) -> None:
    small.write_text(SMALL.replace(was, becomes), encoding="utf-8")
    done = run("run", small)
    assert done.exit_code == ExitStatus.NO
    assert words in " ".join(done.output.split()), done.output
    assert "small.xml" in done.output


def test_an_engine_is_simulated_as_other_models_are(small: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(command_line(), ["simulate", str(small), "--out", "run", "--level", "events"])
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "small: an integration engine, 4 clients, 20 s" in text
    assert "Messages wait most in slow outbound-post-TPS:" in text
    assert "Thrown away (Msgs)" in text
    for command in (["explain", "discards", "run"], ["show", "client", "slow", "stats", "queue", "--run", "run"]):
        refused = runner.invoke(command_line(), command)
        assert refused.exit_code == ExitStatus.REFUSED, refused.output
        assert "is a run of an integration engine" in " ".join(refused.output.split())


def test_an_engine_of_many_threads_is_shown_thread_by_thread(small: Path) -> None:
    more = "".join(f'<thread name="t{n}"><outbound><constant rate="9/s"/></outbound></thread>' for n in range(9))
    small.write_text(SMALL.replace("</process>", f"{more}</process>").replace("fast slow", "fast slow t1 t8"))
    done = CliRunner().invoke(command_line(), ["simulate", str(small), "--out", "run"])
    assert done.exit_code == 0, done.output
    assert "t8" in done.stdout


def test_the_ready_scenarios_of_engines_are_listed_and_one_must_be_named(tmp_path: Path) -> None:
    listed = json.loads(run("run", "--list", "-o", "json").stdout)
    assert {"clinic", "ward"} <= {row["name"] for row in listed}
    assert {row["model"] for row in listed} == {"integration"}
    assert "qsctl engine run NAME" in run("run", "--list").stdout
    done = run("run", "--database", tmp_path / "x")
    assert (done.exit_code, "--list" in done.stderr) == (ExitStatus.USAGE, True)
