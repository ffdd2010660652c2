"""Slow subscribers in one pass over the log: the rule, second by second, written out as plainly as it can be."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from qsctl.eventlog.schema import MESSAGES
from qsctl.instant import SECOND_NS
from qsctl.summary.log_pass import with_place
from qsctl.summary.observation import Observation
from qsctl.summary.slow_subscriber import HalfSeconds, slow_of_halves

HALF_NS = SECOND_NS // 2
KEYS = ("client_id",)


def log(rows: list[tuple[int, int, int | None]]) -> pa.Table:
    plain = {
        "run_id": "r", "queue": "D-1", "topic_id": 0, "size_bytes": 1, "work_units": 1, "outcome": "delivered",
        "discard_indication": False, "attempts": 1,
    }  # fmt: skip
    made = [{**plain, "client_id": client, "enqueued_ns": at, "wait_ns": wait} for client, at, wait in rows]
    return with_place(pa.Table.from_pylist(made, schema=MESSAGES), "r", 0)


def plainly(rows: list[tuple[int, int, int | None]], seen: Observation) -> dict[int, tuple[int, float, float]]:
    """Blocked seconds, the last minute's percentage and the largest of any minute, by client."""
    first, last = -(-seen.warm_up_ns // SECOND_NS), seen.horizon_ns // SECOND_NS
    last = max(first, last)
    minute = max(1, min(60, last - first))
    blocked: dict[int, set[int]] = {client: set() for client, _, _ in rows}
    for client, at, wait in rows:
        end = seen.horizon_ns if wait is None else at + wait
        for half in range(2 * last):
            if at <= half * HALF_NS and (half + 1) * HALF_NS <= end and first <= half // 2 < last:
                blocked[client].add(half // 2)
    found = {}
    for client, seconds in blocked.items():
        shares = [len(seconds & set(range(at - minute + 1, at + 1))) for at in seconds]
        late = len(seconds & set(range(last - minute, last)))
        found[client] = (len(seconds), 100 * late / minute, 100 * max(shares, default=0) / minute)
    return found


INSTANTS = st.integers(0, 160).map(lambda half: half * HALF_NS) | st.integers(0, 80 * SECOND_NS)
WAITS = st.none() | st.integers(0, 12).map(lambda half: half * HALF_NS) | st.integers(0, 30 * SECOND_NS)
ROWS = st.lists(st.tuples(st.integers(1, 3), INSTANTS, WAITS), min_size=1, max_size=12)


@given(ROWS, st.integers(0, 20), st.sampled_from([80, 81, 100]), st.integers(0, 12))
def test_one_pass_counts_what_the_rule_says_whatever_the_parts(
    rows: list[tuple[int, int, int | None]], warm_up_s: int, horizon_s: int, cut: int
) -> None:
    seen = Observation(warm_up_s * SECOND_NS, horizon_s * SECOND_NS)
    count = HalfSeconds(seen, KEYS)
    parts: list[Any] = [count.of(log(part)) for part in (rows[:cut], rows[cut:]) if part]
    made = slow_of_halves(count.merged(pa.concat_tables(parts)), seen, KEYS).to_pylist()
    found = {
        each["client_id"]: (each["blocked_seconds"], each["slow_percent"], each["slow_percent_max"]) for each in made
    }
    expected = plainly(rows, seen)
    assert found.keys() == expected.keys()
    for client, figures in expected.items():
        assert all(abs(one - other) < 1e-9 for one, other in zip(found[client], figures, strict=True)), client


def test_a_log_without_messages_names_nobody() -> None:
    seen = Observation(0, 10 * SECOND_NS)
    nothing = HalfSeconds(seen, KEYS).of(with_place(MESSAGES.empty_table(), "r", 0))
    assert slow_of_halves(nothing, seen, KEYS).num_rows == 0
