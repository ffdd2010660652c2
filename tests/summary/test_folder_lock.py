"""One command at a time writes into a folder; of two sweeps the second is refused, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.errors import InvalidInput
from qsctl.sim.sweep import parse_axes, plan_sweep
from qsctl.summary.sweeps.sweep import SweepProgress, run_sweep
from qsctl.summary.sweeps.sweep_folder import open_sweep
from tests.summary.overloaded import DEPTH, overloaded, results_here
from tests.summary.written_sweep import write_results


def test_a_second_sweep_into_a_folder_is_refused_while_the_first_one_runs(tmp_path: Path) -> None:
    """One that finds everything done starts no Spark: what is seen is the folder's lock alone."""
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100"]), 1)
    folder = tmp_path / "sweep"
    open_sweep(folder, plan)
    write_results(folder, results_here(plan))
    before = (folder / "sweep.json").read_bytes()
    refusals: list[str] = []

    def second(_: SweepProgress) -> None:
        with pytest.raises(InvalidInput, match="is being written by another qsctl command") as caught:
            run_sweep(plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100"]), 2), folder)
        refusals.append(caught.value.remedy)
        assert (folder / "sweep.json").read_bytes() == before

    assert run_sweep(plan, folder, progress=second) == results_here(plan)
    assert refusals == ["Name another folder with --out."]
    assert run_sweep(plan, folder) == results_here(plan)


def test_a_refused_sweep_leaves_nothing_in_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="holds no sweep"):
        run_sweep(plan_sweep(overloaded(), (), 1), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
