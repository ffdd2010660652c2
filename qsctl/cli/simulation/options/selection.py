"""`--best` and `--front` of `qsctl sweep` and of a sweep's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from qsctl.summary.sweeps.selection import Criterion

BestOption = Annotated[
    str | None,
    typer.Option(
        "--best",
        metavar="MEASURE",
        help="Name the best points of a sweep by this measure, as in 'time_in_queue_p99(D-1)': those that no other one "
        "is shown to beat, with the confidence of the intervals.",
        show_default="none",
    ),
]
FrontOption = Annotated[
    str | None,
    typer.Option(
        "--front",
        metavar="MEASURES",
        help="Name the Pareto front of a sweep by two measures, as in 'high_water_mark(D-1),loss_ratio(D-1)': the "
        "points that no other one is shown to beat on both.",
        show_default="none",
    ),
]


def asked_criteria(best: str | None, front: str | None) -> list[tuple[Criterion, ...]]:
    """Return the measures that each given option names.

    Raises:
        UsageError: a text is not of the form, or there is no such measure.
    """
    from qsctl.summary.sweeps.selection import parse_criteria

    given = (("--best", best, 1), ("--front", front, 2))
    return [parse_criteria(text, count, option) for option, text, count in given if text is not None]
