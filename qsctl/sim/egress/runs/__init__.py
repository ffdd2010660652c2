"""Runs of an egress model: the loop, the driver around it, runs by threads, and runs that branch.

Input: a layout and a seed. Output: message rows, events and counters, by the protocol `sim.model.ModelRun`. Decides the
order of events at one instant, and performs those at fixed times: changes, absences, ends of seconds, the end of the
warm-up. The events of a message are decided by the kernels that the loop calls.

- `_advance.py`: the compiled loop over arrivals, acknowledgments and timers;
- `run.py`: one repetition: the loop from one fixed time to the next;
- `_independent_ports.py`, `parallel_run.py`: the resources that clients share, and a run by threads of ports that share
  none;
- `trajectory.py`: a run whose state can be saved and resumed, for `sim.splitting`.

Always: the number of threads changes no byte of a run. Read `run.py` first, then `_advance.py`.
"""
