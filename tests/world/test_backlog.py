"""A member that catches up over a slow link: frames of samples wait, and heartbeats pass them."""

from __future__ import annotations

import itertools

import pytest

from qsctl.core.high_availability.replica import Replica
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.sim.scenario.scenario import Scenario, UniformSize
from qsctl.sim.world.environment.network import ThrottledLink
from qsctl.sim.world.faults.schedule import parse_schedule
from qsctl.sim.world.results.verdict import JudgedWorld
from tests.world import kinds

TIMEOUT_NS = 2 * SECOND_NS
BITS_PER_SECOND = 4_000_000
BACK_NS = 7 * SECOND_NS
"""When the member that lacks samples is started again."""


def slow_links(compact_records: int) -> Scenario:
    return kinds.world(
        kinds.replicated(3, timeout_ns=TIMEOUT_NS), horizon_ns=20 * SECOND_NS, recovery_ns=8 * SECOND_NS, rate=8.0,
        rejects=0.6, sizes=UniformSize(80_000, 160_000), faults=None, delay_variation_ns=0,
        bandwidth_bits_per_second=BITS_PER_SECOND, compact_records=compact_records,
    )  # fmt: skip


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("compact_records", [0, 12], ids=["entries", "snapshots"])
def test_member_that_catches_up_over_a_slow_link_receives_heartbeats_in_time(
    compact_records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard_ns: list[Nanoseconds] = []
    candidacies: list[Nanoseconds] = []
    waited_bytes = 0
    receive_of_master, stand, put = Replica._receive_of_master, Replica._stand, ThrottledLink.put

    def heard(replica: Replica, now: Nanoseconds, frame: object) -> str:
        if replica.name == "instance-1":
            heard_ns.append(judged.world.agenda.now)
        return receive_of_master(replica, now, frame)  # type: ignore[arg-type]

    def stood(replica: Replica, now: Nanoseconds, reason: str) -> None:
        candidacies.append(judged.world.agenda.now)
        stand(replica, now, reason)

    def waited(line: ThrottledLink, *arguments: object, passes: bool) -> None:
        nonlocal waited_bytes
        put(line, *arguments, passes=passes)  # type: ignore[arg-type]
        waited_bytes = max(waited_bytes, sum(size_bytes for size_bytes, _ in line._others))

    monkeypatch.setattr(Replica, "_receive_of_master", heard)
    monkeypatch.setattr(Replica, "_stand", stood)
    monkeypatch.setattr(ThrottledLink, "put", waited)
    judged = JudgedWorld(
        slow_links(compact_records),
        parse_schedule(["at 2s crash 1", f"at {BACK_NS // SECOND_NS}s start 1"], "slow.txt"),
    )
    judged.run()
    assert judged.broken() == []
    assert waited_bytes > BITS_PER_SECOND / 8 * TIMEOUT_NS / 3 / SECOND_NS, "more than is sent in the longest gap"
    back = [at_ns for at_ns in heard_ns if at_ns > BACK_NS + TIMEOUT_NS]
    assert len(back) > 20
    assert max(later - earlier for earlier, later in itertools.pairwise(back)) < TIMEOUT_NS / 3
    assert not [at_ns for at_ns in candidacies if at_ns > BACK_NS]
