"""Observers of a service, metrics and a recording: they give rows in which samples can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from qsctl.core.engine import ServiceEngine
from qsctl.core.ready import Ready
from qsctl.eventlog.recording.fold import Fold
from qsctl.eventlog.recording.sampling import Sampling
from qsctl.eventlog.recording.story import Happened, RecordingEnded, decode, encode
from qsctl.eventlog.recording.tables import table_of
from qsctl.eventlog.schema import LogLevel
from qsctl.service.process.metrics import REFRESH_NS, Tally
from qsctl.service.recording._beginning import beginning

_SAMPLE: Final = ("queue", "producer", "sequence_number")


class NoFaults:
    """The counters of invalid messages at a service whose peers send none."""

    refused_count = unexpected_count = skipped_count = unsigned_count = 0
    denied: Mapping[str, int] = {}
    refused_letters: Mapping[str, int] = {}


class Observed:
    """The metrics of one engine since its start, and a recording of it while there is one."""

    def __init__(self, engine: ServiceEngine) -> None:
        self._engine = engine
        self._tally = Tally(engine, NoFaults())
        self._fold: Fold | None = None
        self._now = 0

    def begin(self, now: int, share: float) -> None:
        """Begin a recording."""
        queues = [(name, each.settings.limits.max_count) for name, each in self._engine.hosted.by_name.items()]
        self._fold = Fold("svc", queues, now, LogLevel.EVENTS, Sampling(share))
        self._engine.hosted.reports_inputs = True
        for part in beginning(self._engine, now):
            self._fold.note(decode(encode(part)))

    def note(self, now: int, ready: Ready) -> None:
        """Observe a turn, the recorder by the octets that it receives."""
        self._now = now
        self._tally.count(ready.events)
        if self._fold is not None:
            self._fold.note(decode(encode(Happened(ready.events, list(ready.inputs)))))

    def figures(self) -> object:
        """Return the metrics, and the counters of the recording."""
        self._tally._refreshed_at_ns = -REFRESH_NS
        assert self._tally.refresh()
        counters = {} if self._fold is None else self._fold.counters(self._now)
        return self._tally.figures._replace(refreshed_at_ns=0), {name: _listed(each) for name, each in counters.items()}

    def end(self) -> dict[str, list[dict[str, Any]]]:
        """End the recording, and return its rows by table."""
        fold, self._fold = self._fold, None
        self._engine.hosted.reports_inputs = False
        if fold is None:
            return {}
        fold.note(RecordingEnded(self._now))
        fold.end()
        return {name: table_of(name, each, "run").to_pylist() for name, each in fold.take_rows().items() if len(each)}


def _listed(column: Any) -> list[Any]:
    return [each.tolist() if isinstance(each, np.ndarray) else each for each in column]


def assert_equal_rows(one: dict[str, list[dict[str, Any]]], other: dict[str, list[dict[str, Any]]]) -> None:
    """Compare the rows of two recordings of the same history, of which one has ranges of samples.

    The number of a step may differ, since all samples of a range take one step before the first takes the next. The
    order of the steps of a sample is the same, and the order of the samples in each kind of step at one peer.
    """
    assert one.keys() == other.keys()
    for name, rows in one.items():
        assert sorted(map(_without_steps, rows), key=repr) == sorted(map(_without_steps, other[name]), key=repr)
    for rows in (one, other):
        of_samples = [*rows.get("arrivals", ()), *rows.get("deliveries", ())]
        at_beginning = {None, *(row["step"] for row in of_samples if row.get("origin") in ("held", "outside"))}
        numbers = [row[name] for row in of_samples for name in _STEPS if row.get(name) not in at_beginning]
        assert len(numbers) == len(set(numbers)), "each step has its number"
    assert _orders(one) == _orders(other)


_STEPS: Final = ("step", "answered_step", "late_step")


def _without_steps(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value is None if name in _STEPS else value for name, value in row.items()}


def _orders(tables: dict[str, list[dict[str, Any]]]) -> object:
    """Return the steps of each sample, in order, and the samples of each peer and kind of step."""
    of_sample: dict[object, list[tuple[int, str]]] = {}
    of_peer: dict[object, list[tuple[int, int]]] = {}
    for name in ("arrivals", "deliveries"):
        for row in tables.get(name, ()):
            sample = tuple(row[each] for each in _SAMPLE)
            for step in _STEPS:
                if (number := row.get(step)) is not None:
                    kind = f"{name} {step} {row['answer']} {row.get('attempt')}"
                    of_sample.setdefault(sample, []).append((number, kind))
                    peer = (row["queue"], row["producer"], row.get("consumer"), name, step)
                    of_peer.setdefault(peer, []).append((number, row["sequence_number"]))
    return tuple(
        {key: [what for _, what in sorted(steps)] for key, steps in each.items()}  # type: ignore[misc]
        for each in (of_sample, of_peer)
    )
