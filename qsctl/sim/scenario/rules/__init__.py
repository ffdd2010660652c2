"""Rules for a scenario across its elements: references resolve, values and times are compatible.

In: a scenario. Out: violations, each with the part that violates the rule, or one error that lists all of them. Decides
which scenarios a model cannot be prepared from. `forms` decides the range of a single value.

- `scenario.py`: the rules of all models, and the calls of the others;
- `broker_queue.py`, `engine.py`, `replay.py`: those of a broker's queue, an integration engine, a replay.

Invariant: one pass finds every violation, independently of the others. Read `scenario.py` first.
"""
