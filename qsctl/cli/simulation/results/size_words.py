"""Texts for the answer of `qsctl size`: the verdict, its evidence, and the searched range."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from qsctl.cli.simulation.results.durations import short_duration

if TYPE_CHECKING:
    from qsctl.sim.scenario.scenario import Scenario
    from qsctl.sim.sizing.targets import Target
    from qsctl.summary.inference.evidence import Support, TargetEvidence
    from qsctl.summary.sweeps.size import Sizing


def answer_text(sizing: Sizing) -> str:
    """Return the answer as a sentence, which states no more about the settings than was shown."""
    targets = " and ".join(target.text for target in sizing.targets)
    sure = f"with {100 * sizing.confidence:g} % confidence"
    if sizing.answer is None:
        nearest = max(sizing.candidates, key=lambda each: (sum(one.met for one in each.evidence), each.values))
        missed = next((each for each in nearest.evidence if each.decided and not each.met), None)
        why = f": with {_settings(sizing, nearest.values)}, {statement_of(missed)}" if missed else ""
        if sizing.deterministic:
            return f"No setting in the range meets {targets}{why}."
        return f"No setting in the range was shown {sure} to meet {targets}{why}."
    settings = _settings(sizing, sizing.answer.values)
    up_to = ""
    if sizing.largest is not None and sizing.largest > sizing.answer.values[0]:
        up_to = f" All values up to {sizing.largest} meet it, too." if sizing.monotone else ""
    memory = (
        f"All queues together may then hold {memory_text(sizing.answer.memory_bytes)}, bursts of the largest messages "
        "included."
    )
    smallest = "the smallest of those tried that" if sizing.method.value in {"scan", "list"} else "the smallest that"
    if sizing.deterministic:
        return (
            f"{settings}: {smallest} meets {targets}.{up_to} {memory} Nothing in the scenario is random: one "
            "replication of each candidate is certain."
        )
    stated = "; ".join(statement_of(each) for each in sizing.answer.evidence)
    return f"{settings}: {smallest} was shown to meet {targets}; {sure}, {stated}.{up_to} {memory}"


def load_text(scenario: Scenario) -> str | None:
    """Return the loads that the answer is based on, if they are those of a recording; else None."""
    replay = scenario.replay
    if replay is None:
        return None
    count = len(replay.recordings)
    if count > 1:
        return (
            f"The first {count} runs had the loads of the {count} recordings, one each; of a larger number each other "
            "one had a load that was drawn from one of them in blocks. What is stated of runs is stated of times like "
            "those that were recorded."
        )
    beyond = "That the load differs more than one recording shows, from day to day, is not in it."
    if not replay.resample_blocks:
        return f"Every run had the load of the recording, and differs by what is modelled alone. {beyond}"
    from qsctl.eventlog.location import location
    from qsctl.sim.replay.recording import read_recording
    from qsctl.sim.replay.resampled import block_ns

    length = short_duration(block_ns(read_recording(location(replay.recording)), replay.resample_blocks))
    return (
        f"The first run had the load of the recording, each other one a load drawn from it in {replay.resample_blocks} "
        f"blocks of {length}. {beyond}"
    )


def _settings(sizing: Sizing, values: tuple[int, ...]) -> str:
    return ", ".join(
        f"{setting.text.partition('=')[0]} = {setting.value_text(value)}"
        for setting, value in zip(sizing.settings, values, strict=True)
    )


def looked_at_text(sizing: Sizing) -> str:
    """Return the searched part of the range, the assumed effect of each setting, and the results that contradict it."""
    from qsctl.sim.sizing.directions import Direction

    parts = []
    for place, setting in enumerate(sizing.settings):
        tried = sizing.tried(place)
        name = setting.text.partition("=")[0]
        first, last = setting.value_text(tried[0]), setting.value_text(tried[-1])
        if len(tried) == setting.high - setting.low + 1:
            parts.append(f"{name} at each of its {len(tried)} values from {first} to {last}")
        elif sizing.method.value == "list":
            parts.append(f"{name} at the {len(tried)} values that were listed")
        else:
            parts.append(f"{name} at {len(tried)} values between {first} and {last}")
    sentences = [f"Looked at {' and '.join(parts)}."]
    words = {
        Direction.BETTER: "A larger {setting} is better for {target}: {reason}.",
        Direction.WORSE: "A larger {setting} is worse for {target}: {reason}.",
        Direction.UNKNOWN: "Whether a larger {setting} is better for {target} is unknown ({reason}): only the values "
        "that were tried are known.",
    }
    for effect in sizing.effects:
        name = effect.setting.text.partition("=")[0]
        sentences.append(words[effect.direction].format(setting=name, target=effect.target.text, reason=effect.reason))
    sentences += [
        f"What was seen of {effect.target.text} contradicts that, and the search and its confidence rest on it: list "
        f"values, as in --vary '{effect.setting.text.partition('=')[0]}=100,200,400', to try each."
        for effect in sizing.contradicted
    ]
    return " ".join(sentences)


def statement_of(evidence: TargetEvidence) -> str:
    """Return as a clause what the replications show about a target; the confidence is that of this statement."""
    from qsctl.summary.inference.evidence import Basis
    from qsctl.summary.inference.sequential import SequentialAnswer

    target, runs = evidence.target, evidence.runs
    what = f"{target.measure}({target.queue})"
    match evidence.basis:
        case Basis.NOTHING:
            return f"no run delivered anything of which there is a {what}"
        case Basis.EXACT:
            return f"{what} is {_value(target, evidence.bound)}"
        case Basis.SHARE:
            share = f"{100 * evidence.share:g} %"
            counted = f"{evidence.violating_runs} of {runs} runs do"
            if evidence.met:
                return f"less than {share} of runs have {_violation(target)} ({counted})"
            if evidence.answer is SequentialAnswer.REFUSED and evidence.violating_runs:
                return f"{_violation(target)} in {evidence.violating_runs} of {runs} runs"
            return f"it was not shown that less than {share} of runs have {_violation(target)} ({counted})"
        case Basis.MEAN:
            return _mean_statement(evidence, what)


def _mean_statement(evidence: TargetEvidence, what: str) -> str:
    """Return what is shown about a mean and on which assumption, or why these runs cannot show it."""
    from qsctl.summary.inference.sequential import SequentialAnswer

    target, runs = evidence.target, evidence.runs
    mean = f"the mean {what} over runs"
    found = f"{_value(target, evidence.interval.mean)} in {runs} runs"
    if evidence.answer is not SequentialAnswer.OPEN:
        below = target.at_most == evidence.met
        rests = f", where no run has more than {_support(target, evidence.support)}" if evidence.support else ""
        return f"{mean} is {'below' if below else 'above'} {_value(target, evidence.bound)} ({found}){rests}"
    side = "below" if target.at_most else "above"
    cannot = f"it cannot be shown with these runs that {mean} is {side} {_value(target, target.bound)} ({found})"
    if evidence.support is None:
        return f"{cannot}: it may be down to {_value(target, evidence.bound)}"
    why = f"{cannot}, because a run may have up to {_support(target, evidence.support)}"
    if math.isfinite(evidence.runs_needed):
        return f"{why}: that takes about {_about(max(evidence.runs_needed, runs + 1))} runs like these"
    return f"{why}: the mean may be up to {_value(target, evidence.bound)}"


def _support(target: Target, support: Support) -> str:
    """Return the largest possible value of a run, and the reason for it."""
    from qsctl.summary.inference.evidence import BoundSource

    why = {
        BoundSource.STATED: "as --assume states",
        BoundSource.RATIO: "the most that a ratio is",
        BoundSource.ARRIVALS: "the most that its traffic brings",
        BoundSource.ASSUMED: "an assumption: --assume states another",
    }
    return f"{_value(target, support.bound)} ({why[support.source]})"


def _about(number: float) -> str:
    """Return a number of runs, rounded up to two digits."""
    digits = max(0, math.floor(math.log10(number)) - 1)
    return f"{math.ceil(number / 10**digits) * 10**digits:,}"


def _violation(target: Target) -> str:
    """Return the condition that a violating run meets, as in `discards(D-1) > 0`."""
    opposite = {"<": "≥", "<=": ">", ">": "≤", ">=": "<", "=": "≠"}
    operator = opposite[target.operator] if target.wanted else target.operator
    return f"{target.measure}({target.queue}) {operator} {_value(target, target.bound)}"


def evidence_text(evidence: TargetEvidence) -> str:
    """Return the number of violating runs, or a mean with its interval in the measure's unit, by the kind of target."""
    from qsctl.sim.sizing.targets import TargetKind
    from qsctl.summary.inference.evidence import Basis

    if evidence.basis is Basis.NOTHING:
        return "nothing delivered"
    if evidence.target.kind is not TargetKind.MEAN and evidence.basis is not Basis.EXACT:
        return f"{evidence.violating_runs} of {evidence.runs} runs violate"
    mean, half = evidence.interval.mean, evidence.interval.half_width
    if evidence.basis is Basis.EXACT or not math.isfinite(half):
        return _value(evidence.target, mean)
    if _is_time(evidence.target):
        return f"{short_duration(mean)} ± {short_duration(half)}"
    return f"{mean:.6g} ± {half:.3g}"


def _value(target: Target, value: float) -> str:
    return short_duration(value) if _is_time(target) else f"{value:.6g}"


def _is_time(target: Target) -> bool:
    from qsctl.sim.sizing.targets import is_time

    return is_time(target.measure)


def memory_text(size_bytes: int) -> str:
    """Return a size as text, with units in powers of 1024."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"
