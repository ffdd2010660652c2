"""The results of a world: a verdict for each invariant, its figures, and its event log.

A world in; verdicts, figures and rows of the event log out. Decides when a world is at its end, and which faults of a
schedule are the fewest that break a rule. Does not define the rules: that is `invariants`.

- `verdict.py`: a world run to its end and judged, and the search for the fewest faults that break it;
- `_client_view.py`: a second judge, which uses only what programs saw;
- `_figures.py`, `elections.py`: time without a master, duplicates, and the masters of each replicated queue;
- `world_log.py`: the event log, with a row for each sample as its programs saw it.

Always: observing a world changes nothing in it. Read `verdict.py` first.
"""
