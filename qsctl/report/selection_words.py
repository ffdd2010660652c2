"""Texts about the best point or the Pareto front of a sweep, for `qsctl sweep` and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qsctl.report._words import measure_text

if TYPE_CHECKING:
    from qsctl.summary.sweeps.selection import Ranked, Selection

_MOST_NAMED: Final = 5
_MOST_LINES: Final = 30


def is_separated(selection: Selection) -> bool:
    """Return whether exactly one of several points is shown to be the best."""
    return len(selection.criteria) == 1 and len(selection.staying) == 1 < len(selection.ranked)


def selection_text(selection: Selection) -> str:
    """Return the result as text: the point that is best, the points that may be, or the points that may be on the
    front.
    """
    first, *more = selection_lines(selection)
    return "\n".join([first, *(f"  {line}" for line in more)])


def selection_lines(selection: Selection) -> list[str]:
    """Return the result as a paragraph; for a front, a further line for each point that may be on it."""
    names = ", ".join(str(each) for each in selection.criteria)
    left = f" Left out, with too few replications that have it: {len(selection.left_out)}." * bool(selection.left_out)
    if len(selection.criteria) == 1:
        return [f"Best by {names}: {_best_text(selection)}{left}"]
    count, stay = len(selection.ranked), selection.staying
    if len(stay) < count:
        line = (
            f"{len(stay)} of {count} points may be on it. The others are beaten on both, and with "
            f"{_percent(selection)} confidence none of the front is among them."
        )
    else:
        line = f"all of the {count} points may be on it: none is shown to be beaten on both."
    unnamed = [f"… and {len(stay) - _MOST_LINES} more"] * (len(stay) > _MOST_LINES)
    lines = [f"{each.point}: {means_text(selection, each)}" for each in stay[:_MOST_LINES]]
    return [f"Pareto front of {names}: {line}{left}", *lines, *unnamed]


def means_text(selection: Selection, ranked: Ranked) -> str:
    """Return a point's mean of each criterion, as text."""
    pairs = zip(selection.criteria, ranked.means, strict=True)
    return ", ".join(f"{criterion} {measure_text(criterion.measure, mean)}" for criterion, mean in pairs)


def _best_text(selection: Selection) -> str:
    count, stay = len(selection.ranked), selection.staying
    if count == 1:
        return "there is one point."
    if len(stay) == 1:
        return f"{stay[0].point}, of {count} points, with {_percent(selection)} confidence."
    if selection.is_tie:
        return f"{len(stay)} of {count} points had the same best value in every replication: {_named(stay)}."
    bound = ""
    if selection.worse_at_most is not None:
        bound = f" {stay[0].point} is the best, or at most {_by_text(selection)} worse than it."
    return (
        f"not separated. {len(stay)} of {count} points may be the best, which is among them with "
        f"{_percent(selection)} confidence: {_named(stay)}.{bound} More replications separate more, but for points "
        "that are equally good."
    )


def _named(stay: tuple[Ranked, ...]) -> str:
    more = f"; and {len(stay) - _MOST_NAMED} more" if len(stay) > _MOST_NAMED else ""
    return f"{'; '.join(str(each.point) for each in stay[:_MOST_NAMED])}{more}"


def _by_text(selection: Selection) -> str:
    """Return the bound on how much worse a point may be; for shares in percentage points."""
    measure, bound = selection.criteria[0].measure, selection.worse_at_most
    return measure_text(measure, bound).replace(" %", " percentage points")


def _percent(selection: Selection) -> str:
    return f"{100 * selection.confidence:g} %"
