"""`sweep --best` and `--front`: what is refused and what is printed."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from qsctl.cli.simulation.results.sweep import selection_document
from qsctl.report.selection_words import is_separated, selection_text
from qsctl.sim.sweep import Point
from qsctl.summary.sweeps.selection import Criterion, Ranked, Selection
from tests.commands import command_line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sweep burst --grid seed=1,2 --best discards", "is not 1 MEASURE"),
        ("sweep burst --grid seed=1,2 --front discards(D-1)", "is not 2 MEASURE"),
    ],
)
def test_what_is_no_measure_of_a_queue_is_refused(line: str, words: str) -> None:
    found = CliRunner().invoke(command_line(), line.split())
    assert found.exit_code == 2, found.output
    assert words in " ".join(found.output.split())


POINTS = [Point((("max-depth", str(depth)),)) for depth in (100, 200, 400)]


def selection(*beaten: Point | None, criteria: int = 1, is_tie: bool = False) -> Selection:
    names = (Criterion("time_in_queue_p99", "D-1"), Criterion("loss_ratio", "D-1"))[:criteria]
    ranked = tuple(Ranked(point, (1e6, 0.01)[:criteria], by) for point, by in zip(POINTS, beaten, strict=True))
    return Selection(names, 0.95, 10, ranked, (), 2e6, is_tie)


def test_points_are_called_the_best_only_where_one_is_left() -> None:
    one = selection(None, POINTS[0], POINTS[0])
    assert is_separated(one)
    assert selection_text(one) == "Best by time_in_queue_p99(D-1): max-depth=100, of 3 points, with 95 % confidence."
    two = selection(None, None, POINTS[0])
    assert not is_separated(two)
    assert "not separated. 2 of 3 points may be the best" in selection_text(two)
    assert "max-depth=100 is the best, or at most 2 ms worse than it" in selection_text(two)
    document = selection_document(two)
    assert isinstance(document, dict)
    assert document["criteria"] == ["time_in_queue_p99(D-1)"]


def test_a_front_names_what_was_not_refuted() -> None:
    shown = selection_text(selection(None, None, POINTS[0], criteria=2))
    assert "2 of 3 points may be on it" in shown
    assert "  max-depth=200: time_in_queue_p99(D-1) 1 ms, loss_ratio(D-1) 1 %" in shown
    assert "all of the 3 points may be on it" in selection_text(selection(None, None, None, criteria=2))


def test_points_that_are_equal_in_every_replication_are_called_so() -> None:
    same = selection_text(selection(None, None, POINTS[0], is_tie=True))
    assert same.endswith("2 of 3 points had the same best value in every replication: max-depth=100; max-depth=200.")


def test_a_bound_between_two_shares_is_in_percentage_points() -> None:
    ranked = tuple(Ranked(point, (0.01,)) for point in POINTS)
    shares = Selection((Criterion("loss_ratio", "D-1"),), 0.95, 10, ranked, (), 0.00786)
    assert "or at most 0.786 percentage points worse than it" in selection_text(shares)
