"""Rare events by multilevel splitting: losses and high depths that plain runs would show once in a million years.

Input: a scenario of model `solace`, `tibco` or `shared_reader_queue`, and a question (`question.py`). Output: samples,
each an unbiased estimate by one split run (`restart.SplitRun`), from which `summary.rare` computes an estimate with its
interval.

- `question.py`: the questions of `--rare`;
- `trajectory.py`: the interface of a model: a run whose state can be saved and resumed;
- `restart.py`: one run, split at thresholds of the importance;
- `levels.py`: the choice of the thresholds;
- `samples.py`: independent split runs, in any number of processes.

Invariants: thresholds, factors and the importance never change the expectation of an estimate, only its cost; no two
trajectories share random numbers beyond the instant at which they part; a sample depends on the scenario, its seed, the
levels and its number alone.

Read first: `restart.py`.
"""
