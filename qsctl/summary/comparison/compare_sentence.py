"""The summary sentence of a comparison: the differing settings, the better side by measure, and measures without a
winner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qsctl.summary.comparison.compare import HEADLINES, Comparison, Difference, MeasureVerdict

_WORDS: Final = {
    "loss_ratio": "losses",
    "discards": "discards",
    "time_in_queue_p99": "p99 time in the queue",
    "time_in_queue_mean": "mean time in the queue",
    "time_to_done_p99": "p99 time to done",
    "time_to_done_mean": "mean time to done",
    "throughput": "throughput",
}


def sentence(comparison: Comparison) -> str:
    """Return the result of a comparison as a sentence."""
    wins: dict[MeasureVerdict, list[str]] = {MeasureVerdict.A: [], MeasureVerdict.B: []}
    shown = [each for each in comparison.differences if each.measure in HEADLINES]
    points = len({each.point.key for each in shown})
    for measure, queue in dict.fromkeys(
        (measure, each.queue) for measure in HEADLINES for each in shown if each.measure == measure
    ):
        mine = [each for each in shown if (each.measure, each.queue) == (measure, queue)]
        for verdict, what in wins.items():
            better = [each for each in mine if each.verdict is verdict]
            if better:
                place = f" at {len(better)} of {points} points" if points > 1 else _share(better[0])
                what.append(f"{_WORDS[measure]} of {queue}{place}")
    undecided = sum(each.verdict is MeasureVerdict.UNDECIDED for each in shown)
    parts = [f"{verdict.value} is better on {_listed(what)}" for verdict, what in wins.items() if what]
    if not parts:
        unknown = "no difference between A and B is shown: " + (
            "one run of each is too little"
            if all(each.difference.count == 1 for each in shown)
            else "simulate more replications"
        )
        parts = [unknown if undecided else "A and B give the same"]
    text = "; ".join(parts)
    return f"{_given(comparison)}{text[0].upper()}{text[1:]}.{_left_out(shown)}"


def _given(comparison: Comparison) -> str:
    """Return the beginning of the sentence, with the settings that differ."""
    if not comparison.settings:
        return ""
    load = [each for each in comparison.settings if each.is_load]
    named = _listed([str(each) for each in (*load, *(each for each in comparison.settings if not each.is_load))], 4)
    return f"{'The loads differ' if load else 'Different'}: {named}. "


def _left_out(shown: Sequence[Difference]) -> str:
    """Return the end of the sentence, with the measures that have no winner because the load or the duration
    differs.
    """
    measures = dict.fromkeys(_WORDS[each.measure] for each in shown if each.verdict is MeasureVerdict.NOT_COMPARED)
    if not measures:
        return ""
    return f" No winner is named on {_listed(list(measures))}: they follow the load, or the time, which is another."


def _share(difference: Difference) -> str:
    if difference.mean_a == 0.0:
        return ""
    return f" ({100 * difference.difference.mean / difference.mean_a:+.3g} %)"


def _listed(what: Sequence[str], most: int = 6) -> str:
    shown = list(what[:most])
    if len(what) > most:
        return f"{', '.join(shown)} and {len(what) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
