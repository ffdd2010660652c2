"""The best process for each thread: a search over moves of inbound threads, checked by simulation.

Decides: which assignment is better. Messages wait in front of the translation thread of a process; their number is
computed by the formula of Pollaczek and Khinchine over the hours of a day; an overloaded process adds a penalty in
proportion to its excess load. The search takes the one move, or exchange of two threads, that helps most, and again, up
to a number of moves; its result is then simulated against the unchanged scenario, with the same arrivals, and is
proposed only if fewer wait.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from qsctl.errors import InvalidInput, UsageError
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.sim.replication import simulate_counters
from qsctl.sim.scenario.overrides.engine_paths import moved
from qsctl.sim.scenario.parts.engine import Engine, EngineProcess
from qsctl.sim.scenario.scenario import PoissonArrivals, Scenario
from qsctl.sim.site.flows import HOURS, ThreadWork, busiest_hour, is_over_a_day, rate_at, translation_work

MOVES_MAX: Final = 10
MESSAGES_MAX: Final = 20_000
"""Messages that one checking run simulates, about."""
_GAIN: Final = 0.02
"""Part of what waits that a move must save."""
_OVERLOADED: Final = 1e6
"""Cost of one unit of work beyond a process's time, in messages."""
_STABLE: Final = 0.999
_PRE_TRANSLATION: Final = "pre-translation"


class ThreadMove(NamedTuple):
    """A move of a thread from the process `source` to the process `target`."""

    thread: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class ProcessLoad:
    """A process before and after: the share of time that it translates in the busiest hour, and its waiting messages.

    Waiting messages are the mean number in the simulation; None without a simulation.
    """

    process: str
    threads_before: int
    threads_after: int
    load_before: float
    load_after: float
    waiting_before: float | None = None
    waiting_after: float | None = None


@dataclass(frozen=True, slots=True)
class Balance:
    """The result of a search for a better assignment of threads to processes."""

    moves: tuple[ThreadMove, ...]
    processes: tuple[ProcessLoad, ...]
    hour: int | None
    """The busiest hour of the day, from 0; None: rates do not change over a day."""
    is_checked: bool
    """Whether the result was checked by simulation."""
    is_better: bool
    """Whether fewer messages wait, by the simulation or, without one, by the formula."""
    simulated_s: float = 0.0


def balance(
    scenario: Scenario,
    *,
    moves_max: int = MOVES_MAX,
    fixed: Iterable[str] = (),
    added: Iterable[str] = (),
    check: bool = True,
    messages_max: int = MESSAGES_MAX,
) -> Balance:
    """Search which threads to move to other processes.

    Args:
        scenario: a scenario with an engine.
        moves_max: largest number of threads that may be moved.
        fixed: threads that stay where they are.
        added: names of new processes that threads may be moved to.
        check: whether the result is checked by simulation.
        messages_max: approximate number of messages that one run of the check simulates.

    Raises:
        UsageError: a thread of `fixed` does not exist, or a process of `added` exists already.
        InvalidInput: no message takes time to translate, so that there is no load to balance.
    """
    assert scenario.engine is not None
    engine = _with_processes(scenario.engine, added)
    stays = frozenset(fixed)
    unknown = stays - {thread.name for process in engine.processes for thread in process.threads}
    if unknown:
        raise UsageError(f"there is no thread {min(unknown)!r}", remedy="Name a thread of the scenario.")
    hour = busiest_hour(engine) if is_over_a_day(engine) else None
    search = _BalanceSearch(engine, hour, stays)
    if not search.has_work:
        raise InvalidInput(
            f"{scenario.name}: no translation takes any time: there is nothing to balance",
            remedy="Give translations their duration: engine import --durations, or takes= in the scenario.",
        )
    moves = search.run(moves_max)
    after = engine
    for each in moves:
        after = moved(after, each.thread, each.target)
    before_load, after_load = _loads(engine, hour), _loads(after, hour)
    waiting: Sequence[Mapping[str, float]] = ()
    seconds = 0.0
    if check and moves:
        busy = [_busy(dataclasses.replace(scenario, engine=each), hour, messages_max) for each in (engine, after)]
        seconds = busy[0].horizon_ns / SECOND_NS
        waiting = [_waiting(each) for each in busy]
    is_better = bool(moves) and (not waiting or sum(waiting[1].values()) < sum(waiting[0].values()))
    rows = tuple(
        ProcessLoad(
            process.name,
            len(process.threads),
            len(_threads(after, process.name)),
            before_load.get(process.name, 0.0),
            after_load.get(process.name, 0.0),
            waiting[0].get(process.name, 0.0) if waiting else None,
            waiting[1].get(process.name, 0.0) if waiting else None,
        )
        for process in engine.processes
    )
    return Balance(tuple(moves), rows, hour, bool(waiting), is_better, seconds)


def _with_processes(engine: Engine, added: Iterable[str]) -> Engine:
    known = {each.name for each in engine.processes}
    made = []
    for name in added:
        if name in known:
            raise UsageError(f"there is a process {name!r} already", remedy="Choose another name.")
        known.add(name)
        made.append(EngineProcess(name))
    return dataclasses.replace(engine, processes=(*engine.processes, *made))


def _threads(engine: Engine, process: str) -> Sequence[object]:
    return next(each.threads for each in engine.processes if each.name == process)


def _loads(engine: Engine, hour: int | None) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in translation_work(engine, hour):
        found[each.process] = found.get(each.process, 0.0) + each.load
    return found


