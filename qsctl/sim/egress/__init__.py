"""The egress queues of message brokers: Solace [SOL-QUEUES] and the TIBCO appliance [P7500], in one compiled loop.

In: a scenario of model `solace` or `tibco`. Out: a `sim.model.ModelRun`: message rows, events, one row of counters for
each client and queue.

    arrivals → ingress → priority queue → TCP transmit queue → port → acknowledgment
                 endpoint ⇄ G-1 ┘

- `solace.py`, `tibco.py`: the description of each model, with its sources;
- `queues`: admission, discard and the schedulers of a priority queue; endpoints behind G-1; message eliding;
- `transmission`: from the TCP transmit queue over port and link to the client's receive buffer, with loss or without;
- `clients`: a client's connection, application, absences and traits, and queues that several clients share;
- `broker`: what the broker itself limits and observes: ingress, subscriptions, slow subscribers;
- `layout`: a scenario as record arrays, their growth, and the counters read from them;
- `runs`: the loop, the driver around it, runs by threads, and runs that branch.

Imports point one way: `solace`, `tibco` → `runs` → `broker` → `layout` → `clients` → `queues` →
`transmission`; a contract in `pyproject.toml` holds it.

Invariants: a message is in one list of nodes and ends in one outcome; a queue's length and work units are those of its
messages; acknowledgments of a client never overtake each other; the order at one instant is that of `runs/_advance.py`.
Reference models in plain Python (tests/sim/oracle_solace.py, oracle_tibco.py) agree with the kernels on every message.

Read first: `solace.py`, `runs/_advance.py`, `queues/priority_queue.py`.
"""
