"""The compiled integration engine: inbound messages a second, beside the engine itself and SimPy.

`pytest tests/benchmarks/test_compiled_engine.py -s` prints the rates. Times are CPU seconds of one thread, the least of
some runs in turns; on a machine that is shared only the ratios mean something. SimPy has the queues of a straight line
of servers and none of the engine's rules: no database, no routes, no priorities.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import simpy

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.integration.run import CompiledEngineRun
from qsctl.sim.model import Stop
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from tests.benchmarks.ratios import keep_ratio
from tests.sim.oracle_engine import OracleEngineRun

RUNS = 3
FASTER_THAN_ITSELF_MIN = 60.0
FASTER_THAN_SIMPY_MIN = 5.0
STAGES = 4
"""Of the line on SimPy: procedures, translation, procedures and the receiver."""


def simulated(run: Any, scenario: Scenario) -> int:
    while run.step(scenario.horizon_ns) is Stop.LOG_FULL:
        run.take_log()
    run.finish()
    return int(run.messages)


def on_simpy(messages: int = 4_000) -> int:
    environment, source = simpy.Environment(), random.Random(1)
    stages = [simpy.Resource(environment, 1) for _ in range(STAGES)]
    waits: list[float] = []

    def message() -> Iterator[simpy.Event]:
        for stage in stages:
            came = environment.now
            with stage.request() as turn:
                yield turn
                waits.append(environment.now - came)
                yield environment.timeout(source.expovariate(1000.0))

    def sender() -> Iterator[simpy.Event]:
        for _ in range(messages):
            yield environment.timeout(source.expovariate(500.0))
            environment.process(message())

    environment.process(sender())
    environment.run()
    return messages


def test_the_compiled_engine_is_faster_than_the_engine_itself_and_than_simpy() -> None:
    clinic = read_scenario(find_scenario("clinic"))
    few = dataclasses.replace(clinic, horizon_ns=60 * SECOND_NS)
    trials: dict[str, Callable[[], int]] = {
        "kernel": lambda: simulated(CompiledEngineRun(clinic, 0, LogLevel.COUNTERS), clinic),
        "engine": lambda: simulated(OracleEngineRun(few, 0, LogLevel.COUNTERS), few),
        "simpy": on_simpy,
    }
    trials["kernel"]()  # compiles
    seconds: dict[str, float] = {}
    for _ in range(RUNS):
        for name, trial in trials.items():
            began = time.process_time()
            messages = trial()
            took = (time.process_time() - began) / messages
            seconds[name] = min(seconds.get(name, took), took)
    for name, each in seconds.items():
        print(f"{name}: {1e-3 / each:.1f} k messages/s")  # noqa: T201
    to_itself, to_simpy = seconds["engine"] / seconds["kernel"], seconds["simpy"] / seconds["kernel"]
    keep_ratio("the compiled integration engine to the engine itself, messages/s", to_itself)
    keep_ratio("the compiled integration engine to a line of servers on SimPy, messages/s", to_simpy)
    assert to_itself > FASTER_THAN_ITSELF_MIN
    assert to_simpy > FASTER_THAN_SIMPY_MIN
