"""The integration engine [CLOVERLEAF] under virtual time: `core.integration` itself, with senders and receivers.

In: a scenario of model `integration`. Out: from `crash_points.explore`, a judgement of every interruption; from
`run_on_disk.run_engine`, a run against a recovery database that stays. Runs that only count are those of
`sim.integration`, a compiled loop of the same rules, and this is its oracle.

- `world.py`: the driver: connections, operators, power, and the order of storing and releasing; `peers.py`: senders,
  receivers and the clock, and how they are recorded; `plan.py`: stops, outages, crashes and failures of the scenario;
- `recovery_store.py`: a recovery database that is written; `_recovery_file.py`: what a file is, what of it can be read;
- `visit_log.py`: events folded into counters; `client_names.py`: the numbers of threads in a log;
- `build.py`, `behaviours.py`: the engine's settings out of a scenario, and what its declared procedures do;
- `_interruption.py`, `crash_points.py`: a run step by step, and what recovery does behind each step.

Invariants: records are stored before what rests on them is released; a transaction has the engine's records and what
changed around it, so that a run that is cut behind any of them and continued is one run; what a declared procedure does
is a function of the message alone, so that it does the same after a restart; a receiver processes one message at a
time.

Read first: `world.py`.
"""
