"""Rare events: how often a queue loses a message or is filled, where plain runs would see it once in a million years.

In: a scenario of model `solace`, `tibco` or `shared_reader_queue`, and a question (`question.py`). Out: samples, each
an unbiased estimate by one split run (`restart.SplitRun`), of which `summary.rare` makes an estimate with its interval.

- `question.py`: what `--rare` asks;
- `trajectory.py`: what a model gives: a run that can be left at an instant and gone on with from there;
- `restart.py`: one run, split at thresholds of the importance;
- `levels.py`: where those are;
- `samples.py`: independent split runs, in as many processes as are wanted.

Invariants: thresholds, factors and the importance never change what an estimate is expected to be, only its cost; no
two trajectories share random numbers beyond the instant at which they part; a sample depends on the scenario, its seed,
the levels and its number alone.

Read first: `restart.py`.
"""
