"""The parts of a scenario, as frozen dataclasses: who sends, who consumes, through what, and for how long.

Nothing comes in, nothing goes out: values in nanoseconds, bytes, bits a second and work units, with their defaults.
Decides which values a part has. Does not decide how they are written: that is `forms`; nor which fit together: that is
`rules`.

- `traffic.py`, `client.py`, `durable.py`: traffic, clients, and the durable queues that clients share;
- `broker_queue.py`: a queue of any broker; `work_time.py`: durations of work; `empirical.py`: measured ones;
- `engine.py`: the integration engine [CLOVERLEAF]; `replay.py`: a recording; `world.py`: a cluster under faults [QS 7].

Always: a part is immutable, and equal to another with the same values. Read `traffic.py` first.
"""
