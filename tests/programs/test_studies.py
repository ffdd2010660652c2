"""`qsctl.sweep`, `size`, `compare`, `replay`, `what_if`: the commands' answers, without a terminal or Java."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import qsctl
from qsctl.errors import Interrupted, InvalidInput, NotFound, UsageError
from qsctl.sim.simulate import open_scenario
from qsctl.sim.sweep import parse_axes, plan_sweep, run_task
from qsctl.summary.sweeps.local_runner import LocalRunner
from tests.examples import run_all

GRID = {"max-depth(D-1)": [100, 5000]}
SHORT = {"horizon": "200ms"}
SETTINGS: dict[str, Any] = {"grid": GRID, "settings": SHORT, "replications": 2}
ASKED: dict[str, Any] = {
    "vary": "visibility=30s,600s", "arrivals": "0.1/s", "work": "lognormal:45s,p99=280s", "horizon": "2h",
    "replications": 2,
}  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_sweep_reports_its_progress_prints_nothing_and_keeps_its_points(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []
    before = signal.getsignal(signal.SIGINT)
    table = qsctl.sweep("burst", **SETTINGS, out="s", progress=seen.append)
    assert capfd.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is before
    assert seen[-1].done == seen[-1].total == 4
    assert all(each.elapsed_s >= 0 for each in seen)
    assert {(row["point"], row["replications"]) for row in table} == {
        ("profile[*]/queue[D-1]/max-depth=100", 2), ("profile[*]/queue[D-1]/max-depth=5000", 2),
    }  # fmt: skip
    lost = {row["point"]: row["mean"] for row in table if (row["queue"], row["measure"]) == ("D-1", "discards")}
    small, large = lost.values()
    assert small > large
    again = qsctl.sweep("burst", **SETTINGS, out="s")
    assert again.content.reused_replications == 4
    assert list(again) == list(table)


@pytest.mark.slow
def test_processes_beside_this_one_give_the_same_figures() -> None:
    scenario = open_scenario("burst", {}, SHORT)
    axes = parse_axes(["profile[trading]/queue[D-1]/max-depth=100,5000"])
    tasks = list(plan_sweep(scenario, axes, 1, common_random_numbers=True).tasks())
    checks: list[bool] = []
    with LocalRunner(scenario, 2, lambda: checks.append(True)) as runner:
        found = runner.run(tasks)
        assert runner._arrivals is not None
        shared = runner._arrivals.path
        # Both points have the same arrivals; the two processes may have drawn them at once.
        assert sorted(each.name.split(".", 1)[1] for each in shared.glob("*.npy")) == ["rows.npy", "windows.npy"]
    assert not shared.exists()
    assert [list(each.figures) for each in found] == [run_task(scenario, task) for task in tasks]
    assert checks, "the program may end it while processes run"


@pytest.mark.slow
def test_a_process_that_ends_by_itself_is_one_error() -> None:
    grid = "grid={'max-depth(D-1)': [500, 5000]}, settings={'horizon': '1ms'}"
    Path("unguarded.py").write_text(f"import qsctl\nqsctl.sweep('burst', {grid}, workers=2)")
    done = subprocess.run([sys.executable, "unguarded.py"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "a process that simulates ended unexpectedly" in done.stderr


def test_a_sweep_ends_where_the_program_wants_it_and_goes_on_later() -> None:
    ended = threading.Event()
    with pytest.raises(Interrupted):
        qsctl.sweep("burst", **SETTINGS, out="s", progress=lambda _: ended.set(), stop=ended)
    table = qsctl.sweep("burst", **SETTINGS, out="s")
    assert 0 < table.content.reused_replications <= 4
    with pytest.raises(Interrupted):
        qsctl.sweep("burst", **SETTINGS, out="never", stop=lambda: True)


def test_an_exception_of_the_program_s_callback_reaches_it() -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        qsctl.sweep("burst", **SETTINGS, out="s", progress=fail)
    assert qsctl.sweep("burst", **SETTINGS, out="s").content.points == 2, "the folder's lock is released"


def test_two_threads_have_each_their_progress_and_their_end() -> None:
    outcomes: dict[str, object] = {}
    seen: dict[str, list[object]] = {"one": [], "other": []}

    def work(name: str) -> None:
        try:
            outcomes[name] = qsctl.sweep(
                "burst", **SETTINGS, out=name, progress=seen[name].append, stop=lambda: name == "other"
            )
        except Interrupted:
            outcomes[name] = "ended"

    threads = [threading.Thread(target=work, args=(name,)) for name in seen]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert outcomes["other"] == "ended"
    assert isinstance(outcomes["one"], qsctl.CommandResult)
    assert seen["one"]


def test_a_search_finds_what_the_targets_need(capfd: pytest.CaptureFixture[str]) -> None:
    found = qsctl.size(
        "burst", target="P(discards(D-1)>0)<90%", vary="max-depth(D-1)=500,100000", settings=SHORT, confidence=0.9
    )
    assert capfd.readouterr() == ("", "")
    assert [row["met"] for row in found if row["chosen"]] == [True], found.to_dict()
    assert found.exit_status == 0
    never = qsctl.size(
        "burst", target="discards(D-1)<0.5", vary="max-depth(D-1)=100,200", settings=SHORT, confidence=0.5,
        max_replications=20,
    )  # fmt: skip
    assert (never.content.sizing.answer, never.exit_status) == (None, 1)


def test_two_client_profiles_are_compared_under_one_load(capfd: pytest.CaptureFixture[str]) -> None:
    profile = Path(__file__).parents[2] / "fixtures" / "profiles" / "guaranteed.json"
    compared = qsctl.compare(
        "guaranteed", client_profile=[f"covered={profile}"] * 2, replications=2, settings=SHORT, out="sides"
    )
    assert capfd.readouterr() == ("", "")
    assert all(row["better"] == "same" for row in compared)
    assert any("A is" in note for note in compared.notes), "where the command notes its folders, the result has them"
    with pytest.raises(Interrupted):
        qsctl.compare(
            "guaranteed", client_profile=[f"covered={profile}"] * 2, settings=SHORT, out="no", stop=lambda: True
        )


def test_a_question_about_a_broker_s_queue_is_answered(capfd: pytest.CaptureFixture[str]) -> None:
    answer = qsctl.what_if("sqs", **ASKED, out="sqs.xml")
    assert capfd.readouterr() == ("", "")
    assert {row["value"] for row in answer} == {"30s", "600s"}
    assert Path("sqs.xml").exists()
    with pytest.raises(Interrupted):
        qsctl.what_if("sqs", **ASKED, out="other.xml", stop=lambda: True)


def test_what_is_not_of_its_form_is_refused_as_by_the_commands() -> None:
    for call, kind in (
        (lambda: qsctl.sweep("burst", grid={}, workers=0), UsageError),
        (lambda: qsctl.sweep("burst", grid={"nowhere": [1]}), UsageError),
        (lambda: qsctl.sweep(grid=GRID), UsageError),
        (lambda: qsctl.sweep("none-such", grid=GRID), NotFound),
        (lambda: qsctl.sweep("burst", grid={"max-depth(D-1)": ["many"]}), (UsageError, InvalidInput)),
        (lambda: qsctl.sweep("burst", grid=GRID, conf={"spark.driver.memory": "1g"}), UsageError),
        (lambda: qsctl.sweep("burst", grid=GRID, model="kafka"), UsageError),  # type: ignore[arg-type]
        (lambda: qsctl.size("burst", target="discards", vary="max-depth(D-1)"), UsageError),
        (lambda: qsctl.compare("here"), UsageError),
        (lambda: qsctl.compare("here", "there"), NotFound),
        (lambda: qsctl.compare("burst", client_profile=["a", "b"], replications=0), UsageError),
        (lambda: qsctl.replay("nowhere"), NotFound),
        (lambda: qsctl.replay("nowhere", replications=0), UsageError),
        (lambda: qsctl.what_if("sqs"), UsageError),
        (lambda: qsctl.what_if("carrier-pigeon", work="1s"), UsageError),
    ):
        with pytest.raises(kind):
            call()
    assert not Path("qsctl-sweeps").exists()


@pytest.mark.slow
def test_a_sweep_leaves_spark_alone() -> None:
    Path("sweep.py").write_text(
        "import qsctl, sys\n"
        "qsctl.sweep('burst', grid={'max-depth(D-1)': [500, 5000]}, settings={'horizon': '1ms'}, replications=1)\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "sweep.py"], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_the_docstrings_show_what_the_functions_do() -> None:
    run_all("qsctl.programs.studies")
