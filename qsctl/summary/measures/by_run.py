"""SQL expressions of values that differ between the runs of one frame, chosen by `run_number`.

For a frame of one run, a value is a literal, so that the plan does not depend on this mechanism. For several runs, it
is an element of a literal array, which Spark makes once for each task; a join would cost more for each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

RUN_NUMBER: Final = "run_number"
"""Name of the column with the index, from 0, of a row's run among the runs of the frame."""


def by_run(values: Sequence[str]) -> str:
    """Return the SQL expression of the value of a row's run.

    Args:
        values: the value of each run, in the order of the runs: literals of one type; at least one.
    """
    return values[0] if len(set(values)) == 1 else f"array({', '.join(values)})[{RUN_NUMBER}]"


def expression_by_run(expressions: Sequence[str]) -> str:
    """Return the SQL expression that a row's run has, if the runs have few different expressions.

    Args:
        expressions: the expression of each run, in the order of the runs; at least one.
    """
    places = {text: place for place, text in enumerate(dict.fromkeys(expressions))}
    if len(places) == 1:
        return expressions[0]
    cases = " ".join(f"when {place} then {text}" for text, place in places.items())
    return f"(case {by_run([str(places[text]) for text in expressions])} {cases} end)"
