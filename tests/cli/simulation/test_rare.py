"""`simulate --rare`: what is refused, what is printed, and the exit statuses."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from qsctl.cli.output.results import TextBlock
from qsctl.cli.simulation.results.rare import RareResult
from qsctl.errors import ExitStatus
from qsctl.sim.splitting.question import parse_question
from qsctl.summary.sweeps.rare import RareEstimate
from tests.commands import command_line

FOUND = RareEstimate(2e-9, 1.6e-9, 2.5e-9, 60, 41, 55.0, 100_000, 20_000, 1e6, 5e10)


def result(estimate: RareEstimate | None = FOUND, reached: int = 20, figure: str = "loss_ratio(D-1)") -> RareResult:
    return RareResult(
        "desk", "solace", 1, parse_question(figure), 0.95, 0.2, (5, 10), (4, 4), reached, 20, 5000, 900.0, estimate,
        1.0, "qsctl simulate desk",
    )  # fmt: skip


def text(shown: RareResult) -> str:
    return "\n".join(block.text for block in shown.blocks() if isinstance(block, TextBlock))


def test_a_rare_figure_is_printed_with_its_interval_and_what_plain_runs_cost() -> None:
    shown = text(result())
    assert "loss_ratio(D-1) is about 2e-09: one message in 5.00e+08." in shown
    assert "95 % interval: 1.6e-09 to 2.5e-09 (-20 % to +25 %)." in shown
    assert "Plain runs would need at least 1,000,000 of this scenario, 5.00e+10 messages" in shown
    assert "one run in" in text(result(figure="P(lost(D-1)>0)"))
    assert "at least 1,000,000" not in text(result(figure="P(lost(D-1)>0)"))
    document = result().document()
    assert isinstance(document, dict)
    assert (document["low"], document["value"], document["thresholds"]) == (FOUND.low, 2e-9, [5, 10])
    assert result().exit_status is ExitStatus.DONE


def test_what_was_not_seen_is_not_stated() -> None:
    few = replace(FOUND, low=0.0, high=math.inf, seen=4, plain_runs=math.inf, plain_messages=math.inf)
    for shown, words in (
        (result(few), "It cannot be shown: 4 of 60 split runs saw it"),
        (result(replace(few, seen=41, effective=6.0)), "as much as from 6 that contribute equally"),
        (result(replace(few, seen=41, effective=6.0)), "Give more --replications (300 may do)"),
        (result(None, reached=7), "came to 7 of 20 and no further"),
        (result(None), "'P(high_water_mark(D-1)>=20)'"),
    ):
        assert words in text(shown)
        assert shown.exit_status is ExitStatus.NO
        document = shown.document()
        assert isinstance(document, dict)
        assert document["low"] is document["high"] is None


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("simulate burst --rare loss(D-1)", 2, "none of the figures"),
        ("simulate burst --rare loss_ratio(D-1) --out x", 2, "--out is of a run folder"),
        ("simulate burst --rare loss_ratio(D-1) --precision 5", 2, "is not a relative half width"),
        ("simulate slow-reader --rare loss_ratio(D-1)", 1, "nothing in slow-reader is random"),
    ],
)
def test_what_cannot_be_asked_is_refused(line: str, status: int, words: str) -> None:
    found = CliRunner().invoke(command_line(), line.split())
    assert found.exit_code == status, found.output
    assert words in " ".join(found.output.split())
