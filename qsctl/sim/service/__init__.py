"""Our own queuing service under virtual time: what runs live is what is simulated.

In: a scenario of model `shared_reader_queue`: a service's configuration and the workload of its producers and
consumers. Out: a `sim.model.ModelRun`: one row for each sample and queue, one row of counters for each queue.

- `run.py`: the driver: the virtual clock, the network's delay, who is away when, the election of a master;
- `peers.py`: the programs around the service, each with the state machine that a live client has
  (`core.client.Producer` and `Consumer`): windows, what is held, twins, acknowledgments;
- `_sample_log.py`: the queue's events folded into rows and counters;
- `trajectory.py`: a run that branches (`sim.splitting`).

There is no second version of the queue or of its clients: messages and time go into `core.turn`, records, messages and
events come out, as for a live driver. What is simulated is what surrounds them: networks, programs, storage.

Invariants: peers draw from streams of their own, so that a variant of the service sees the same writes and the same
service times; every sample of every queue has exactly one outcome; slices of time change no row.

Read first: `run.py`.
"""
