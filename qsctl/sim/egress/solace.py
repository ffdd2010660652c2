"""The egress queues of a Solace event broker.

Five priority queues a client (C-1, D-3, D-2, D-1, G-1, highest first) with a maximum depth in work units of 2,048 bytes
and a minimum burst; the oldest message is discarded when a queue is full, and the next one delivered from it has the
discard indication; a scheduler moves messages one at a time to the client's TCP transmit queue, and TCP to the port's
queue at line rate, which the port's clients share. Guaranteed messages come from endpoints through G-1.

Source: [SOL-QUEUES] whole. Queue disciplines, endpoints, eliding: `queues`; TCP: `transmission`; clients:
`clients`; slow subscribers, ingress and subscriptions: `broker`; buffers: `runs`.
"""

from __future__ import annotations

from qsctl.errors import InvalidInput
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.egress.runs.parallel_run import egress_run
from qsctl.sim.model import CHUNK_ROWS, ModelRun
from qsctl.sim.scenario.scenario import Model, Scenario


def prepare(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Check the scenario, lay out its arrays and seed the random streams of this repetition."""
    if scenario.model is not Model.SOLACE:
        raise InvalidInput(f"{scenario.name}: the model is {scenario.model}, not solace", remedy="Name the model.")
    return egress_run(scenario, replication, level, chunk_rows)
