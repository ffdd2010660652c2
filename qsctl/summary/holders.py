"""Which clients' G-1 holds a guaranteed message until it is acknowledged, and when a message of theirs left its queue.

The log's `wait_ns` ends, for every message, when it enters the TCP transmit queue. G-1 holds it for longer (the
vendor's tuning guide, `scenario.GuaranteedOverflow.HOLD`): for what a queue holds over time its messages leave with
their acknowledgment, and one that was sent and waits for it is still there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qsctl.config.document import parse_document
from qsctl.eventlog.checked_files import checked_text
from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.run_folder import SCENARIO_FILE
from qsctl.sim.scenario import GuaranteedOverflow, Model, Queue
from qsctl.summary.groups import Whole
from qsctl.summary.observation import LEFT_NS, Flags, outcome_numbers, waits
from qsctl.summary.recorded_run import RecordedRun

COLUMNS: Final = ("queue", "client_id", "outcome", "enqueued_ns", "wait_ns", "acknowledge_ns")
"""Of the log: what tells when a message left."""


def holders_of(run: RecordedRun) -> frozenset[int]:
    """The numbers of the clients whose G-1 holds messages until they are acknowledged.

    Raises:
        Damaged: the run's scenario is missing or was changed.
    """
    if run.info.model != Model.SOLACE or SCENARIO_FILE not in run.info.files:
        return frozenset()
    text = checked_text(run.folder, run.info, SCENARIO_FILE)
    root = parse_document(text.encode(), SCENARIO_FILE).root
    lets_go = {
        profile.get("name")
        for profile in root.findall("profile")
        if profile.get("guaranteed-overflow") == GuaranteedOverflow.REDELIVER
    }
    holders: set[int] = set()
    first = 0
    for group in root.findall("group"):
        count = int(str(group.get("count", "1")))
        if group.get("profile") not in lets_go:
            holders.update(range(first, first + count))
        first += count
    return frozenset(holders)


def departures(batch: pa.Table, holders: Collection[int]) -> tuple[Flags | None, Whole]:
    """Of a part of the log: which messages left their queue (None: all of them), and when."""
    gone, _, left_ns = waits(batch)
    if not holders:
        return gone, left_ns
    held = np.asarray(pc.is_in(batch["client_id"], pa.array(sorted(holders), pa.int32())).to_numpy(), np.bool_)
    held &= np.asarray(pc.equal(batch["queue"].cast(pa.string()), Queue.G_1.value).to_numpy(), np.bool_)
    if not held.any():
        return gone, left_ns
    delivered, still = 1, 2
    fate = outcome_numbers(batch, {Outcome.DELIVERED.value: delivered, Outcome.HELD.value: still}, 0)
    acknowledged = batch["acknowledge_ns"]
    is_acknowledged = np.asarray(pc.is_valid(acknowledged).to_numpy(), np.bool_)
    after = np.asarray(pc.fill_null(acknowledged, 0).to_numpy(), np.int64)
    late = held & (fate == delivered) & is_acknowledged
    left_ns = np.where(late, np.asarray(batch["enqueued_ns"].to_numpy(), np.int64) + after, left_ns)
    gone = np.ones(batch.num_rows, np.bool_) if gone is None else gone
    return gone & ~(held & (fate == still)), left_ns


def left_sql(holders: Collection[int]) -> str:
    """The same instant as a text of SQL: null while the message is there."""
    if not holders:
        return LEFT_NS
    numbers = ", ".join(map(str, sorted(holders)))
    return (
        f"case when queue = '{Queue.G_1}' and client_id in ({numbers}) then case outcome "
        f"when '{Outcome.HELD}' then null "
        f"when '{Outcome.DELIVERED}' then enqueued_ns + coalesce(acknowledge_ns, wait_ns) "
        f"else {LEFT_NS} end else {LEFT_NS} end"
    )
