"""What the readers of other brokers' tools hold for any input: bounded values, printable notes, or one `InvalidFile`.

Of each queue a scenario is made; it may break a rule of scenarios (partitions beyond a bound), which is an error of its
own, and never anything else.
"""

from __future__ import annotations

import math
import tempfile
import zlib
from pathlib import Path

from qsctl.declared.problems import SHOWN_MAX, InvalidFile
from qsctl.errors import InvalidInput
from qsctl.sim.brokers.draft import draft_of
from qsctl.sim.brokers.listed._documents import COUNT_MAX
from qsctl.sim.brokers.listed.model import ForeignQueue, joined
from qsctl.sim.brokers.listed.read import read_queues
from qsctl.sim.scenario.xml import read_scenario
from tests.fuzz.target import MEMORY

_folder = tempfile.TemporaryDirectory(prefix="qsctl-fuzz-foreign-", dir=MEMORY)
_DRAFTS = 3
_ONE_READ_OF = 8
"""Of so many inputs the scenario of one is read, which takes far longer than the rest."""


def read_any(data: bytes) -> None:
    """Read one input as all readers do."""
    try:
        found = read_queues(data, "f")
    except InvalidFile as error:
        assert 0 < len(error.problems) <= SHOWN_MAX
        assert all(line.isprintable() for line in error.message.splitlines())
        return
    assert found.queues
    assert all(note.isprintable() for note in found.notes)
    for queue in joined([found, found], seconds=1.0).queues:
        check(queue)
    for queue in found.queues[:_DRAFTS]:
        draft(queue, is_read=zlib.crc32(data) % _ONE_READ_OF == 0)


def check(queue: ForeignQueue) -> None:
    counts = [queue.consumers, queue.waiting, queue.outstanding, queue.arrived, queue.size_bytes, *queue.partitions]
    assert all(each is None or 0 <= each <= 2 * 10_000 * COUNT_MAX for each in counts)
    assert queue.arrivals_per_s is None or (math.isfinite(queue.arrivals_per_s) and queue.arrivals_per_s >= 0)
    assert all(isinstance(text, str) and len(text) < 5_000 for text in queue.settings.values())


def draft(queue: ForeignQueue, *, is_read: bool) -> None:
    try:
        made = draft_of(queue.broker, {}, queue)
    except InvalidInput:
        return  # a listed value that the setting does not have
    if not is_read:
        made.scenario_text()
        return
    file = Path(_folder.name, "scenario.xml")
    file.write_text(made.scenario_text(), encoding="utf-8")
    try:
        scenario = read_scenario(file, {}, {})
    except InvalidFile as error:
        assert "XML" not in error.message, error.message
        return
    assert scenario.queue is not None
