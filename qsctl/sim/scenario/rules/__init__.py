"""Rules for a scenario beyond its elements' own values: references that resolve, values and times that fit together.

A scenario in; breaches out, each with the part it is about, or one error that lists all of them. Decides what a model
cannot be prepared from. Does not decide the range of a single value: that is `forms`.

- `scenario.py`: the rules of all models, and the way to the others;
- `broker_queue.py`, `engine.py`, `replay.py`: those of a broker's queue, an integration engine, a replay.

Always: every breach is found in one pass, whatever the others are. Read `scenario.py` first.
"""
