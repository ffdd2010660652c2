"""Drivers that step the engine, and the programs around them: the daemon, session processes, the embedded service.

Input: a configuration, and an `Environment` with files, threads and randomness. Output: messages, each sent once the
records that it depends on are durable. `run.loop` is the driver; it and what it is made of (`stores`, `replicas`) reach
the machine through the environment alone, so that `sim.world` steps the same driver on virtual time.

- `run`: the driver, its environment, and the changes requested of it while it runs.
- `stores`: which record is written to which store, syncs, failures, and the recovery at a start.
- `replicas`: the service as a member of a replication cluster.
- `process`: start, background, supervisor, log, memory and metrics of a process that serves.
- `directory`: the embedded service, which lives in a state directory and runs inside each command.
- `recording`, `sessions`: the event log of a live service, and the processes that share its queues.

Read first: `run/loop.py`, then `run/environment.py`.
"""
