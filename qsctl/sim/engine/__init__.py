"""The integration engine [CLOVERLEAF] under virtual time: `core.integration` itself, with senders and receivers.

In: a scenario of model `integration`. Out: from `crash_points.explore`, the result of every interruption; from
`run_on_disk.run_engine`, a run with a persistent recovery database. `sim.integration` is a compiled loop of the same
rules, for runs that only count; this package is its test oracle.

- `world.py`: the driver: connections, operators, power, and the order of storing and releasing; `peers.py`: senders,
  receivers and the clock, and how they are recorded; `plan.py`: stops, outages, crashes and failures of the scenario;
- `recovery_store.py`: a recovery database open for writing; `_recovery_file.py`: recognition and reading of its file;
- `visit_log.py`: events folded into counters; `client_names.py`: the numbers of threads in a log;
- `build.py`, `behaviours.py`: the engine's settings out of a scenario, and what its declared procedures do;
- `_interruption.py`, `crash_points.py`: a run step by step, and the recovery after each step.

Invariants: records are stored before the messages that depend on them are released; a transaction has the engine's
records and the changes of its peers, so that a run interrupted after any transaction and continued has the results of a
single run; the results of a declared procedure are a function of the message alone, so that they are the same after a
restart; a receiver processes one message at a time.

Read first: `world.py`.
"""
