"""The limit of subscriptions: topics beyond it are refused, raised as events, and their messages do not come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.eventlog.reader import open_run
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.egress.broker.subscriptions import Subscriptions, subscription_count
from qsctl.sim.kernel.records import ARRIVAL
from qsctl.sim.run import run
from qsctl.sim.scenario.scenario import ClientGroup, ConstantArrivals, Port, Profile, Queue, Scenario, Traffic


def scenario(limit: int, *topics: tuple[Queue, int]) -> Scenario:
    return Scenario(
        name="many", horizon_ns=SECOND_NS, ports=(Port("p"),), profiles=(Profile("a", max_subscriptions=limit),),
        groups=(ClientGroup("g", port="p", profile="a", count=2),),
        traffic=tuple(
            Traffic(f"t{number}", to="g", arrivals=ConstantArrivals(300), queue=queue, topics=count)
            for number, (queue, count) in enumerate(topics)
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "seen", "refused", "percent"),
    [
        (-1, {0, 1, 2, 3, 4, 5, 6, 7, 8}, None, None),
        (9, {0, 1, 2, 3, 4, 5, 6, 7, 8}, None, 88),
        (8, {0, 1, 2, 3, 4, 5, 6, 7, 8}, None, 100),
        (6, {0, 1, 2, 3, 4, 5, 6}, 2, 100),
        (2, {0, 1, 4}, 6, 100),
        (50, {0, 1, 2, 3, 4, 5, 6, 7, 8}, None, None),
    ],
)
def test_topics_beyond_the_limit_do_not_come(
    limit: int, seen: set[int], refused: int | None, percent: int | None, tmp_path: Path
) -> None:
    """Topics 0 to 3 and 5 to 8 are direct; 4 is the guaranteed one, which an endpoint subscribes to."""
    made = scenario(limit, (Queue.D_1, 4), (Queue.G_1, 1), (Queue.D_3, 4))
    report = run(made, tmp_path / "run", level=LogLevel.EVENTS)
    opened = open_run(tmp_path / "run")
    topics = {topic for batch in opened.messages(["topic_id"]) for topic in batch.column("topic_id").to_pylist()}
    assert topics == seen
    events = [row for batch in opened.events() for row in batch.to_pylist()]
    told = {(row["event"], row["client_id"], row["value"]) for row in events if "subscriptions" in row["event"]}
    assert told == {
        (name, client, value)
        for name, value in (("too-many-subscriptions", refused), ("subscriptions-set", percent))
        for client in (0, 1)
        if value is not None
    }
    arrived = sum(row["arrived_messages"] for row in report.counters.to_pylist())
    assert arrived == sum(batch.num_rows for batch in opened.messages(["topic_id"]))
    assert subscription_count(made, made.groups[0]) == (8 if limit < 0 else min(8, limit))


@given(st.integers(1, 12), st.lists(st.tuples(st.sampled_from(list(Queue)), st.integers(1, 5)), min_size=1, max_size=4))
def test_the_first_topics_of_direct_traffic_are_the_ones_that_match(
    limit: int, topics: list[tuple[Queue, int]]
) -> None:
    bases, first = [], 0
    for _, count in topics:
        bases.append((first, count))
        first += count
    rows = np.zeros(first, ARRIVAL)
    rows["topic"] = np.arange(first)
    direct = [topic for (queue, _), (base, count) in zip(topics, bases, strict=True)
              for topic in range(base, base + count) if queue in {Queue.D_1, Queue.D_2, Queue.D_3}]  # fmt: skip
    kept = Subscriptions(scenario(limit, *topics), bases).matching(rows)["topic"].tolist()
    assert kept == sorted(set(range(first)) - set(direct[limit:]))
