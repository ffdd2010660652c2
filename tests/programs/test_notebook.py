"""The notebook in `fixtures/notebooks`: from a sweep to a chart in ten lines, without Java."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from qsctl.shipped import shipped
from qsctl.summary.spark import session

NOTEBOOK = json.loads(shipped("fixtures/notebooks/depths.ipynb").read_text(encoding="utf-8"))
CELLS = [each["source"] for each in NOTEBOOK["cells"] if each["cell_type"] == "code"]


def shown_by(source: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return the value of its last line where that is an expression, which a notebook shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.slow
def test_a_notebook_goes_from_a_sweep_to_a_chart_in_ten_lines_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark is started")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "start_gateway", start)
    monkeypatch.delenv(session.MASTER_VARIABLE, raising=False)
    assert sum(line != "" for each in CELLS for line in each.splitlines()) <= 10
    names: dict[str, Any] = {}
    *_, chart = [shown_by(each, names) for each in CELLS]
    assert chart.to_dict()["layer"]
    losses = {row["depth"]: row["loss_ratio"] for row in names["rows"]}
    assert [*losses] == [*range(200, 2001, 200)]
    assert losses[200] > losses[1000] > losses[2000] > 0
    assert all(row["loss_ratio_half_width"] > 0 for row in names["rows"])


def test_the_notebook_has_no_output_that_could_be_out_of_date() -> None:
    assert [each for each in NOTEBOOK["cells"] if each.get("outputs") or each.get("execution_count")] == []
