"""Values that differ between the runs of one frame, as texts of SQL: `run_number` chooses among them.

A frame of one run needs no such column: each value is a literal then, and a plan of one run is what it would be if
there were no others. Of many, a value is an element of an array, which Spark makes once a task: a join would
cost more for each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

RUN_NUMBER: Final = "run_number"
"""The column of a frame that has the place of a row's run among those that were read together, from 0."""


def by_run(values: Sequence[str]) -> str:
    """Return the value of a row's run.

    Args:
        values: of each run, in their order: literals of one type; at least one.
    """
    return values[0] if len(set(values)) == 1 else f"array({', '.join(values)})[{RUN_NUMBER}]"


def expression_by_run(expressions: Sequence[str]) -> str:
    """Return the expression of a row's run, of which runs have few different ones.

    Args:
        expressions: of each run, in their order; at least one.
    """
    places = {text: place for place, text in enumerate(dict.fromkeys(expressions))}
    if len(places) == 1:
        return expressions[0]
    cases = " ".join(f"when {place} then {text}" for text, place in places.items())
    return f"(case {by_run([str(places[text]) for text in expressions])} {cases} end)"
