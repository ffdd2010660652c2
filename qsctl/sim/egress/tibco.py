"""The egress queues of a TIBCO Messaging Appliance P-7500.

Each client has one application message queue with a maximum depth in work units of 2,048 bytes; a message that
arrives while the depth is at the maximum is discarded and counted as Transmit Congestion--Slow Consumer, any other
enters whole. A message moves to the TCP transmit queue while that is below its maximum in bytes (which the message may
exceed), and waits otherwise: the TCP queue loses nothing. Below the minimum burst length tolerance, a message always
enters the message queue (the vendor's manual, "Configuring Client Queues"; 0 unless given). The scheduler moves it to
the send queue when TCP may send, and the port sends at line rate what its clients' windows allow.

Source: [P7500], "Functional Description", "Per-client TCP Queues", "Per-port Transmit Queues". The kernel is that of
the Solace model with another admission and without its endpoints, eliding and weights; the message queue is written as
D-1.
"""

from __future__ import annotations

from qsctl.errors import InvalidInput
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.egress.runs.parallel_run import egress_run
from qsctl.sim.model import CHUNK_ROWS, ModelRun
from qsctl.sim.scenario.scenario import Model, Queue, Scenario


def prepare(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Check the scenario, lay out its arrays and seed the random streams of this repetition.

    Raises:
        InvalidInput: traffic to a priority queue, which this model does not have.
    """
    if scenario.model is not Model.TIBCO:
        raise InvalidInput(f"{scenario.name}: the model is {scenario.model}, not tibco", remedy="Name the model.")
    for traffic in scenario.traffic:
        if traffic.queue is not Queue.D_1:
            raise InvalidInput(
                f"traffic {traffic.name!r} is sent to queue {traffic.queue}; a TIBCO client has one message queue",
                remedy="Leave the queue out.",
            )
    return egress_run(scenario, replication, level, chunk_rows)
