"""Set-up of runs with many clients: processor time and memory, each in a process of its own.

`pytest tests/benchmarks/test_many_clients.py -s` prints the table. The bounds are for 100,000 clients.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantSize,
    LognormalSize,
    OnOffArrivals,
    PoissonArrivals,
    Port,
    Profile,
    Queue,
    QueueLimits,
    Scenario,
    Traffic,
)

ROOT: Final = Path(__file__).parent.parent.parent
CLIENTS: Final = (10, 1_000, 100_000)
SECONDS_MAX: Final = 1.0
MEGABYTES_MAX: Final = 150
LOADS: Final = {
    "plain": Traffic("t", "g", PoissonArrivals(5.0), ConstantSize(1000)),
    "mixed": Traffic("t", "g", OnOffArrivals(5.0, SECOND_NS, SECOND_NS), LognormalSize(900, 0.5, 9000), topics=10),
}

PROGRAM: Final = """
import resource, sys, time
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.egress.runs._run import EgressRun
from tests.benchmarks.test_many_clients import scenario
EgressRun(scenario(sys.argv[2], 1), 0, LogLevel.COUNTERS)
made, peak = scenario(sys.argv[2], int(sys.argv[1])), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.process_time()
run = EgressRun(made, 0, LogLevel.COUNTERS)
print(time.process_time() - begin, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024)
"""


def scenario(load: str, clients: int) -> Scenario:
    """Make a scenario of one group, with a traffic of `LOADS`."""
    return Scenario(
        "benchmark",
        horizon_ns=SECOND_NS,
        ports=(Port("p", 10**10),),
        profiles=(Profile("d", queues={queue: QueueLimits(200, 4) for queue in Queue}),),
        groups=(ClientGroup("g", "p", "d", count=clients),),
        traffic=(LOADS[load],),
    )


@pytest.mark.parametrize("load", LOADS)
def test_a_hundred_thousand_clients_are_set_up_in_a_second(load: str) -> None:
    for clients in CLIENTS:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(clients), load], check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        seconds, megabytes = map(float, done.stdout.split())
        sys.stderr.write(f"\n{load}, {clients} clients: {seconds:.3f} s of processor time, {megabytes:.0f} MB\n")
        assert seconds < SECONDS_MAX
        assert megabytes < MEGABYTES_MAX
