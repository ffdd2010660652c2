"""The results of `qsctl simulate --rare`: the rare figure, its interval, and the cost of plain runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qsctl.cli.output.results import Block, Plain, TextBlock, fields_of
from qsctl.cli.simulation.results.simulate import SimulateResult
from qsctl.errors import ExitStatus
from qsctl.summary.sweeps.rare import EFFECTIVE_LEAST, EFFECTIVE_WANTED, SEEN_LEAST

if TYPE_CHECKING:
    from qsctl.sim.splitting.question import Question
    from qsctl.summary.sweeps.rare import RareEstimate


@dataclass(frozen=True)
class RareResult(SimulateResult):
    """The estimate of one rare figure; without an estimate, if the pilot runs did not contain the event."""

    scenario: str
    model: str
    seed: int
    question: Question
    confidence: float
    precision: float
    thresholds: tuple[int, ...]
    factors: tuple[int, ...]
    reached: int
    most: int
    pilot_messages: int
    plain_messages: float
    estimate: RareEstimate | None
    elapsed_s: float
    reproduce: str

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO without an interval, since nothing is shown then; else DONE."""
        return ExitStatus.DONE if self._has_interval else ExitStatus.NO

    @property
    def _has_interval(self) -> bool:
        return self.estimate is not None and self.estimate.has_interval

    def document(self) -> Plain:
        """Return the estimate and its basis under stable names."""
        found = self.estimate
        shown = found if self._has_interval else None
        return {
            **fields_of(self, "scenario", "model", "seed"),
            "figure": self.question.text,
            "value": found.value if found is not None and found.seen else None,
            "low": shown.low if shown else None,
            "high": shown.high if shown else None,
            "half_width_ratio": shown.half_width / shown.value if shown else None,
            "confidence": self.confidence,
            "split_runs": found.samples if found else 0,
            "split_runs_that_saw_it": found.seen if found else 0,
            "effective_states": found.effective if found else 0.0,
            "trajectories": found.trajectories if found else 0,
            "simulated_messages": found.messages if found else 0,
            "pilot_messages": self.pilot_messages,
            "thresholds": list(self.thresholds),
            "factors": list(self.factors),
            "deepest": self.reached,
            "needed": self.most,
            "plain_runs_needed": shown.plain_runs if shown else None,
            "plain_messages_needed": shown.plain_messages if shown else None,
            "elapsed_s": self.elapsed_s,
            "reproduce": self.reproduce,
        }

    def blocks(self) -> Sequence[Block]:
        """Return the figure, then the runs that it is based on."""
        found = self.estimate
        if found is None or not found.seen:
            return [TextBlock(self._unseen(), "bad"), TextBlock(f"Again: {self.reproduce}", "faint")]
        lines = [TextBlock(f"{self.scenario}: {self.question.text} is about {found.value:.3g}{self._per()}.")]
        if self._has_interval:
            lines.append(
                TextBlock(
                    f"{100 * self.confidence:g} % interval: {found.low:.3g} to {found.high:.3g} "
                    f"(-{100 * (1 - found.low / found.value):.2g} % to +{100 * (found.high / found.value - 1):.2g} %).",
                    "good",
                )
            )
        else:
            lines.append(TextBlock(self._few(found), "bad"))
        lines.append(TextBlock(self._spent(found), "faint"))
        if self._has_interval:
            lines.append(TextBlock(self._plain(found), "faint"))
        lines.append(TextBlock(f"Again: {self.reproduce}", "faint"))
        return lines

    def _per(self) -> str:
        found = self.estimate
        assert found is not None
        if found.value <= 0.0:
            return ""
        once = 1.0 / found.value
        what = "run" if self.question.is_probability else "message"
        return f": one {what} in {once:,.3g}" if once < 1e6 else f": one {what} in {once:.2e}"

    def _few(self, found: RareEstimate) -> str:
        if found.seen < SEEN_LEAST:
            return (
                f"It cannot be shown: {found.seen} of {found.samples} split runs saw it, and fewer than {SEEN_LEAST} "
                "show too little. Give more --replications, or a longer horizon."
            )
        needed = math.ceil(found.samples * EFFECTIVE_WANTED / found.effective)
        return (
            f"It cannot be shown: nearly all of it comes from few of the states that were split, as much as from "
            f"{found.effective:.0f} that contribute equally, and fewer than {EFFECTIVE_LEAST} show too little. It is "
            "likely to be rarer or more frequent than that: it depends on more than how full the queue is. Give more "
            f"--replications ({needed:,} may do), or a longer horizon."
        )

    def _unseen(self) -> str:
        if self.reached < self.most:
            return (
                f"{self.scenario}: {self.question.text} cannot be shown: pilot runs with {self.pilot_messages:,} "
                f"messages came to {self.reached} of {self.most} and no further. It may be impossible, or happen by "
                "something else than a queue that grows."
            )
        return (
            f"{self.scenario}: {self.question.text} cannot be shown: the queue of {self.question.queue} was full in "
            f"pilot runs, and nothing was lost. A message may wait outside a full queue: ask for a depth, "
            f"'P(high_water_mark({self.question.queue})>={self.most})'."
        )

    def _spent(self, found: RareEstimate) -> str:
        return (
            f"{found.samples} split runs with {found.trajectories:,} trajectories and {found.messages:,} messages, "
            f"after pilot runs with {self.pilot_messages:,}; split at "
            f"{', '.join(str(each) for each in self.thresholds) or 'no depth: it is not rare'}."
        )

    def _plain(self, found: RareEstimate) -> str:
        about = f"{found.plain_runs:,.0f}" if found.plain_runs < 1e7 else f"{found.plain_runs:.2e}"
        least = "" if self.question.is_probability else "at least "
        return (
            f"Plain runs would need {least}{about} of this scenario, {found.plain_messages:.2e} messages, for an "
            "interval as narrow."
        )
