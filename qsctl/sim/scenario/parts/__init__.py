"""The parts of a scenario, as frozen dataclasses: publishers, consumers, queues, and the durations of their work.

Values are in nanoseconds, bytes, bits a second and work units, with their defaults. Decides which values a part has.
`forms` decides how they are written, `rules` which of them are compatible.

- `traffic.py`, `client.py`, `durable.py`: traffic, clients, and the durable queues that clients share;
- `broker_queue.py`: a queue of any broker; `work_time.py`: durations of work; `empirical.py`: measured ones;
- `engine.py`: the integration engine [CLOVERLEAF]; `replay.py`: a recording; `world.py`: a cluster under faults [QS 7].

Invariant: a part is immutable, and equal to another with the same values. Read `traffic.py` first.
"""
