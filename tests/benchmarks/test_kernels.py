"""The egress kernel against C with the same algorithm, SimPy and plain heapq: same arrivals, same results.

`pytest tests/benchmarks/test_kernels.py -s` prints the table. Times are CPU seconds of one thread, the best of a few
runs; the ratios are what is promised, the rest is told.
"""

from __future__ import annotations

import heapq
import os
import subprocess
import sys
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.egress.runs._advance import advance
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.kernel import records as r
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantSize,
    PoissonArrivals,
    Port,
    Profile,
    Queue,
    QueueLimits,
    Scenario,
    TcpSettings,
    Traffic,
)
from tests.benchmarks.ratios import keep_ratio

ROOT = Path(__file__).parent.parent.parent
SHARES = {Queue.D_1: 0.69, Queue.D_2: 0.20, Queue.D_3: 0.10, Queue.C_1: 0.01}
LOADS = {"light": 0.5, "overload": 2.0}
RUNS = 5
SIZE = 1000
WINDOW = 262_144
DELAY_NS = 100_000
DEPTH, BURST = 200, 4
LINE_RATE = 10**10


def scenario(load: float, messages: int, clients: int = 100) -> Scenario:
    rate = load * LINE_RATE / 8 / SIZE
    tcp = TcpSettings(initial_window_segments=200, max_window_bytes=WINDOW, transmit_queue_bytes=WINDOW)
    return Scenario(
        "benchmark",
        horizon_ns=int(messages / rate * SECOND_NS),
        ports=(Port("p", LINE_RATE),),
        profiles=(Profile("d", queues={queue: QueueLimits(DEPTH, BURST) for queue in Queue}, tcp=tcp),),
        groups=(ClientGroup("g", "p", "d", count=clients, round_trip_ns=DELAY_NS),),
        traffic=tuple(
            Traffic(f"t{queue}", "g", PoissonArrivals(rate * share / clients), ConstantSize(SIZE), queue)
            for queue, share in SHARES.items()
        ),
    )


def tell(line: str) -> None:
    sys.stderr.write(f"\n{line}\n")


def all_arrivals(made: Scenario) -> Any:
    streams = ArrivalStreams(made, 0)
    found = []
    while streams.now_ns < made.horizon_ns:
        found.append(streams.window(made.horizon_ns).copy())
    return np.concatenate(found)


def kernel(made: Scenario, rows: Any, level: LogLevel = LogLevel.COUNTERS) -> tuple[float, tuple[int, ...]]:
    """CPU seconds of the kernel alone, and what it counted."""
    arrays = EgressRun(made, 0, level, 1 << 16).arrays
    horizon = made.horizon_ns
    seconds = 0.0
    while True:
        begin = time.thread_time()
        stopped = arrays.call(advance, rows, len(rows), horizon, horizon - 1)
        seconds += time.thread_time() - begin
        if stopped == r.REACHED:
            break
        if stopped == r.GROW:
            arrays.grow()
        arrays.take_log()
    arrays.flush_waits()
    queues, tallies = arrays.queues, arrays.tallies
    counted = (queues["delivered"], tallies["discarded"], tallies["wait_sum"], queues["high_water"])
    filled = int(np.count_nonzero(arrays.blocks["messages"]))
    return seconds, (*(int(values.sum()) for values in counted), filled)


@pytest.fixture(scope="module")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("c") / "egress"
    source = Path(__file__).parent / "egress.c"
    subprocess.run(["gcc", "-O3", "-std=gnu11", "-o", str(program), str(source)], check=True)
    return program


def c(program: Path, made: Scenario, rows: Any) -> tuple[float, tuple[int, ...]]:
    path = program.parent / "arrivals.bin"
    rows.tofile(path)
    clients = made.groups[0].count
    arguments = [len(rows), clients, DEPTH, BURST, WINDOW, WINDOW, DELAY_NS, 4, 5, made.horizon_ns]
    done = subprocess.run([program, path, *map(str, arguments)], check=True, capture_output=True, text=True)
    seconds, *counted = done.stdout.split()
    return float(seconds), tuple(map(int, counted))


