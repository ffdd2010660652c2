"""A pool of threads that simulates repetitions of scenarios for the page, the newest question first.

It uses the kernels and seeds of `qsctl simulate`, so the figures are the same. Compiled kernels release the interpreter
lock, so that threads run in parallel while the server responds. A question is divided into repetitions: the first gives
point estimates, and each further one narrows the intervals. All sides of a question use the same random numbers in each
repetition.

Invariants: a question that a newer one of the same page replaces ends within a slice of a repetition and publishes
nothing more; at most `QUESTIONS_MAX` questions wait, and a further one ends the oldest; completed repetitions are
cached, at most `_KEPT_MAX`.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from qsctl.errors import InvalidInput, QsctlError
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.arrivals.remembered import Memory, remembering
from qsctl.sim.figures import Figures, figures_of
from qsctl.sim.scenario.scenario import Scenario
from qsctl.web._what_if_depth import DepthCounter, DepthOverTime

QUESTIONS_MAX: Final = 8
"""Largest number of questions that wait or are simulated."""
MESSAGES_MAX: Final = 20_000_000
"""Largest number of messages of one repetition that the page simulates."""
CLIENTS_MAX: Final = 100_000
_KEPT_MAX: Final = 512
_MEMORY_BYTES: Final = 256 << 20
_SLICE_S: Final = 0.02
"""Real time of a slice of a repetition in seconds; after each the question is checked for its end."""
_FIRST_SLICES: Final = 1000


@dataclass(frozen=True, slots=True)
class Repetition:
    """The results of one repetition of one scenario; `depth` is by queue, or None if it was not requested."""

    figures: tuple[Figures, ...]
    depth: Mapping[str, DepthOverTime] | None


class Overtaken(Exception):
    """The question of a repetition has ended; raised in the thread that simulates it."""


@dataclass(eq=False)
class WhatIfQuestion:
    """Scenarios to simulate side by side, with the repetitions that are complete.

    `page` identifies the browser's page: a newer question of the same page ends this one. `changed` is called by the
    threads whenever `state`, `refusal` or the repetitions change.
    """

    page: str
    sides: tuple[Scenario, ...]
    repetitions: int
    buckets: int
    changed: Callable[[], None]
    done: dict[tuple[int, int], Repetition] = field(default_factory=dict)
    state: str = "waiting"
    simulated_ns: int = 0
    """Simulated time of the first repetition in nanoseconds, while it runs."""
    refusal: QsctlError | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def complete(self) -> int:
        """Number of repetitions that are complete on all sides, counted from the first."""
        number = 0
        while all((side, number) in self.done for side in range(len(self.sides))):
            number += 1
        return number

    def of_side(self, side: int) -> list[Repetition]:
        """Return the repetitions of a side that are complete on all sides."""
        return [self.done[side, number] for number in range(self.complete)]

    def units(self) -> list[tuple[int, int]]:
        """Return (side, repetition) pairs in the order of simulation."""
        return [(side, number) for number in range(self.repetitions) for side in range(len(self.sides))]


class Answerer:
    """A pool of threads that simulates questions.

    Args:
        threads: the number of threads.
    """

    def __init__(self, threads: int = 2) -> None:
        self._threads = threads
        self._wanted = threading.Condition()
        self._questions: list[tuple[WhatIfQuestion, list[tuple[int, int]]]] = []
        self._kept: OrderedDict[tuple[str, int, int], Repetition] = OrderedDict()
        self._started: list[threading.Thread] = []
        self._memory = Memory(_MEMORY_BYTES)
        self._while_open = ExitStack()
        self._is_closed = False
        self.failures = 0
        """Number of questions that ended with an internal error."""

    def ask(self, question: WhatIfQuestion) -> None:
        """Enqueue a question before all older ones; end the previous question of the same page."""
        overtaken: list[WhatIfQuestion] = []
        with self._wanted:
            overtaken += [each for each, _ in self._questions if each.page == question.page]
            kept = [pair for pair in self._questions if pair[0].page != question.page]
            overtaken += [each for each, _ in kept[: max(0, len(kept) + 1 - QUESTIONS_MAX)]]
            self._questions = [*kept[max(0, len(kept) + 1 - QUESTIONS_MAX) :], (question, question.units())]
            self._start()
            self._wanted.notify_all()
        for each in overtaken:
            self._end(each, "overtaken")

    def drop(self, question: WhatIfQuestion) -> None:
        """End a question whose page has disconnected."""
        with self._wanted:
            self._questions = [pair for pair in self._questions if pair[0] is not question]
        question.ended.set()

    def close(self) -> None:
        """End all questions and the threads."""
        with self._wanted:
            self._is_closed = True
            questions, self._questions = self._questions, []
            self._wanted.notify_all()
        for each, _ in questions:
            self._end(each, "overtaken")
        for thread in self._started:
            thread.join(timeout=10)
        self._while_open.close()

    def _end(self, question: WhatIfQuestion, state: str) -> None:
        if not question.ended.is_set():
            question.ended.set()
            question.state = state
            question.changed()

    def _start(self) -> None:
        """Start the threads at the first question; a server without questions runs none."""
        if not self._started:
            # Drawing arrivals is most of a run of a broker's queues; a moved depth or window leaves them as they are.
            self._while_open.enter_context(remembering(self._memory))
            self._started = [threading.Thread(target=self._work, daemon=True) for _ in range(self._threads)]
            for thread in self._started:
                thread.start()

    def _work(self) -> None:
        while True:
            with self._wanted:
                while not self._questions and not self._is_closed:
                    self._wanted.wait()
                if self._is_closed:
                    return
                question, units = self._questions[-1]
                side, number = units.pop(0)
                if not units:
                    self._questions.pop()
            try:
                self._answer(question, side, number)
            except Overtaken:
                continue
            except QsctlError as error:
                question.refusal = error
                self.drop_with(question)
            except Exception:  # an internal error ends this question alone
                self.failures += 1
                sys.stderr.write(f"what-if: {traceback.format_exc()}\n")
                question.refusal = InvalidInput("the simulation failed: this is a fault of qsctl, see the terminal")
                self.drop_with(question)

    def drop_with(self, question: WhatIfQuestion) -> None:
        """Remove a question that was refused, and publish its refusal."""
        with self._wanted:
            self._questions = [pair for pair in self._questions if pair[0] is not question]
        self._end(question, "refused")

    def _answer(self, question: WhatIfQuestion, side: int, number: int) -> None:
        """Simulate one repetition, or take it from the cache; add it to the question."""
        scenario = question.sides[side]
        buckets = question.buckets if number == 0 else 0
        key = (_digest(scenario), number, buckets)
        with self._wanted:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is None:
            found = self._simulated(question, scenario, number, buckets)
            with self._wanted:
                self._kept[key] = found
                while len(self._kept) > _KEPT_MAX:
                    self._kept.popitem(last=False)
                if self._memory.used_bytes > self._memory.most_bytes // 2:
                    # Discard all arrivals, most of them of abandoned settings; those in use are drawn again.
                    self._memory.windows, self._memory.used_bytes = {}, 0
        with self._wanted:
            if question.ended.is_set():
                raise Overtaken
            before = question.complete
            question.done[side, number] = found
            is_more = question.complete > before
            is_last = len(question.done) == question.repetitions * len(question.sides)
            if is_more:
                question.state = "answered" if is_last else "refining"
            if is_last:
                question.ended.set()
        if is_more:
            question.changed()

    def _simulated(self, question: WhatIfQuestion, scenario: Scenario, number: int, buckets: int) -> Repetition:
        from qsctl.sim.kernel.compilations import compilation_reported

        def compiling() -> None:
            question.state = "compiling"
            question.changed()

        def simulated(now_ns: int) -> None:
            question.simulated_ns = now_ns
            if question.state != "refining":
                question.state = "simulating"
                question.changed()

        with compilation_reported(compiling):
            return simulate_repetition(
                scenario, number, buckets, question.ended.is_set, simulated if number == 0 else None
            )


def _digest(scenario: Scenario) -> str:
    from qsctl.sim.scenario.forms.text import scenario_digest

    return scenario_digest(scenario)


def simulate_repetition(
    scenario: Scenario,
    number: int,
    buckets: int = 0,
    is_overtaken: Callable[[], bool] = lambda: False,
    simulated: Callable[[int], None] | None = None,
) -> Repetition:
    """Simulate one repetition of a scenario as `qsctl simulate` does, without writing a run folder.

    Args:
        scenario: the scenario.
        number: number of the repetition, from 0.
        buckets: number of buckets of the depth over time; 0: depth is not computed.
        is_overtaken: called between slices; True ends the repetition.
        simulated: called with the simulated time about five times a second.

    Raises:
        Overtaken: its question has ended.
        InvalidInput: the scenario cannot be simulated, or has more than `MESSAGES_MAX` messages.
    """
    from qsctl.eventlog.columns import counter_table
    from qsctl.sim.model import Stop
    from qsctl.sim.replication import model_of, queue_names

    run = model_of(scenario).prepare(scenario, number, LogLevel.MESSAGES if buckets else LogLevel.COUNTERS)
    depth = DepthCounter(scenario, queue_names(run), buckets) if buckets else None

    def log() -> None:
        rows = run.take_log()
        if depth is not None:
            depth.add(rows)
        run.take_events()
        take_tables = getattr(run, "take_tables", None)
        tables = {} if take_tables is None else take_tables()
        if depth is not None and not len(rows) and "messages" in tables:  # a replay logs its messages in tables only
            depth.add_table(tables["messages"])

    until_ns, slice_ns, shown_at = 0, max(1, scenario.horizon_ns // _FIRST_SLICES), time.monotonic()
    while until_ns < scenario.horizon_ns:
        if is_overtaken():
            raise Overtaken
        until_ns = min(scenario.horizon_ns, until_ns + slice_ns)
        began = time.monotonic()
        while run.step(until_ns) is Stop.LOG_FULL:
            log()
        ended = time.monotonic()
        slice_ns = max(1, int(slice_ns * min(8.0, max(0.125, _SLICE_S / max(ended - began, 1e-6)))))
        if run.messages > MESSAGES_MAX:
            raise _too_large(f"more than {MESSAGES_MAX:,} messages until {until_ns / 1e9:g} s")
        if simulated is not None and ended - shown_at > 0.2:
            shown_at = ended
            simulated(until_ns)
    while run.finish() is Stop.LOG_FULL:
        log()
    log()
    figures = figures_of(
        counter_table(run.counters(), ""),
        getattr(run, "replicated_queues", ()),
        getattr(run, "verdicts", ()),
        getattr(run, "worked_queues", ()),
    )
    return Repetition(tuple(figures), None if depth is None else depth.result())


def expected_messages(scenario: Scenario) -> float | None:
    """Return the approximate number of messages of a repetition; None if the scenario does not state its load as
    rates.
    """
    from qsctl.sim.site.flows import mean_rate

    counts = {each.name: each.count for each in scenario.groups}
    rates: Sequence[float | None] = [
        None if (rate := mean_rate(each.arrivals)) is None else rate * counts.get(each.to, 1)
        for each in scenario.traffic
    ]
    if scenario.workload is not None:
        rates = [
            None if (rate := mean_rate(each.arrivals)) is None else rate * each.count
            for each in scenario.workload.producers
        ]
    if scenario.queue is not None:
        known = [each.arrivals for each in scenario.queue.publishers]
        rates = [mean_rate(each) if not hasattr(each, "sources") else None for each in known]
    stated = [rate for rate in rates if rate is not None]
    return sum(stated) * scenario.horizon_ns / 1e9 if stated else None


def refuse_what_is_too_large(scenario: Scenario) -> None:
    """Raise an error for a scenario that is too large to simulate interactively.

    Raises:
        InvalidInput: it has too many messages or clients.
    """
    messages = expected_messages(scenario)
    if messages is not None and messages > MESSAGES_MAX:
        raise _too_large(
            f"the scenario has about {messages:,.0f} messages, and the page simulates at most {MESSAGES_MAX:,}"
        )
    clients = sum(group.count for group in scenario.groups)
    if clients > CLIENTS_MAX:
        raise _too_large(f"the scenario has {clients:,} clients, and the page simulates at most {CLIENTS_MAX:,}")


def _too_large(words: str) -> InvalidInput:
    return InvalidInput(words, remedy="Lower the rate, the clients or the horizon; qsctl simulate has no such limit.")


def with_seed(scenario: Scenario, seed: int | None) -> Scenario:
    """Return the scenario with another seed; with None, unchanged."""
    return scenario if seed is None else dataclasses.replace(scenario, seed=seed)
