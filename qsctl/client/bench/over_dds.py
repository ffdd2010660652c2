"""A benchmark over DDS: starts producers and consumers as processes, synchronizes their start, and adds their results.

Decides: the end. Producers write for the duration of the load; consumers continue until they have received all accepted
samples, or no more arrive.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any, Final

from qsctl.client.bench.load import BenchLoad
from qsctl.client.bench.measured import BenchResult
from qsctl.client.bench.peers import READY, BenchPlace, Told, consume, produce
from qsctl.endings import children_without_signals
from qsctl.errors import NoAnswer
from qsctl.instant import SECOND_NS

BEGIN_S: Final = 0.2
"""Time between the start command and the first sample, so that all processes are ready."""

QUIET_S: Final = 5.0
"""So long without a sample, and what is still missing is counted as such."""

LEAVE_S: Final = 60.0


def run_over_dds(place: BenchPlace, load: BenchLoad, on_begin: Callable[[], None] = lambda: None) -> BenchResult:
    """Run a load on a queue; `on_begin` is called once all processes are connected, before the first sample.

    Raises:
        NoAnswer: a process does not discover the queue, or ends early.
    """
    context = multiprocessing.get_context("spawn")
    received: Any = context.Value("Q", 0)
    with ExitStack() as stack:

        def start(body: Callable[..., None], *arguments: object) -> Connection:
            ours, theirs = context.Pipe()
            process = context.Process(target=body, args=(theirs, place, load, *arguments), daemon=True)
            with children_without_signals():
                process.start()
                stack.callback(_end, process)
            theirs.close()
            stack.callback(ours.close)
            return ours

        consumers = [start(consume, received) for _ in range(load.consumer_count)]
        producers = [start(produce, number) for number in range(load.producer_count)]
        for link in (*consumers, *producers):
            _require_ready(_answer(link, place.timeout_s + LEAVE_S))
        on_begin()
        start_ns = time.monotonic_ns() + int(BEGIN_S * SECOND_NS)
        for link in (*consumers, *producers):
            link.send(start_ns)
        written = [_told(link, load.total_s + LEAVE_S) for link in producers]
        _await_samples(received, sum(each.counts.accepted for each in written))
        for link in consumers:
            link.send("stop")
        read = [_told(link, LEAVE_S) for link in consumers]
    measured = BenchResult()
    measured.counts.add(each.counts for each in (*written, *read))
    for each in written:
        measured.to_acknowledgment.add(each.latencies)
    for each in read:
        measured.to_consumer.add(each.latencies)
    return measured


def _await_samples(received: Any, wanted_count: int) -> None:
    seen, quiet_since = -1, time.monotonic()
    while received.value < wanted_count and time.monotonic() - quiet_since < QUIET_S:
        if received.value != seen:
            seen, quiet_since = received.value, time.monotonic()
        time.sleep(0.02)


def _require_ready(answer: object) -> None:
    if isinstance(answer, Told):
        raise NoAnswer(answer.error, remedy=answer.remedy)
    assert answer == READY


def _told(link: Connection, timeout_s: float) -> Told:
    answer = _answer(link, timeout_s)
    assert isinstance(answer, Told)
    if answer.error:
        raise NoAnswer(answer.error, remedy=answer.remedy)
    return answer


def _answer(link: Connection, timeout_s: float) -> object:
    try:
        if link.poll(timeout_s):
            return link.recv()
    except EOFError:
        raise NoAnswer("a process of the benchmark ended unexpectedly", remedy="See its output above.") from None
    raise NoAnswer(f"a process of the benchmark did not answer in {timeout_s:g} s", remedy="Use a lower rate.")


def _end(process: Any) -> None:
    process.join(1.0)
    if process.is_alive():
        process.kill()
        process.join()
