"""A replay without a change is equal to its recording, to the delivery, on random configurations."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from qsctl.core.messages import ConsumerJoined, Write
from qsctl.core.queue.settings import (
    DistributionSettings,
    RedeliverySettings,
    ReplacementKind,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.eventlog.reader import counters_of, open_run
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, MILLISECOND_NS
from qsctl.sim.replay import _consumers as consumers
from qsctl.sim.replay._part import LATENESS_MAX_NS, EnginePart
from qsctl.sim.replay.difference import ReplayDifference
from qsctl.sim.replay.recording import read_recording
from qsctl.sim.replay.replay import replay
from qsctl.sim.run import run
from qsctl.sim.scenario.xml import read_scenario
from tests.campaigns import trials
from tests.sim.recordings import DEAD, JOBS, ORDERS, mixed, recorded, service_of

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""A failure says enough as it is: to shrink it would simulate for minutes."""

EXAMPLES = trials("QSCTL_TEST_REPLAYS", 4, 200)
"""Random configurations; a campaign asks for thousands."""


@st.composite
def settings_of(draw: st.DrawFn, base: SharedReaderQueueSettings) -> SharedReaderQueueSettings:
    """Return settings that decide what becomes of samples, around those of a queue."""
    timeout_ms, lifespan_ms = (draw(st.one_of(st.none(), st.integers(*span))) for span in ((5, 80), (10, 200)))
    return dataclasses.replace(
        base,
        distribution=DistributionSettings(
            unacked_threshold=draw(st.sampled_from([-1, 0, 1, 3])), mark_last_undelivered_sample=draw(st.booleans())
        ),
        redelivery=RedeliverySettings(
            draw(st.integers(0, 3)), INFINITE_NS if timeout_ms is None else timeout_ms * MILLISECOND_NS
        ),
        limits=ResourceLimitSettings(
            max_count=draw(st.sampled_from([-1, 1, 5, 40])),
            replacement=draw(st.sampled_from(ReplacementKind)),
            waiting_count_max=draw(st.sampled_from([-1, 3])),
        ),
        lifespan_ns=INFINITE_NS if lifespan_ms is None else lifespan_ms * MILLISECOND_NS,
        app_ack_sample_to_producer=draw(st.booleans()),
    )


DEAD_LETTERS = st.builds(
    lambda max_count: dataclasses.replace(DEAD, limits=ResourceLimitSettings(max_count=max_count)),
    st.sampled_from([-1, 3]),
)


def replayed(folder: Path, **changes: Any) -> ReplayDifference:
    return replay(folder / "recording", folder / "replay", **changes).difference


@pytest.mark.campaign
@given(
    orders=settings_of(ORDERS),
    jobs=settings_of(JOBS),
    dead=DEAD_LETTERS,
    seed=st.integers(1, 1000),
    window=st.sampled_from([-1, 1, 4]),
)
@settings(max_examples=EXAMPLES, phases=PHASES)
def test_replay_of_any_configuration_is_equal(
    orders: SharedReaderQueueSettings,
    jobs: SharedReaderQueueSettings,
    dead: SharedReaderQueueSettings,
    seed: int,
    window: int,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recorded(mixed(seed, 1.0, service_of(dead, orders, jobs), window), folder / "recording")
        difference = replayed(folder)
        assert difference.lines == ()
        assert difference.is_equal
        assert sum(each.deliveries_equal for each in difference.queues) > 0


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(mixed(), tmp_path_factory.mktemp("replay") / "recording")


def test_mixed_recording_has_everything_that_a_replay_must_copy(recording: Path) -> None:
    rows = read_recording(recording)
    answers = {row.answer for row in rows.deliveries}
    assert answers >= {"acknowledged", "rejected", "timed_out", "consumer_left"}
    assert {row.origin for row in rows.arrivals} == {"producer", "dead_letter"}
    assert {row.reason for row in rows.arrivals} >= {"queue_full", None}
    outcomes = {name for batch in open_run(recording).messages() for name in batch["outcome"].to_pylist()}
    assert outcomes >= {"delivered", "discarded", "dead", "expired", "held"}


def test_counters_and_messages_of_a_replay_are_those_of_the_recording(recording: Path, tmp_path: Path) -> None:
    replay(recording, tmp_path / "now")
    then, now = open_run(recording), open_run(tmp_path / "now")
    drop = ["run_id", "replication"]
    of_queues = [
        sorted(counters_of(each.folder, each.info).drop_columns(drop).to_pylist(), key=lambda row: str(row["queue"]))
        for each in (then, now)
    ]
    assert of_queues[0] == of_queues[1]
    columns = ["queue", "size_bytes", "enqueued_ns", "wait_ns", "acknowledge_ns", "outcome", "attempts"]
    rows = [
        sorted((row for batch in each.messages(columns) for row in batch.select(columns).to_pylist()), key=str)
        for each in (then, now)
    ]
    assert rows[0] == rows[1]


def test_a_replay_can_be_replayed(recording: Path, tmp_path: Path) -> None:
    replay(recording, tmp_path / "recording", overrides={"queue[Orders]/unacked-threshold": "0"})
    assert replayed(tmp_path).is_equal


def test_scenario_of_a_replay_runs_again(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named relative to the working directory, and changed: the run folder's scenario gives the same bytes."""
    monkeypatch.chdir(recording.parent)
    changes = {"queue[Orders]/unacked-threshold": "0", "queue[Jobs]/consumers": "3"}
    report = replay(Path(recording.name), tmp_path / "now", overrides=changes)
    monkeypatch.chdir(tmp_path)
    again = run(read_scenario(tmp_path / "now" / "scenario.xml"), tmp_path / "again")
    assert again.info.fingerprint == report.run.info.fingerprint


def test_a_broken_copy_shows_as_lines(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: answers that come a microsecond late are found, and said where."""
    as_recorded = consumers.ConsumerSlot._as_recorded

    def late(seat: consumers.ConsumerSlot, *arguments: Any) -> consumers.ModelledReply | None:
        reply = as_recorded(seat, *arguments)
        return None if reply is None else reply._replace(at_ns=reply.at_ns + 1000)

    monkeypatch.setattr(consumers.ConsumerSlot, "_as_recorded", late)
    difference = replay(recording, tmp_path / "now").difference
    assert not difference.is_equal
    assert difference.difference_count >= len(difference.lines) > 100
    first = difference.lines[0]
    assert "acknowledged" in first.then
    assert first.then != first.now
    assert first.why == "not explained by what was recorded"
    assert "follows" in difference.lines[-1].why


@pytest.mark.parametrize(("lateness_ns", "fires_ns"), [(INFINITE_NS, 900_000_000), (LATENESS_MAX_NS, 40_000_001)])
def test_timer_fires_when_the_live_service_came_round(lateness_ns: int, fires_ns: int) -> None:
    """However late that was, where nothing was changed; else when it is due, if that is long after."""
    part = EnginePart(service_of(DEAD, ORDERS), -1, -1)
    part.instants = [1, 900_000_000]
    part.lateness_max_ns = lateness_ns
    part.receive(ConsumerJoined("P/S/Orders", Guid(bytes([2]) * 16)))
    writer = Guid(bytes([1]) * 16)
    part.receive(Write("P", "Orders", SampleIdentity(writer, 1), b"x", writer))
    part.step(1)
    assert part.fires_at_ns == fires_ns
