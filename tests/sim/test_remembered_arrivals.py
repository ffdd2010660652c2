"""Arrivals are drawn once for all candidates that see the same ones, and nothing else changes by that."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.arrivals import streams as drawing
from qsctl.sim.arrivals.draw import STREAM
from qsctl.sim.arrivals.remembered import Memory, remembering
from qsctl.sim.arrivals.streams import ArrivalStreams, digest_of
from qsctl.sim.figures import Figures
from qsctl.sim.replication import simulate_figures
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario


@pytest.fixture(scope="module")
def burst() -> Scenario:
    scenario = read_scenario(find_scenario("burst"))
    scenario = apply_overrides(scenario, {"group[desks]/count": "4", "port[p1]/rate": "100 Mbit/s"})
    return dataclasses.replace(scenario, horizon_ns=SECOND_NS)


def at_depth(scenario: Scenario, depth: int, replication: int = 0) -> list[Figures]:
    changed = apply_overrides(scenario, {"profile[*]/queue[D-1]/max-depth": str(depth)})
    return simulate_figures(changed, replication)


def test_candidates_have_the_figures_that_they_have_without_it(burst: Scenario) -> None:
    plain = [at_depth(burst, depth, number) for depth in (100, 2000) for number in (0, 1)]
    with remembering(Memory()) as memory:
        drawn = [at_depth(burst, depth, number) for depth in (100, 2000) for number in (0, 1)]
        assert memory.hits == 2
        assert len(memory.windows) == 2
    assert drawn == plain


def test_arrivals_are_drawn_once(burst: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    fill = drawing.draw_times

    def counted(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        return fill(*arguments)

    monkeypatch.setattr(drawing, "draw_times", counted)
    with remembering(Memory()):
        at_depth(burst, 100)
        once = calls
        at_depth(burst, 200)
    assert once > 0
    assert calls == once


def test_padding_of_the_streams_is_no_part_of_the_load() -> None:
    """NumPy copies records without their padding, which then holds what the memory held before."""
    assert STREAM.itemsize > sum(STREAM[name].itemsize for name in STREAM.names or ())
    zeros, ones = np.zeros(3 * STREAM.itemsize, np.uint8).view(STREAM), np.full(3 * STREAM.itemsize, 1, np.uint8)
    other = ones.view(STREAM)
    for name in STREAM.names or ():
        other[name] = zeros[name]
    assert other.tobytes() != zeros.tobytes()
    assert digest_of("load", other) == digest_of("load", zeros)
    other["first"][1] += 1
    assert digest_of("load", other) != digest_of("load", zeros)


def test_another_seed_rate_or_horizon_is_another_load(burst: Scenario) -> None:
    with remembering(Memory()) as memory:
        at_depth(burst, 100)
        at_depth(dataclasses.replace(burst, seed=burst.seed + 1), 100)
        at_depth(apply_overrides(burst, {"group[desks]/count": "5"}), 100)
        at_depth(dataclasses.replace(burst, horizon_ns=SECOND_NS // 2), 100)
        assert memory.hits == 0
        assert len(memory.windows) == 4


def test_what_has_no_room_is_drawn_again_and_what_is_kept_stays(burst: Scenario) -> None:
    with remembering(Memory()) as memory:
        at_depth(burst, 100)
        size = memory.used_bytes
    with remembering(Memory(most_bytes=size + 1)) as memory:
        for _ in range(2):
            for number in (0, 1, 2):
                at_depth(burst, 100, number)
        assert len(memory.windows) == 1
        assert memory.hits == 1
        assert memory.used_bytes <= size + 1


def test_a_caller_may_change_its_rows(burst: Scenario) -> None:
    def rows() -> list[np.ndarray]:
        streams, found = ArrivalStreams(burst, 0), []
        while streams.now_ns < burst.horizon_ns:
            window = streams.window(burst.horizon_ns)
            found.append(np.array(window))
            window["time"] = -1
        return found

    with remembering(Memory()):
        first, second, third = rows(), rows(), rows()
    assert all((a == b).all() and (b == c).all() for a, b, c in zip(first, second, third, strict=True))


def test_processes_share_what_one_has_drawn(burst: Scenario, tmp_path: Path) -> None:
    plain = [at_depth(burst, 100), at_depth(burst, 200)]
    with remembering(Memory(folder=tmp_path)) as drawing_process:
        first = at_depth(burst, 100)
    with remembering(Memory(folder=tmp_path)) as other:
        second = at_depth(burst, 200)
        assert [first, second] == plain
        assert (drawing_process.hits, other.hits) == (0, 1)
    for memory in (drawing_process, other):
        (windows,) = memory.windows.values()
        assert all(isinstance(each.rows.base, np.memmap | np.ndarray) and not each.rows.flags.writeable
                   for each in windows)  # fmt: skip
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".npy", ".npy"]


def test_no_traffic_is_shared_too(burst: Scenario, tmp_path: Path) -> None:
    idle = dataclasses.replace(burst, traffic=(dataclasses.replace(burst.traffic[0], start_ns=2 * SECOND_NS),))
    for hits in (0, 1):
        with remembering(Memory(folder=tmp_path)) as memory:
            at_depth(idle, 100)
            assert memory.hits == hits


@pytest.mark.parametrize("damage", ["gone", "cut", "foreign"])
def test_what_cannot_be_shared_is_drawn(burst: Scenario, tmp_path: Path, damage: str) -> None:
    plain = at_depth(burst, 100)
    folder = tmp_path / "shared"
    if damage != "gone":
        folder.mkdir()
        with remembering(Memory(folder=folder)):
            at_depth(burst, 100)
        (rows,) = folder.glob("*.rows.npy")
        rows.write_bytes(rows.read_bytes()[:1000] if damage == "cut" else b"no array")
    for _ in range(2):
        with remembering(Memory(folder=folder)) as memory:
            assert at_depth(burst, 100) == plain
            assert memory.hits == 0


def test_nothing_is_remembered_unless_that_is_asked_for(burst: Scenario) -> None:
    short = dataclasses.replace(burst, horizon_ns=10 * MILLISECOND_NS)
    kept = Memory()
    with remembering(kept):
        pass
    at_depth(short, 100)
    assert not kept.windows