class _BalanceSearch:
    """The state of a search: the work of each thread in each hour, and the process that each is assigned to.

    Work is an array of three rows with a column for each hour: messages a second, load, and messages a second times the
    mean square of their service time.
    """

    def __init__(self, engine: Engine, hour: int | None, fixed: frozenset[str]) -> None:
        hours: Sequence[int | None] = range(HOURS) if hour is not None else (None,)
        rows = [translation_work(engine, at) for at in hours]
        self._processes = [each.name for each in engine.processes]
        self._of = {each.thread: each.process for each in rows[0]}
        self._began = dict(self._of)
        self._work: dict[str, _Work] = {
            each.thread: np.array([_row(at[number]) for at in rows]).T for number, each in enumerate(rows[0])
        }
        self._movable = [name for name, work in self._work.items() if name not in fixed and work[1].any()]
        self._sums: dict[str, _Work] = {name: np.zeros((3, len(rows))) for name in self._processes}
        for name, work in self._work.items():
            self._sums[self._of[name]] += work

    @property
    def has_work(self) -> bool:
        """Return whether the messages of any thread take time to translate."""
        return any(work[1].any() for work in self._work.values())

    def run(self, moves_max: int) -> list[ThreadMove]:
        """Search until no change helps; return the moves, each thread at most once."""
        while (best := self._best(moves_max)) is not None:
            for name, target in best:
                self._sums[self._of[name]] -= self._work[name]
                self._sums[target] += self._work[name]
                self._of[name] = target
        return [ThreadMove(name, self._began[name], to) for name, to in self._of.items() if to != self._began[name]]

    def _best(self, moves_max: int) -> Sequence[tuple[str, str]] | None:
        """Return the change that reduces waiting most, or None where none within `moves_max` reduces it enough."""
        cost = {name: _queue(work) for name, work in self._sums.items()}
        count = sum(to != self._began[name] for name, to in self._of.items())
        chosen, saved = None, max(_GAIN * sum(cost.values()), 1e-9)
        for change in self._changes(max(cost, key=lambda each: cost[each])):
            more = sum((to != self._began[name]) - (self._of[name] != self._began[name]) for name, to in change)
            if count + more > moves_max:
                continue
            gain = self._gain(change, cost)
            if gain > saved:
                chosen, saved = change, gain
        return chosen

    def _changes(self, fullest: str) -> Iterable[Sequence[tuple[str, str]]]:
        """Yield each move, and each exchange of two threads with `fullest`, the process in which most messages wait."""
        for name in self._movable:
            for target in self._processes:
                if target != self._of[name]:
                    yield ((name, target),)
        for first in [name for name in self._movable if self._of[name] == fullest]:
            for second in self._movable:
                if self._of[second] != fullest:
                    yield ((first, self._of[second]), (second, fullest))

    def _gain(self, change: Sequence[tuple[str, str]], cost: Mapping[str, float]) -> float:
        name, target = change[0]
        source = self._of[name]
        difference = self._work[name] if len(change) == 1 else self._work[name] - self._work[change[1][0]]
        after = _queue(self._sums[source] - difference) + _queue(self._sums[target] + difference)
        return cost[source] + cost[target] - after


_Work: TypeAlias = npt.NDArray[np.float64]


def _row(work: ThreadWork) -> tuple[float, float, float]:
    return work.per_s, work.load, work.per_s * work.service.square_s2


def _queue(work: _Work) -> float:
    """Return the mean number of messages that wait in a process, over the hours (Pollaczek and Khinchine)."""
    rate, load, square = work
    free = 1.0 - np.minimum(load, _STABLE)
    return float((rate * square / (2.0 * free) + _OVERLOADED * np.maximum(load - _STABLE, 0.0)).mean())


def _busy(scenario: Scenario, hour: int | None, messages_max: int) -> Scenario:
    """Return the scenario with the rates of its busiest hour, without failures, and long enough for `messages_max`."""
    assert scenario.engine is not None
    total = 0.0
    processes = []
    for process in scenario.engine.processes:
        threads = []
        for thread in process.threads:
            inbound = thread.inbound
            if inbound is not None and hour is not None:
                rate = rate_at(inbound.arrivals, (hour * 3600 + 1800) * SECOND_NS)
                inbound = dataclasses.replace(inbound, arrivals=PoissonArrivals(max(rate, 1e-6)))
            if inbound is not None:
                total += rate_at(inbound.arrivals, 0)
            threads.append(dataclasses.replace(thread, inbound=inbound, stops=()))
        processes.append(dataclasses.replace(process, threads=tuple(threads), crashes=()))
    engine = dataclasses.replace(scenario.engine, processes=tuple(processes), failures=())
    wanted_ns: Nanoseconds = round(messages_max / max(total, 1e-6) * SECOND_NS)
    longest_ns = 3600 * SECOND_NS if hour is not None else scenario.horizon_ns
    return dataclasses.replace(
        scenario, engine=engine, horizon_ns=max(SECOND_NS, min(wanted_ns, longest_ns)), warm_up_ns=0
    )


def _waiting(scenario: Scenario) -> dict[str, float]:
    """Simulate, and return the mean number of messages that wait for the translation thread of each process."""
    rows = simulate_counters(scenario).select(["client", "queue", "wait_sum_ns", "length_messages"]).to_pylist()
    return {
        row["client"].removesuffix("_xlate"): (row["wait_sum_ns"] + row["length_messages"] * scenario.horizon_ns / 2)
        / scenario.horizon_ns
        for row in rows
        if row["queue"] == _PRE_TRANSLATION
    }
