"""Interaction while a command works: progress bars, Ctrl-C, and the question before a long run.

Progress of one or many runs in; lines on a terminal out, and nothing in a pipe. Decides when a run counts as long, its
estimated cost, and what Ctrl-C ends. Does not decide what is kept of an interrupted run: that is `qsctl.sim.run`.

- `run_progress.py`: the bar of one run, and Ctrl-C; `task_progress.py`: the bar of many;
- `long_run.py`: time, memory and disk of a long run, estimated while it begins; `watched_run.py`: a run with both.

Always: without a terminal nothing is asked and no bar is written. Read `watched_run.py` first.
"""