class Plain:
    """The same model with one heap of events and deques; SimPy's variant differs only in who keeps the events."""

    def __init__(self, made: Scenario) -> None:
        clients = made.groups[0].count
        self.queues = [[deque() for _ in Queue] for _ in range(clients)]  # type: ignore[var-annotated]
        self.flying = [0] * clients
        self.parked = [0] * clients
        self.port_free = 0
        self.delivered = self.discarded = self.wait_sum = 0

    def arrive(self, now: int, client: int, queue: int, schedule: Any) -> None:
        waiting = self.queues[client][queue]
        while len(waiting) >= BURST and len(waiting) >= DEPTH:
            waiting.popleft()
            self.discarded += 1
        waiting.append(now)
        self.move(now, client, schedule)

    def acknowledged(self, now: int, client: int, schedule: Any) -> None:
        self.flying[client] -= 1
        self.move(now, client, schedule)

    def move(self, now: int, client: int, schedule: Any) -> None:
        """Messages are alike here, so that counts stand for the bytes in flight and in the TCP queue."""
        while True:
            while self.parked[client] and (self.flying[client] + 1) * SIZE <= WINDOW:
                self.parked[client] -= 1
                self.flying[client] += 1
                self.port_free = max(now, self.port_free) + 800
                schedule(self.port_free + DELAY_NS, client)
            if (self.flying[client] + self.parked[client]) * SIZE >= WINDOW:
                return
            for waiting in reversed(self.queues[client]):
                if waiting:
                    break
            else:
                return
            self.wait_sum += now - waiting.popleft()
            self.delivered += 1
            self.parked[client] += 1


def plain_heapq(made: Scenario, rows: Any) -> tuple[float, Plain]:
    model = Plain(made)
    heap: list[tuple[int, int]] = []
    entries = list(zip(rows["time"].tolist(), rows["client"].tolist(), (rows["tag"] & 7).tolist(), strict=True))
    begin = time.thread_time()
    for now, client, queue in entries:
        while heap and heap[0][0] <= now:
            at, acknowledged = heapq.heappop(heap)
            model.acknowledged(at, acknowledged, lambda time, who: heapq.heappush(heap, (time, who)))
        model.arrive(now, client, queue, lambda time, who: heapq.heappush(heap, (time, who)))
    while heap and heap[0][0] < made.horizon_ns:
        at, acknowledged = heapq.heappop(heap)
        model.acknowledged(at, acknowledged, lambda time, who: heapq.heappush(heap, (time, who)))
    return time.thread_time() - begin, model


def in_simpy(made: Scenario, rows: Any, processes: bool) -> tuple[float, Plain]:
    """A message in flight as a process, as SimPy is usually written, or as a bare timeout with a callback."""
    model = Plain(made)
    environment = simpy.Environment()

    def in_flight(delay: int, client: int) -> Any:
        yield environment.timeout(delay)
        model.acknowledged(environment.now, client, schedule)

    def schedule(at: int, client: int) -> None:
        if processes:
            environment.process(in_flight(at - environment.now, client))
            return
        event = environment.timeout(at - environment.now, client)
        event.callbacks.append(lambda event: model.acknowledged(environment.now, event.value, schedule))

    def source() -> Any:
        for now, client, queue in entries:
            yield environment.timeout(now - environment.now)
            model.arrive(now, client, queue, schedule)

    entries = list(zip(rows["time"].tolist(), rows["client"].tolist(), (rows["tag"] & 7).tolist(), strict=True))
    begin = time.thread_time()
    environment.process(source())
    environment.run(until=made.horizon_ns)
    return time.thread_time() - begin, model


