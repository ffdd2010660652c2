"""Runs of an egress model: the loop, the driver around it, runs by threads, and runs that branch.

A layout and a seed in; message rows, events and counters out, by the protocol `sim.model.ModelRun`. Decides the order
of what happens at one instant, and what happens at set times: changes, absences, the ends of seconds and of the
warm-up. Does not decide what happens to a message: that are the kernels that the loop calls.

- `advance.py`: the compiled loop over arrivals, acknowledgments and timers;
- `run.py`: one replication: the loop from one set time to the next;
- `independent_ports.py`, `parallel_run.py`: what clients share, and a run by threads of ports that share nothing;
- `trajectory.py`: a run that is left at an instant and continued from there, for `sim.splitting`.

Always: the number of threads changes no byte of a run. Read `run.py` first, then `advance.py`.
"""
