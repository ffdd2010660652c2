"""A scenario as the record arrays that the kernels share, and the counters that are read from them.

A scenario and its arrivals in; arrays of rows (`sim.kernel.records`), and an Arrow table of counters out. Decides what
a scenario's values are as numbers of the arrays, and how large these are. Does not decide anything that happens in a
run: the kernels of `queues`, `transmission` and `clients` change the arrays.

- `scenario_layout.py`, `receivers.py`: the rows of ports, clients, queues, flows and of the clients' readers;
- `client_names.py`: names, made when they are asked for;
- `arrays.py`: the arrays of one run: made, enlarged when a kernel asks, reset at the end of the warm-up;
- `counters.py`: the rows of the event log's counters, and the totals at the end.

Always: the same scenario gives the same arrays. Read `scenario_layout.py` first.
"""
