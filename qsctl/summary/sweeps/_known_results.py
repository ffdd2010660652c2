"""Results of a search that need no simulation: those at depth limits that a queue never reached.

If in a run at depth limit D the content of every client's queue was at most h, the run at each limit from h to D with
the same arrivals is identical, message by message. By induction over the arrivals: after an admitted message the
content was at most h, so it is admitted at the lower limit after the same discards; a message that was refused, or had
to wait at its endpoint, met a content too high for D, and so for the lower limit. The three rules of discarding and the
window of G-1 (`sim.egress.queues`) compare the content with the limit in no other way, and nothing else reads it. A run
that lost messages is no exception.

The mark h covers the whole run only without a warm-up, and the limit is one number only if it is the same in every
profile and never changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from qsctl.sim.figures import Figures
from qsctl.sim.scenario.scenario import Model, Scenario
from qsctl.sim.sizing.targets import VariedSetting

_DEPTH_OF_ALL_PROFILES: Final = re.compile(r"profile\[\*\]/queue\[(?P<queue>[^\]*]+)\]/max-depth")


@dataclass(frozen=True, slots=True)
class DepthsOfSearch:
    """The settings of a search that are depth limits, and the other settings, by their index among the values."""

    queues: tuple[tuple[int, str], ...]
    others: tuple[int, ...]

    @classmethod
    def of(cls, scenario: Scenario, settings: Sequence[VariedSetting]) -> DepthsOfSearch:
        """Return the settings that are depth limits with results that may be known; empty if there can be none."""
        queues: dict[int, str] = {}
        if scenario.model is Model.SOLACE and not scenario.warm_up_ns and not scenario.changes:
            for place, setting in enumerate(settings):
                if (depth := _DEPTH_OF_ALL_PROFILES.fullmatch(setting.path)) is not None:
                    queues[place] = depth["queue"]
        others = tuple(place for place in range(len(settings)) if place not in queues)
        return cls(tuple(queues.items()), others)

    def result(
        self, values: Sequence[int], simulated: Iterable[tuple[Sequence[int], tuple[Figures, ...]]]
    ) -> tuple[Figures, ...] | None:
        """Return the known figures of a replication at these values; None if it must be simulated.

        Args:
            values: the value of every setting of the search.
            simulated: values and figures of other candidates in this replication.
        """
        for known, figures in simulated:
            if self.queues and all(known[place] == values[place] for place in self.others):
                marks = {each.queue: each.high_water_mark_work_units for each in figures}
                if all(queue in marks and marks[queue] <= values[at] <= known[at] for at, queue in self.queues):
                    return tuple(self._at_depths(each, known, values) for each in figures)
        return None

    def _at_depths(self, figures: Figures, known: Sequence[int], values: Sequence[int]) -> Figures:
        """Return a queue's figures with its depth limit replaced; unchanged without one, as of a durable queue."""
        for at, queue in self.queues:
            if figures.queue == queue and figures.max_depth_work_units == known[at]:
                return replace(figures, max_depth_work_units=values[at])
        return figures
