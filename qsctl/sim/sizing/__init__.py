"""The inputs of `qsctl size` and `client-profile size`: targets, settings to vary, a bound of memory, and a load.

In: texts such as `time_to_done_p99(G-1)<50ms` and `max-depth(D-1)=100..20000`; a client profile and a load. Out:
`Target` and `VariedSetting`, an upper bound of the memory of a scenario's queues, and the scenario of a profile under a
load.

`targets.py` reads targets and settings; `memory.py` bounds the content of queues; `offered_load.py` makes the scenario
that checks the arithmetic of `profiles.sizing`. The search itself is in `qsctl.summary`: it needs many runs.

Invariants: a target has the unit of its measure; a setting stays inside the range that the broker allows.

Read first: `targets.py`.
"""
