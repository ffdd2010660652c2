"""What a sweep on Spark costs beyond the simulations themselves: the same runs, one after the other in this process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from qsctl.sim.scenario.xml import read_scenario
from qsctl.sim.sweep import parse_axes, plan_sweep, run_task
from qsctl.summary.spark.session import SparkOptions
from qsctl.summary.sweeps.sweep import run_sweep
from tests.benchmarks.ratios import keep_ratio

SCENARIO = """<?xml version="1.0" encoding="UTF-8"?>
<scenario name="tiny" model="solace" seed="3" horizon="1s">
  <port name="p" rate="8 Mbit/s"/>
  <profile name="default"><queue name="D-1" max-depth="100"/></profile>
  <group name="c" port="p" profile="default" count="2" round-trip="1ms"/>
  <traffic name="t" to="c" delivery="direct" cos="1"><poisson rate="1000/s"/><size bytes="1000"/></traffic>
</scenario>
"""
OPTIONS = SparkOptions(master="local[*]")


def test_a_point_costs_little_more_than_its_simulation(tmp_path: Path, benchmark: Any) -> None:
    file = tmp_path / "tiny.xml"
    file.write_text(SCENARIO, encoding="utf-8")
    depths = ",".join(map(str, range(20, 1020, 5)))
    plan = plan_sweep(read_scenario(file), parse_axes([f"profile[default]/queue[D-1]/max-depth={depths}"]), 5)
    tasks = list(plan.tasks())
    run_task(plan.scenario, tasks[0])
    began = time.perf_counter()
    for task in tasks:
        run_task(plan.scenario, task)
    bare = time.perf_counter() - began
    run_sweep(plan_sweep(plan.scenario, parse_axes(["seed=1,2"]), 2), tmp_path / "warm", OPTIONS)
    folders = iter(range(10))

    def sweep() -> int:
        return len(run_sweep(plan, tmp_path / f"sweep-{next(folders)}", OPTIONS))

    assert benchmark.pedantic(sweep, rounds=2) == len(tasks)
    ours = benchmark.stats.stats.min
    benchmark.extra_info |= {
        "runs": len(tasks), "bare_ms_a_run": 1e3 * bare / len(tasks), "sweep_ms_a_run": 1e3 * ours / len(tasks),
        "overhead_ms_a_run": 1e3 * (ours - bare) / len(tasks), "ratio_to_bare": ours / bare,
    }  # fmt: skip
    keep_ratio("a sweep to its bare runs", ours / bare, higher_is_better=False)
    assert ours < 2 * bare + 5
