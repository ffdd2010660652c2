"""`qsctl.simulate` asks for all that `qsctl simulate` does, and has its rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import qsctl
from qsctl.errors import Interrupted, InvalidInput, NotFound, UsageError
from qsctl.eventlog.run_folder import RunStatus
from tests.cli.shell import Shell
from tests.examples import run_all

PROFILE = Path(__file__).parents[2] / "fixtures" / "profiles" / "guaranteed.json"
HORIZON = {"horizon": "20ms"}
FILLED = "P(high_water_mark(D-1)>=8)"
SMALL = """<scenario name="small" horizon="1s">
  <port name="p1" rate="10 Mbit/s"/>
  <profile name="default"><queue name="D-1" max-depth="20"/><tcp transmit-queue="4 KB"/></profile>
  <group name="slow" port="p1" profile="default" link-rate="1 Mbit/s"/>
  <traffic name="a" to="slow"><poisson rate="60/s"/><size bytes="1 KB"/></traffic>
</scenario>
"""
ALIKE: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "plain": ("burst", {"seed": 7, "replications": 2}, ("--seed", "7", "--replications", "2")),
    "client profile": (
        "guaranteed",
        {"client_profile": f"covered={PROFILE}", "by": "queue"},
        ("--client-profile", f"covered={PROFILE}", "--by", "queue"),
    ),
    "intervals": (
        "burst",
        {"confidence": 0.9, "replications": 3, "level": "counters"},
        ("--confidence", "0.9", "--replications", "3", "--level", "counters"),
    ),
    "precision": (
        "burst",
        {"precision": ["throughput(D-1)=20%"]},
        ("--precision", "throughput(D-1)=20%", "--workers", "1"),
    ),
    "rare figure": (
        "small.xml",
        {"rare": FILLED, "replications": 4, "confidence": 0.9},
        ("--rare", FILLED, "--replications", "4", "--confidence", "0.9", "--workers", "1"),
    ),
}
TIMES = ("elapsed_s", "compile_s")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "state")


def without_times(document: Any) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in TIMES}


@pytest.mark.slow
@pytest.mark.parametrize("asked", ALIKE)
def test_the_answer_is_the_command_s(asked: str, shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
    scenario, given, options = ALIKE[asked]
    out = () if asked == "rare figure" else ("--out", "same")
    Path("small.xml").write_text(SMALL)
    given = {"settings": HORIZON, **given}
    printed = shell("simulate", scenario, "--set", "horizon=20ms", *options, *out, "-o", "json")
    lines = printed.err.splitlines()
    if out:
        Path("same").rename("command")
        given = {**given, "out": "same"}
    capfd.readouterr()
    found: Any = qsctl.simulate(scenario, **given)
    assert capfd.readouterr() == ("", "")
    assert without_times(json.loads(json.dumps(found.to_dict()))) == without_times(printed.document)
    assert found.exit_status == printed.status
    assert list(found.notes) == lines
    if out:
        assert [json.loads(json.dumps(row)) for row in found] == printed.document["queues"]
        assert list(found.intervals) == printed.document["intervals"]
        assert bool(found.intervals) is (asked in {"intervals", "precision"})


@pytest.mark.slow
def test_a_run_has_its_folder_its_counters_and_the_same_bytes_for_the_same_seed() -> None:
    run = qsctl.simulate("burst", settings=HORIZON, replications=2, seed=7, level="messages", out=Path("run"))
    assert isinstance(run, qsctl.SimulatedRun)
    assert (run.folder, run.info.status, run.info.seed) == (Path("run"), RunStatus.COMPLETE, 7)
    assert sum(run.counters["arrived_messages"].to_pylist()) == run.info.arrived_messages == sum(
        run["arrived_messages"]
    )  # fmt: skip
    assert run.compile_s >= 0
    again = qsctl.simulate("burst", settings=HORIZON, replications=2, seed=7, level="messages", workers=2, out="again")
    assert again.info.fingerprint == run.info.fingerprint


def test_progress_counts_replications_and_names_the_one_that_goes_on() -> None:
    seen: list[Any] = []
    qsctl.simulate("burst", settings=HORIZON, replications=2, out="run", progress=seen.append)
    assert (seen[-1].done, seen[-1].total, seen[-1].remaining_s) == (2, 2, 0)
    assert {each.replication for each in seen} == {0, 1}
    assert all(0 <= each.simulated_ns <= each.horizon_ns == 20_000_000 for each in seen)
    assert seen[-1].messages > 0


def test_a_run_that_the_program_ends_is_marked_as_partial() -> None:
    ended = threading.Event()
    run = qsctl.simulate(
        "burst", settings={"horizon": "20s"}, replications=2, out="run", progress=lambda _: ended.set(), stop=ended
    )
    assert run.info.status is RunStatus.PARTIAL
    assert run.exit_status == 130
    assert run.to_dict()["status"] == "partial"  # type: ignore[call-overload, index]


@pytest.mark.parametrize(
    "given", [{"rare": FILLED}, {"precision": "1%"}], ids=["rare figure", "search for the precision"]
)
def test_what_has_nothing_to_return_yet_is_interrupted(given: dict[str, Any]) -> None:
    with pytest.raises(Interrupted):
        qsctl.simulate("burst", settings=HORIZON, stop=lambda: True, **given)
    assert not Path("qsctl-runs").exists()


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: qsctl.simulate("none-such"), NotFound),
        (lambda: qsctl.simulate(settings={"nowhere": 1}), UsageError),
        (lambda: qsctl.simulate(settings={"horizon": "long"}), (UsageError, InvalidInput)),
        (lambda: qsctl.simulate(replications=0), UsageError),
        (lambda: qsctl.simulate(workers=0), UsageError),
        (lambda: qsctl.simulate(level="all"), UsageError),
        (lambda: qsctl.simulate(by="broker"), UsageError),  # type: ignore[call-overload]
        (lambda: qsctl.simulate(confidence=95), UsageError),
        (lambda: qsctl.simulate(precision="narrow"), UsageError),
        (lambda: qsctl.simulate(conf={"spark.driver.memory": "1g"}), UsageError),
        (lambda: qsctl.simulate(client_profile="no-file.json"), InvalidInput),
        (lambda: qsctl.simulate(rare="often"), UsageError),
        (lambda: qsctl.simulate(rare=FILLED, out="run"), UsageError),  # type: ignore[call-overload]
        (lambda: qsctl.simulate(rare=FILLED, master="local[1]"), UsageError),  # type: ignore[call-overload]
        (lambda: qsctl.simulate("guaranteed", rare="P(lost(D-9)>0)"), (UsageError, InvalidInput)),
    ],
)
def test_what_is_not_of_its_form_is_refused_and_writes_nothing(call: Callable[[], object], kind: Any) -> None:
    with pytest.raises(kind):
        call()
    assert not list(Path().iterdir())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("own java")
def test_spark_computes_the_same_rows() -> None:
    given: dict[str, Any] = {"settings": HORIZON, "by": "client", "level": "messages"}
    own = qsctl.simulate("burst", **given, out="own")
    sparks = qsctl.simulate("burst", **given, out="sparks", master="local[1]", conf={"spark.ui.enabled": "false"})
    assert sparks.to_dict()["computed_by"] == "spark"  # type: ignore[call-overload, index]
    names = ("client", "queue", "arrived_messages", "delivered_messages", "discarded_messages")
    assert sorted(zip(*(sparks[name] for name in names), strict=True)) == sorted(
        zip(*(own[name] for name in names), strict=True)
    )


def test_the_docstrings_show_what_simulate_returns() -> None:
    run_all("qsctl.programs.simulation")
