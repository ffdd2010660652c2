"""A scenario as the record arrays that the kernels share, and the counters that are read from them.

Input: a scenario and its arrivals. Output: arrays of rows (`sim.kernel.records`), and an Arrow table of counters.
Decides the numbers by which the arrays represent a scenario's values, and the sizes of the arrays. During a run the
arrays are changed by the kernels of `queues`, `transmission` and `clients`.

- `scenario_layout.py`, `_receivers.py`: the rows of ports, clients, queues, flows and of the clients' readers;
- `client_names.py`: client names, built on access;
- `arrays.py`: the arrays of one run: allocated, enlarged when a kernel asks, reset at the end of the warm-up;
- `counters.py`: the rows of the event log's counters, and the totals at the end.

Always: the same scenario gives the same arrays. Read `scenario_layout.py` first.
"""
