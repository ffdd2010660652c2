"""What it brings to wait for a quick disk's sync, beside leaving each to the other thread.

Bursts come at a fixed pace, as producers send them; the time from a burst to the acknowledgments of all of it counts.
`pytest tests/benchmarks/test_quick_syncs.py -s`
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median
from threading import Event

from qsctl.service.stores.sync_thread import QUICK_SYNC_S
from tests.service.pipelines import messages_of, numbers_of, pipelined, queue, service, writes

BURSTS, BURST, PACE_S, ROUNDS = 1_000, 26, 0.002, 5


def waits_ms(directory: Path, quick_sync_s: float) -> list[float]:
    """Return how long each burst waited for its acknowledgments."""
    is_synced = Event()
    embedded = service(directory, queue())
    loop = pipelined(embedded, quick_sync_s=quick_sync_s, on_finished=is_synced.set)
    waits: list[float] = []
    due_s = time.perf_counter()
    for burst in range(BURSTS):
        due_s += PACE_S
        time.sleep(max(0.0, due_s - time.perf_counter()))
        began_s = time.perf_counter()
        loop.begin(writes(*range(burst * BURST, (burst + 1) * BURST)))
        left_count = BURST - len(numbers_of(messages_of(loop.pop_finished())))
        while left_count:
            is_synced.wait(1)
            is_synced.clear()
            left_count -= len(numbers_of(messages_of(loop.pop_finished())))
        waits.append((time.perf_counter() - began_s) * 1e3)
    for each in (loop, embedded):
        each.close()
    loop.stores.close()
    return waits


def test_a_quick_disk_is_not_slower_waited_for_than_left_to_another_thread(tmp_path: Path) -> None:
    found: dict[float, list[tuple[float, float]]] = {QUICK_SYNC_S: [], 0.0: []}
    for turn in range(ROUNDS):
        for quick_sync_s, rounds in found.items():
            directory = tmp_path / f"{turn} {quick_sync_s}"
            directory.mkdir()
            waits = sorted(waits_ms(directory, quick_sync_s))
            rounds.append((waits[len(waits) // 2], waits[len(waits) * 99 // 100]))
    (waited, waited_p99), (left, left_p99) = (
        (median(p50 for p50, _ in rounds), median(p99 for _, p99 in rounds)) for rounds in found.values()
    )
    sys.stdout.write(
        f"\nwaited for: p50 {waited:.2f}, p99 {waited_p99:.2f} ms; left to a thread: {left:.2f}, {left_p99:.2f} ms\n"
    )
    assert waited <= left
