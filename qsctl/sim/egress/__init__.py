"""The egress queues of message brokers: Solace [SOL-QUEUES] and the TIBCO appliance [P7500], in one compiled loop.

In: a scenario of model `solace` or `tibco`. Out: a `sim.model.ModelRun`: message rows, events, one row of counters for
each client and queue.

    arrivals → ingress → priority queue → TCP transmit queue → port → acknowledgment
                 endpoint ⇄ G-1 ┘

- `solace.py`, `tibco.py`: the description of each model, with its sources;
- `layout.py`, `layout_of_receivers.py`: a scenario as record arrays;
- `run.py`: the driver: the kernel from one set time to the next, and between them changes, absences, seconds;
- `independent_ports.py`, `parallel_run.py`: what clients share, and a run by threads of ports that share nothing;
- `advance.py`: the loop; `queue.py`: admission, discard, the schedulers; `connection.py`: one client's connection, one
  text for plain clients and for those with traits; `transmit.py`, `port.py`: port and link; `tcp.py`, `congestion.py`:
  connections that lose segments; `serve.py`, `endpoint.py`, `eliding.py`, `presence.py`: clients with a trait;
- `receiver.py`, `application.py`: a client's receive buffer and readers, and its application's acknowledgments;
- `durable.py`: queues whose messages several clients share;
- `ingress.py`, `admit_ingress.py`, `subscriptions.py`: the stage before the queues; `slow_subscribers.py`: each second;
- `arrays.py`, `counters.py`: the arrays of a run, and its counters;
- `watch.py`, `trajectory.py`: the distance of a queue from a loss, and a run that branches there (`sim.splitting`).

Invariants: a message is in one list of nodes and ends in one outcome; a queue's length and work units are those of its
messages; acknowledgments of a client never overtake one another; equal times are ordered as `advance.py` specifies.
Oracles in plain Python (tests/sim/oracle_solace.py, oracle_tibco.py) agree with the kernels to the message.

Read first: `solace.py`, `advance.py`, `queue.py`.
"""
