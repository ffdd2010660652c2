"""Results of a search that are known without a simulation: of depths that a queue never reached.

A run at depth D in which the content of a queue was at most h, of every client, is to the message the run at each depth
from h to D with the same arrivals. By induction over the arrivals: what was admitted left at most h, so it is admitted
at the lower depth after the same discards; what was refused, or had to wait at its endpoint, met a content that is too
high for D, and so for the lower depth. The three rules of discarding and the window of G-1 (`sim.egress.queues`)
compare the content with the depth in no other way, and nothing else reads the depth. A run that lost messages is no
exception.

The mark h is of the whole run only where nothing was warmed up, and the depth one number where it is of every profile
and never changed.
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
    """The settings of a search that are depths, and the others, by their places among the values."""

    queues: tuple[tuple[int, str], ...]
    others: tuple[int, ...]

    @classmethod
    def of(cls, scenario: Scenario, settings: Sequence[VariedSetting]) -> DepthsOfSearch:
        """Return what of the settings is a depth whose results may be known; nothing where no result can be."""
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
        """Return the figures that a replication has at these values; None: it has to be simulated.

        Args:
            values: of every setting of the search.
            simulated: values and figures of other candidates in this replication.
        """
        for known, figures in simulated:
            if self.queues and all(known[place] == values[place] for place in self.others):
                marks = {each.queue: each.high_water_mark_work_units for each in figures}
                if all(queue in marks and marks[queue] <= values[at] <= known[at] for at, queue in self.queues):
                    return tuple(self._at_depths(each, known, values) for each in figures)
        return None

    def _at_depths(self, figures: Figures, known: Sequence[int], values: Sequence[int]) -> Figures:
        """Return a queue's figures with its depth at other values; what waits at a durable queue alone has no depth."""
        for at, queue in self.queues:
            if figures.queue == queue and figures.max_depth_work_units == known[at]:
                return replace(figures, max_depth_work_units=values[at])
        return figures
