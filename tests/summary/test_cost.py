"""What a search or a sweep will cost is estimated before it begins, and a user who declines stops it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

from qsctl.cli.confirmation import Declined, agree_to_cost
from qsctl.sim.sizing.targets import parse_setting, parse_target
from qsctl.summary.sweeps.cost import Cost, candidates_of, cost_of_search
from qsctl.summary.sweeps.points import EVERY_MEASURE
from qsctl.summary.sweeps.size import Sizing, size
from tests.summary.paused_client import paused
from tests.summary.runners import ByLaw

DEPTH = "max-depth(D-1)=90..160"


def search(agreed: list[Cost], *, decline: bool = False) -> tuple[Sizing, ByLaw]:
    def agree(cost: Cost) -> None:
        agreed.append(cost)
        if decline:
            raise Declined("no")

    runner = ByLaw(paused(), lambda settings, _: {"discarded_messages": int(settings[PATH] < 120)})
    found = size(
        paused(), [parse_target("discards(D-1)=0", tuple(EVERY_MEASURE))], [parse_setting(DEPTH)], confidence=0.95,
        runner=runner, agree=agree,
    )  # fmt: skip
    return found, runner


PATH = "profile[*]/queue[D-1]/max-depth"


def test_the_cost_of_a_search_is_estimated_before_it_within_a_factor_of_two() -> None:
    agreed: list[Cost] = []
    found, runner = search(agreed)
    (cost,) = agreed
    assert found.cost == cost
    assert found.answer is not None
    assert cost.replications / 2 <= runner.count <= cost.replications * 2


def test_declining_ends_the_search_before_a_candidate_is_simulated() -> None:
    agreed: list[Cost] = []
    with pytest.raises(Declined):
        search(agreed, decline=True)
    assert len(agreed) == 1


def test_costs_follow_the_way_of_the_search() -> None:
    settings = [parse_setting("max-depth(D-1)=2..1024")]
    assert candidates_of(settings, None) == 12
    assert candidates_of(settings, [range(17)]) == 17
    assert candidates_of(settings * 2, [range(6), range(6)]) == 36
    assert cost_of_search(12, 59, 0.5) == Cost(384, 192.0)
    assert cost_of_search(12, 1, 0.5).replications == 12
    assert str(Cost(384, 192.0)) == "about 384 replications, 3 minutes"
    assert str(Cost(10, 0.2)) == "about 10 replications, 1 s"


@pytest.mark.parametrize(("seconds", "answer", "asked"), [(30.0, False, 0), (90.0, True, 1), (90.0, False, 1)])
def test_a_question_is_asked_on_a_terminal_above_a_minute(
    seconds: float, answer: bool, asked: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    questions: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        questions.append(question)
        return answer

    monkeypatch.setattr(typer, "confirm", confirm)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    if asked and not answer:
        with pytest.raises(Declined, match="about 100 replications, 90 s were declined"):
            agree_to_cost(Cost(100, seconds))
    else:
        agree_to_cost(Cost(100, seconds))
    assert len(questions) == asked
    assert "About 100 replications" in capsys.readouterr().err


def test_a_script_gets_neither_an_estimate_nor_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    agree_to_cost(Cost(10**6, 10.0**6))
    assert capsys.readouterr().err == ""


def test_a_sweep_that_is_declined_keeps_what_was_timed(tmp_path: Path) -> None:
    from qsctl.sim.sweep import parse_axes, plan_sweep
    from qsctl.summary.sweeps.local_runner import LocalRunner
    from qsctl.summary.sweeps.sweep import run_sweep
    from qsctl.summary.sweeps.sweep_folder import read_results

    plan = plan_sweep(paused(), parse_axes(["profile[default]/queue[D-1]/max-depth=90,100,110,120"]), 3)

    def decline(cost: Cost) -> None:
        assert 1 <= cost.replications < 12
        raise Declined("no")

    with pytest.raises(Declined):
        run_sweep(plan, tmp_path / "sweep", runner=LocalRunner(plan.scenario), agree=decline)
    assert len(read_results(tmp_path / "sweep")) >= 1  # as many as were timed: on a busy machine one is enough
    assert len(run_sweep(plan, tmp_path / "sweep", runner=LocalRunner(plan.scenario))) == 12
