"""Drivers that step the engine, and the programs around them: the daemon, session processes, the embedded service.

What comes in: a configuration, and an `Environment` with files, threads and randomness. What goes out: messages that
rest on what is durable. `loop` is the driver; it and what it is made of (`stores`, `replication`, `replica_writes`,
`recovery`) reach the machine through the environment alone, so that `sim.world` steps the same driver on virtual time.

Read first: `loop.py`, then `environment.py`.
"""
