"""The kernel of a broker's queue: messages a second, beside the drawing of its arrivals and SimPy.

`pytest tests/benchmarks/test_broker_queue.py -s` prints the rates. Times are CPU seconds of one thread, the least of
some runs in turns; on a machine that is shared only the ratios mean something.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import simpy

from qsctl.eventlog.schema import LogLevel
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.broker_queue._layout import arrivals_scenario
from qsctl.sim.broker_queue.run import BrokerQueueRun
from qsctl.sim.model import Stop
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import read_scenario
from tests.benchmarks.ratios import keep_ratio

RUNS = 5
SERVERS = 4
PLAIN = """<scenario name="plain" model="queue" horizon="200s">
  <queue name="q">
    <publisher name="p"><poisson rate="3000/s"/></publisher>
    <class name="c" work="exponential:1ms"/>
    <consumer name="w" count="4"/>
  </queue>
</scenario>
"""
EVERYTHING = """<scenario name="everything" model="queue" horizon="60s">
  <queue name="q" order="priority" time-to-live="10s">
    <publisher name="p" on-refusal="retry"><poisson rate="3000/s"/></publisher>
    <class name="a" work="lognormal:1ms,p99=5ms" priority="1" fails="1%"/>
    <class name="b" work="gamma:1ms,cv=1.5" fails="2%" poison="0.1%"/>
    <consumer name="w" count="8" prefetch="10" receive="poll" batch="5" round-trip="2ms" acknowledge-batch="3"
      acknowledge-interval="10ms"/>
    <visibility timeout="100ms" heartbeat="30ms"/>
    <retry max-deliveries="5" back-off="exponential:10ms,factor=2,max=1s" jitter="0.5"/>
    <limits max-messages="100000"/>
    <dead-letters/>
    <outage start="10s" duration="1s" every="20s" class="a"/>
    <autoscaling consumer="w" messages-per-consumer="20" maximum="16" every="1s" start-up="exponential:2s"/>
    <objective done="100ms"/>
  </queue>
</scenario>
"""
PLAIN_TO_ARRIVALS_MAX = 12.0
"""Drawing an arrival is a logarithm, a hash and its place in a window; a whole message is at most this many of it."""
EVERYTHING_TO_ARRIVALS_MAX = 60.0
FASTER_THAN_SIMPY_MIN = 20.0


def simulated(scenario: Scenario) -> int:
    run = BrokerQueueRun(scenario, 0, LogLevel.COUNTERS)
    while run.step(scenario.horizon_ns) is Stop.LOG_FULL:
        run.take_log()
    run.finish()
    return run.messages


def drawn(scenario: Scenario) -> int:
    streams, count = ArrivalStreams(arrivals_scenario(scenario), 0), 0
    while streams.now_ns < scenario.horizon_ns:
        count += len(streams.window(scenario.horizon_ns))
    return count


def on_simpy(messages: int = 20_000) -> int:
    """The same queue as SimPy's examples write one."""
    environment, source = simpy.Environment(), random.Random(1)
    servers = simpy.Resource(environment, SERVERS)
    waits: list[float] = []

    def message() -> Iterator[simpy.Event]:
        came = environment.now
        with servers.request() as turn:
            yield turn
            waits.append(environment.now - came)
            yield environment.timeout(source.expovariate(1000.0))

    def publisher() -> Iterator[simpy.Event]:
        for _ in range(messages):
            yield environment.timeout(source.expovariate(3000.0))
            environment.process(message())

    environment.process(publisher())
    environment.run()
    return len(waits)


def test_a_message_costs_few_times_what_its_arrival_does(tmp_path: Path) -> None:
    scenarios = {}
    for name, text in (("plain", PLAIN), ("everything", EVERYTHING)):
        (tmp_path / f"{name}.xml").write_text(text)
        scenarios[name] = read_scenario(tmp_path / f"{name}.xml")
    plain = scenarios["plain"]
    trials: dict[str, Callable[[], int]] = {
        "plain": lambda: simulated(plain),
        "everything": lambda: simulated(scenarios["everything"]),
        "arrivals": lambda: drawn(plain),
        "simpy": on_simpy,
    }
    seconds: dict[str, float] = {}
    for _ in range(RUNS):
        for name, trial in trials.items():
            began = time.process_time()
            messages = trial()
            took = (time.process_time() - began) / messages
            seconds[name] = min(seconds.get(name, took), took)
    for name, each in seconds.items():
        print(f"{name}: {1e-6 / each:.2f} M messages/s")  # noqa: T201
    by_arrivals = {name: each / seconds["arrivals"] for name, each in seconds.items()}
    faster = seconds["simpy"] / seconds["plain"]
    keep_ratio("a plain broker's queue: CPU of a message to that of drawing its arrival", by_arrivals["plain"], False)
    keep_ratio("a broker's queue with everything: the same", by_arrivals["everything"], False)
    keep_ratio("a plain broker's queue to SimPy, messages/s", faster)
    assert by_arrivals["plain"] < PLAIN_TO_ARRIVALS_MAX
    assert by_arrivals["everything"] < EVERYTHING_TO_ARRIVALS_MAX
    assert faster > FASTER_THAN_SIMPY_MIN