@pytest.mark.parametrize("load", LOADS)
def test_the_kernel_is_as_fast_as_c_and_300_times_simpy(load: str, c_program: Path) -> None:
    made = scenario(LOADS[load], 3_000_000)
    rows = all_arrivals(made)
    kernel(made, rows[:1000])
    compiled, in_c = [], []
    for _ in range(RUNS):
        compiled.append(kernel(made, rows))
        in_c.append(c(c_program, made, rows))
    assert compiled[0][1] == in_c[0][1]
    few = replace(made, horizon_ns=made.horizon_ns // 30)
    some = rows[rows["time"] < few.horizon_ns]
    slow, slow_model = plain_heapq(few, some)
    callback_seconds, callback_model = in_simpy(few, some, processes=False)
    simpy_seconds, simpy_model = in_simpy(few, some, processes=True)
    _, counted = kernel(few, some)
    for model in (slow_model, callback_model, simpy_model):
        assert (model.delivered, model.discarded, model.wait_sum) == counted[:3]
    ours = len(rows) / min(seconds for seconds, _ in compiled)
    theirs = len(rows) / min(seconds for seconds, _ in in_c)
    simpy_rate = len(some) / simpy_seconds
    tell(
        f"{load}: kernel {ours / 1e6:.1f} M/s, C {theirs / 1e6:.1f} M/s ({ours / theirs:.2f}), heapq "
        f"{len(some) / slow / 1e6:.3f} M/s ({ours * slow / len(some):.0f} x), SimPy {simpy_rate / 1e3:.0f} k/s "
        f"({ours / simpy_rate:.0f} x), with bare callbacks {len(some) / callback_seconds / 1e3:.0f} k/s "
        f"({ours * callback_seconds / len(some):.0f} x)"
    )
    keep_ratio(f"kernel to C, {load}", ours / theirs)
    keep_ratio(f"kernel to SimPy, {load}", ours / simpy_rate)
    if load == "light":
        assert ours > 30e6
        assert ours > 300 * simpy_rate
    assert ours > 0.85 * theirs


@pytest.mark.parametrize("load", LOADS)
def test_the_message_log_costs_little(load: str) -> None:
    made = scenario(LOADS[load], 3_000_000)
    rows = all_arrivals(made)
    kernel(made, rows[:1000], LogLevel.MESSAGES)
    off, on = [], []
    for _ in range(RUNS):
        off.append(kernel(made, rows)[0])
        on.append(kernel(made, rows, LogLevel.MESSAGES)[0])
    rates = [len(rows) / min(seconds) / 1e6 for seconds in (off, on)]
    tell(f"{load}, log in memory: {rates[0]:.1f} M/s without, {rates[1]:.1f} M/s with ({min(on) / min(off) - 1:+.0%})")
    keep_ratio(f"time with the message log to without, {load}", min(on) / min(off), higher_is_better=False)
    assert min(on) < 1.5 * min(off)


@pytest.mark.parametrize("clients", [1, 10, 100, 1_000, 10_000])
def test_scaling_in_clients(clients: int) -> None:
    told = []
    for name, load in LOADS.items():
        made = scenario(load, 2_000_000, clients)
        rows = all_arrivals(made)
        seconds = min(kernel(made, rows)[0] for _ in range(2))
        told.append(f"{name} {len(rows) / seconds / 1e6:.1f} M/s")
    tell(f"{clients} clients: {', '.join(told)}")


END_TO_END = """
import sys, time
from pathlib import Path
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.model import Stop
from qsctl.sim.egress.runs._run import EgressRun
from tests.benchmarks.test_kernels import scenario
warm = scenario(0.5, 1000)
EgressRun(warm, 0, LogLevel.COUNTERS).step(warm.horizon_ns)
made = scenario(0.5, int(sys.argv[1]))
begin = time.thread_time()
run = EgressRun(made, 0, LogLevel.COUNTERS)
run.step(made.horizon_ns)
seconds = time.thread_time() - begin
status = Path("/proc/self/status").read_text().split()  # ru_maxrss would begin with the parent's
print(run.messages, seconds, int(status[status.index("VmHWM:") + 1]) // 1024)
"""


@pytest.mark.parametrize("messages", [10**5, 10**6, 10**7, 10**8])
def test_scaling_in_messages_end_to_end(messages: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", END_TO_END, str(messages)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    simulated, seconds, memory = done.stdout.split()
    rate = int(simulated) / float(seconds) / 1e6
    tell(f"{simulated} messages with their generation: {rate:.1f} M/s, the whole process {memory} MB")
    assert int(simulated) == pytest.approx(messages, rel=0.02)
    assert int(memory) < 400


def test_a_cold_start_with_the_compiled_cache_costs_little(tmp_path: Path) -> None:
    program = (
        "from qsctl.eventlog.schema import LogLevel\n"
        "from tests.benchmarks.test_kernels import scenario\n"
        "from qsctl.sim.egress.runs._run import EgressRun\n"
        "made = scenario(0.5, 1000)\nrun = EgressRun(made, 0, LogLevel.MESSAGES)\n"
        "run.step(made.horizon_ns)\nrun.finish()\nimport time; print(time.process_time())\n"
    )
    environment = {"PATH": "/usr/bin:/bin", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    seconds = [
        float(subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True).stdout)
        for _ in range(3)
    ]
    tell(f"cold start: {seconds[0]:.1f} s CPU without the cache, {min(seconds[1:]):.2f} s with it")
    assert min(seconds[1:]) < 2.5
