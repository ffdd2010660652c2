"""The results of the commands that simulate, to be printed or to be read by programs.

Figures of `qsctl.sim` and `qsctl.summary` in; rows, tables, sentences and documents with their fields out. Decides
which figures a command shows, in which order and words. Does not print: that is `cli.output.render`.

- `simulate.py`, `summarize.py`, `sweep.py`, `replay.py`, `rare.py`, `what_if.py`, `size_words.py`: by command;
- `_cluster.py`, `_worked.py`, `intervals.py`: parts of them, by the simulated system;
- `figures.py`: the simulator's counters as figures; `durations.py`: durations as text.

Always: a field of a document keeps its name from version to version. Read `simulate.py` first.
"""
