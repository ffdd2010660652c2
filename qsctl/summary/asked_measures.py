"""The measures that a caller requests, validated before any file is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.errors import UsageError
from qsctl.instant import Nanoseconds
from qsctl.summary.measures import tables

DEFAULT_BY: Final = ("client", "queue")

QUICK: Final = frozenset({"queues", "delays", "times_to_done", "intervals"})
"""The measures that need one pass over the log and one over some buckets, and a further one with acknowledgments."""

FIGURES: Final = frozenset({"queues", "delays", "times_to_done", "losses", "intervals"})
"""The measures computed from the cells; a request for any of them also computes `queues` and `delays`."""

SERIES: Final = frozenset({"windows", "depth"})
"""Tables over time, whose size grows with the length of the run."""

OVER_TIME: Final = SERIES | {"changes", "littles_law", "slow_subscribers"}
"""The measures computed from `moves`."""

ALL: Final = frozenset(tables.SCHEMAS)


@dataclass(frozen=True, slots=True)
class AskedMeasures:
    """The measures requested by a caller, with grouping, windows and confidence."""

    by: tuple[str, ...]
    window_ns: Nanoseconds
    measures: frozenset[str]
    exact: bool
    confidence: float
    clients: tuple[str, ...]

    @property
    def made(self) -> frozenset[str]:
        """The tables to compute, with the counters and delays that requested tables depend on."""
        return self.measures | ({"queues", "delays", "times_to_done"} if self.measures & FIGURES else frozenset())


def checked_measures(
    by: Sequence[str],
    window_ns: Nanoseconds,
    measures: Collection[str],
    exact: bool,
    confidence: float,
    clients: tuple[str, ...],
    run_count: int,
    *,
    names_runs: bool = False,
) -> AskedMeasures:
    """Return the validated request; `run` is added to the grouping for several runs, or if `names_runs`.

    Raises:
        UsageError: an unknown word, no run, a window that is not positive, or a confidence outside 0 and 1.
    """
    if run_count == 0:
        raise UsageError("no run is named", remedy="Name a run folder, as `qsctl simulate` prints it.")
    unknown = [word for word in by if word not in tables.KEYS]
    if unknown or not by:
        raise UsageError(
            f"--by {','.join(by)!r}: {unknown[0] if unknown else 'nothing'!r} cannot be grouped by",
            remedy=f"Use some of {', '.join(tables.KEYS)}, separated by commas.",
        )
    strange = sorted(set(measures) - ALL)
    if strange or not measures:
        raise UsageError(
            f"there is no measure {(strange or [''])[0]!r}", remedy=f"Use some of {', '.join(sorted(ALL))}."
        )
    if window_ns <= 0:
        raise UsageError("a window must be longer than nothing", remedy="Write it as in --window 1s.")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"a confidence of {confidence} is not inside 0 and 1", remedy="Write it as in 0.95.")
    words = tuple(dict.fromkeys([*(["run"] if run_count > 1 or names_runs else []), *by]))
    return AskedMeasures(words, window_ns, frozenset(measures), exact, confidence, clients)
