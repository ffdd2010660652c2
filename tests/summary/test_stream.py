"""The tasks of a sweep or a search as one stream: no slot waits, and whatever is killed or full, it is continued."""

from __future__ import annotations

import dataclasses
import errno
import heapq
import os
import pickle
import random
import shutil
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec
import pytest

from qsctl.errors import InvalidInput, NotFound
from qsctl.instant import SECOND_NS
from qsctl.sim.replay.replay import recorded_scenario
from qsctl.sim.scenario.parts.traffic import ConstantSize, TraceArrivals
from qsctl.sim.scenario.scenario import Scenario, Traffic
from qsctl.sim.sizing.targets import parse_setting, parse_target
from qsctl.sim.sweep import Point, SweepPlan, Task, parse_axes, plan_sweep, run_task
from qsctl.summary.sweeps import _carried as carried
from qsctl.summary.sweeps._carried import CarriedScenario
from qsctl.summary.sweeps._pieces import DonePiece, TaskPiece, ended, part_place, piece_of, piece_text, work
from qsctl.summary.sweeps.local_runner import LocalRunner
from qsctl.summary.sweeps.points import EVERY_MEASURE
from qsctl.summary.sweeps.runner import Give, JobWindow, Runner, SweepTasks
from qsctl.summary.sweeps.size import Sizing, size
from qsctl.summary.sweeps.sweep import SweepProgress, run_sweep
from qsctl.summary.sweeps.sweep_folder import PointResult, open_sweep, read_results, read_sweep
from qsctl.summary.sweeps.sweep_rounds import Rounds, RoundStream
from tests.patience import PATIENCE_S, eventually
from tests.processes import end, start
from tests.summary.overloaded import DEPTH, overloaded, results_here
from tests.summary.runners import ByLaw

TASKS = tuple(Task(Point((("depth", str(place // 5)),)), place % 5, 7) for place in range(2000))


# The order of the tasks, by a model of the scheduler.


def busy_share(slots_at: Callable[[float], int], seconds: dict[Task, float], cost_s: float = 0.0) -> float:
    """Return which part of the slots' time is spent on simulations, by a model of Spark's scheduler.

    A slot that is free takes the first piece that waits of the first job. A job's results come when its last piece has
    ended; then the window is filled.

    Args:
        slots_at: the number of slots at an instant.
        seconds: how long each task lasts.
        cost_s: what a piece costs besides.
    """
    now, seen = 0.0, slots_at(0.0)
    stream = SweepTasks(tuple(seconds), None, lambda: seen)
    window = JobWindow()
    waiting: list[tuple[int, int, TaskPiece]] = []
    running: list[tuple[float, int, int, TaskPiece]] = []
    left: dict[int, list[TaskPiece]] = {}
    open_pieces: dict[int, int] = {}
    warm = set[int]()
    used = spent = 0.0
    free = list(range(slots_at(0.0)))
    known = len(free)
    while True:
        while (job := window.next_job(stream.give, seen)) is not None:
            number, pieces = job
            left[number], open_pieces[number] = pieces, len(pieces)
            for place, piece in enumerate(pieces):
                heapq.heappush(waiting, (number, place, piece))
        while free and waiting:
            number, _, piece = heapq.heappop(waiting)
            slot = free.pop()
            lasts = sum(seconds[task] for task in piece.tasks)
            used += lasts
            heapq.heappush(running, (now + lasts + cost_s, number, slot, piece))
        if not running:
            assert not waiting, "nothing runs and something waits"
            assert sum(len(piece.tasks) for pieces in left.values() for piece in pieces) == len(seconds)
            return used / spent
        before = now
        now, number, slot, piece = heapq.heappop(running)
        spent += (now - before) * known
        free += range(known, slots_at(now))
        known = max(known, slots_at(now))
        free.append(slot)
        is_warm = slot in warm
        warm.add(slot)
        open_pieces[number] -= 1
        if is_warm:
            stream.time.note(DonePiece(piece, (), sum(seconds[task] for task in piece.tasks), is_warm=True))
        if not open_pieces[number]:
            window.end(number, sum(seconds[task] for each in left[number] for task in each.tasks))
            seen = slots_at(now)


def uneven(seed: int, count: int = 2000, mean_s: float = 5.0) -> dict[Task, float]:
    draw = random.Random(seed)
    return {task: draw.expovariate(1 / mean_s) for task in TASKS[:count]}


def barrier_share(slots: int, seconds: dict[Task, float]) -> float:
    """Return the same for batches of four tasks a slot, each of which waits for its last task."""
    lengths, spent = list(seconds.values()), 0.0
    for at in range(0, len(lengths), 4 * slots):
        ends = [0.0] * slots
        for each in lengths[at : at + 4 * slots]:
            heapq.heapreplace(ends, ends[0] + each)
        spent += max(ends) * slots
    return sum(lengths) / spent


@pytest.mark.parametrize(("slots", "least"), [(2, 0.99), (16, 0.95), (64, 0.85)])
def test_uneven_slots_are_busy(slots: int, least: float) -> None:
    shares = [busy_share(lambda _: slots, uneven(seed)) for seed in range(10)]
    assert statistics.mean(shares) >= least
    assert statistics.mean(shares) > statistics.mean(barrier_share(slots, uneven(seed)) for seed in range(10)) + (
        0.0 if slots == 2 else 0.05
    )


def test_executors_that_register_later_get_work() -> None:
    """A sweep begins when two slots are known, and others come while it runs."""
    shares = [busy_share(lambda now: 64 if now > 20 else 2, uneven(seed)) for seed in range(5)]
    assert statistics.mean(shares) >= 0.8


def test_short_tasks_are_put_together_so_that_handing_them_out_costs_little() -> None:
    short = uneven(1, mean_s=0.005)
    assert busy_share(lambda _: 2, short, cost_s=0.02) > 0.8


def test_every_task_is_given_once_in_order_and_the_last_pieces_are_short() -> None:
    slots = 4
    stream = SweepTasks(TASKS, None, lambda: slots)
    sizes = []
    given: list[Task] = []
    while (piece := stream.give()) is not None:
        given += piece.tasks
        sizes.append(len(piece.tasks))
        stream.time.note(DonePiece(piece, (), 1.0 * len(piece.tasks), is_warm=len(sizes) > 3))
        slots = 4 + len(sizes) % 7
    assert tuple(given) == TASKS
    assert sizes[:4] == [1, 1, 1, 1], "until a repetition was timed it is unknown how long a piece lasts"
    assert max(sizes) <= 10, "a worker writes what it has after ten seconds"
    assert set(sizes[-4:]) == {1}
    assert stream.give() is None


# Pieces and their parts.


def test_a_piece_is_one_line_and_is_read_as_it_was(tmp_path: Path) -> None:
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200", "horizon=1s"]), 3)
    open_sweep(tmp_path / "a\nb", plan)
    with part_place(tmp_path / "a\nb") as place:
        for tasks in (tuple(plan.tasks()), tuple(plan.tasks())[4:5], (Task(Point((("x", "é\n"),)), 0, 1),)):
            for kept in (None, place):
                text = piece_text(TaskPiece(tasks, kept))
                assert "\n" not in text
                assert piece_of(text) == TaskPiece(tasks, kept)


def test_a_part_that_is_written_twice_is_one_and_one_that_a_worker_cannot_write_is_written_by_the_driver(
    tmp_path: Path,
) -> None:
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200"]), 2)
    open_sweep(tmp_path / "sweep", plan)
    tasks = tuple(plan.tasks())
    with part_place(tmp_path / "sweep") as place:
        first = work(plan.scenario, TaskPiece(tasks[:2], place))
        assert first.content == b""
        again = work(plan.scenario, TaskPiece(tasks[:2], place))
        assert again.content == b""
        assert len(list((tmp_path / "sweep" / "points").glob("part-*"))) == 1
        hidden = (tmp_path / "sweep").rename(tmp_path / "elsewhere")
        blind = work(plan.scenario, TaskPiece(tasks[1:], place))
        hidden.rename(tmp_path / "sweep")
        assert len(list((tmp_path / "sweep" / "points").glob("part-*"))) == 1
        assert blind.content
        assert ended(TaskPiece(tasks[1:], place), blind).results == ()
    assert read_results(tmp_path / "sweep") == sorted(
        results_here(plan), key=lambda each: (each.point.key, each.replication)
    )
    assert work(plan.scenario, TaskPiece(tasks[:1], place)).content, "the driver is gone: its folder may be another's"


# A sweep that is killed, stopped, or has no room.


PLAN = plan_sweep(overloaded(), parse_axes([f"{DEPTH}={','.join(map(str, range(100, 400, 10)))}"]), 4)


@pytest.fixture(scope="module")
def expected() -> list[PointResult]:
    return results_here(PLAN)


def checked_folder(folder: Path, expected: list[PointResult]) -> None:
    """A finished sweep's folder has every result once, all of it listed, and nothing besides."""
    assert read_results(folder) == sorted(expected, key=lambda each: (each.point.key, each.replication))
    names = {path.name for path in (folder / "points").iterdir()}
    assert names == set(read_sweep(folder)["parts"])


@pytest.mark.slow
def test_processes_write_the_parts_themselves_and_give_what_the_tasks_give_here(
    tmp_path: Path, expected: list[PointResult]
) -> None:
    seen: list[SweepProgress] = []
    with LocalRunner(PLAN.scenario, 2) as runner:
        assert run_sweep(PLAN, tmp_path / "sweep", progress=seen.append, runner=runner) == expected
    assert [each.done for each in seen] == sorted(each.done for each in seen)
    assert (seen[0].done, seen[-1].done, len(seen) > 3) == (0, 120, True)
    checked_folder(tmp_path / "sweep", expected)


@pytest.mark.slow
def test_a_killed_worker_costs_its_pieces_and_nothing_else(tmp_path: Path, expected: list[PointResult]) -> None:
    killed: list[int] = []
    others: list[BaseProcess] = []

    def kill(progress: SweepProgress) -> None:
        if progress.done > 2 and not killed:
            victim, *rest = active_children()
            others.extend(rest)
            for each in rest:
                # As one that waits for a lock which the killed one held.
                assert each.pid is not None
                os.kill(each.pid, signal.SIGSTOP)
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.pid)

    with LocalRunner(PLAN.scenario, 2) as runner:
        assert run_sweep(PLAN, tmp_path / "sweep", progress=kill, runner=runner) == expected
    assert killed
    for each in others:
        each.join(10.0)
        assert not each.is_alive(), "a process of a broken pool keeps this one from ending"
    checked_folder(tmp_path / "sweep", expected)


DRIVER = """
import sys
import time
from pathlib import Path
from qsctl.summary.sweeps.local_runner import LocalRunner
from qsctl.summary.sweeps.sweep import run_sweep
from tests.summary.test_stream import PLAN

if __name__ == "__main__":
    with LocalRunner(PLAN.scenario, int(sys.argv[2])) as runner:
        run_sweep(PLAN, Path(sys.argv[1]), progress=lambda seen: time.sleep(600 * (seen.done > 1)), runner=runner)
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_sweep_of_a_killed_driver_is_continued(workers: int, tmp_path: Path, expected: list[PointResult]) -> None:
    folder = tmp_path / "sweep"
    (tmp_path / "driver.py").write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, str(tmp_path / "driver.py"), str(folder), str(workers)]
    process = start(command, is_fresh=True, env=environment)
    try:
        assert eventually(lambda: len(list(folder.glob("points/part-*"))) > 1 or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
    finally:
        end(process)
    (folder / "points" / ".part-0.parquet.half.tmp").write_bytes(b"PAR1")
    there = len(read_results(folder))
    assert 1 < there < len(expected)
    seen: list[SweepProgress] = []
    with LocalRunner(PLAN.scenario) as runner:
        assert run_sweep(PLAN, folder, progress=seen.append, runner=runner) == expected
    assert seen[0].reused >= there
    checked_folder(folder, expected)


@pytest.mark.slow
def test_a_full_disk_is_one_message_and_the_sweep_is_continued(
    tmp_path: Path, expected: list[PointResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, count = Path.write_bytes, 0

    def full(path: Path, content: bytes) -> int:
        nonlocal count
        count += path.parent.name == "points"
        if count > 1:
            write(path, content[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, content)

    with monkeypatch.context() as patched, LocalRunner(PLAN.scenario) as runner:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(InvalidInput, match=r"sweep cannot be written: No space left on device") as caught:
            run_sweep(PLAN, tmp_path / "sweep", runner=runner)
    assert "Free some space" in caught.value.remedy
    assert not list((tmp_path / "sweep").rglob(".*.tmp"))
    assert 0 < len(read_results(tmp_path / "sweep")) < len(expected)
    with LocalRunner(PLAN.scenario, 2) as runner:
        assert run_sweep(PLAN, tmp_path / "sweep", runner=runner) == expected
    checked_folder(tmp_path / "sweep", expected)


def test_what_a_worker_has_done_of_a_piece_is_kept_when_it_is_stopped(tmp_path: Path) -> None:
    open_sweep(tmp_path / "sweep", PLAN)
    calls = iter(range(10))

    def check() -> None:
        if next(calls) == 3:
            raise KeyboardInterrupt

    with part_place(tmp_path / "sweep") as place, pytest.raises(KeyboardInterrupt):
        work(PLAN.scenario, TaskPiece(tuple(PLAN.tasks())[:10], place), check)
    assert len(read_results(tmp_path / "sweep")) == 3


# A search whose replications end in any order.


class AnyOrder(ByLaw):
    """Has many slots, and ends what they were given in an order of its own."""

    def __init__(self, scenario: Scenario, seed: int, slots: int) -> None:
        super().__init__(scenario, lossy)
        self.slots, self._draw = slots, random.Random(seed)

    def ended(self, give: Give) -> Iterator[DonePiece]:
        running: list[TaskPiece] = []
        while True:
            while len(running) < self._draw.randint(1, 2 * self.slots) and (piece := give()) is not None:
                running.append(piece)
            if not running:
                if (piece := give()) is None:
                    return
                running.append(piece)
            piece = running.pop(self._draw.randrange(len(running)))
            yield DonePiece(piece, tuple(self.run(piece.tasks)), 0.01, is_warm=self._draw.random() < 0.5)


def lossy(settings: dict[str, int], draw: object) -> dict[str, int]:
    depth = next(iter(settings.values()))
    return {"discarded_messages": int(draw.random() < 8.0 / depth)}  # type: ignore[attr-defined]


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("vary", ["max-depth(D-1)=10..2000", "max-depth(D-1)=10,50,100,200,400,800"])
def test_a_search_has_one_answer_in_whatever_order_replications_end(vary: str) -> None:
    def searched(runner: ByLaw) -> tuple[Sizing, list[object]]:
        reported: list[object] = []
        targets = [parse_target("P(discards(D-1)>0)<10%", tuple(EVERY_MEASURE))]
        found = size(
            overloaded(), targets, [parse_setting(vary)], confidence=0.95, runner=runner,
            report=lambda candidate: reported.append(candidate.values),
        )  # fmt: skip
        return found, reported

    alone = ByLaw(overloaded(), lossy)  # type: ignore[arg-type]
    expected = searched(alone)
    assert expected[0].answer is not None
    for seed in range(8):
        runner = AnyOrder(overloaded(), seed, slots=1 + 3 * seed)
        assert searched(runner) == expected
        assert runner.count >= alone.count
    assert len({each.replications for each in expected[0].candidates}) > 1


def test_one_worker_simulates_nothing_that_no_look_needs() -> None:
    """A look needs 5 replications: the plainly worse candidates are abandoned after them."""
    runner = ByLaw(overloaded(), lambda settings, _: {"discarded_messages": int(min(settings.values()) < 500)})
    targets = [parse_target("discards(D-1)=0", tuple(EVERY_MEASURE))]
    sizing = size(overloaded(), targets, [parse_setting("max-depth(D-1)=10,20,900")], confidence=0.95, runner=runner)
    by_depth = {each.values[0]: each.replications for each in sizing.candidates}
    assert by_depth[10] == by_depth[20] == 5
    assert runner.count == sum(by_depth.values()) + 1  # the first one looks at the queues


# A sweep whose number of repetitions is decided while it runs.


class WorkInAnyOrder(Runner):
    """Has many slots, and ends pieces of a sweep in an order of its own."""

    def __init__(self, seed: int, slots: int) -> None:
        self.slots, self._draw, self.tasks = slots, random.Random(seed), list[Task]()

    def ended(self, give: Give) -> Iterator[DonePiece]:
        running: list[TaskPiece] = []
        while True:
            while len(running) < 2 * self.slots and (piece := give()) is not None:
                running.append(piece)
            if not running:
                return
            piece = running.pop(self._draw.randrange(len(running)))
            self.tasks += piece.tasks
            answer = work(ROUNDS_PLAN.scenario, piece)
            yield ended(piece, msgspec.structs.replace(answer, is_warm=self._draw.random() < 0.5))


ROUNDS_PLAN = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200,300"]), 1)
COUNTS = (4, 6, 9, 13)


def looking_at(seen: list[int], enough: int) -> Rounds:
    """Rounds whose results are enough at one of the numbers; each look is noted."""

    def is_enough(results: Sequence[PointResult]) -> bool:
        count = len(results) // 3
        seen.append(count)
        # As of the first repetitions of each point, whatever else there is.
        assert list(results) == results_here(dataclasses.replace(ROUNDS_PLAN, replications=count))
        return count >= enough

    return Rounds(COUNTS, is_enough)


@pytest.mark.slow
@pytest.mark.parametrize("enough", [4, 9, 99])
def test_a_number_of_repetitions_is_decided_by_the_first_ones_in_whatever_order_they_end(
    enough: int, tmp_path: Path
) -> None:
    decided = min(enough, COUNTS[-1])
    expected = results_here(dataclasses.replace(ROUNDS_PLAN, replications=decided))
    in_vain = 0
    for seed, slots in enumerate([1, 2, 5, 8, 30]):
        folder, seen, runner = tmp_path / f"sweep-{seed}", list[int](), WorkInAnyOrder(seed, slots)
        shown: list[SweepProgress] = []
        assert run_sweep(
            ROUNDS_PLAN, folder, progress=shown.append, runner=runner, rounds=looking_at(seen, enough)
        ) == expected  # fmt: skip
        assert seen == [count for count in COUNTS[:-1] if count <= decided]
        assert len(runner.tasks) == len(set(runner.tasks)), "none is simulated twice"
        in_vain += len(runner.tasks) - len(expected)
        checked_folder(folder, expected)
        assert (shown[-1].done, shown[-1].total) == (len(expected), len(expected))
        again = WorkInAnyOrder(seed, slots)
        assert run_sweep(ROUNDS_PLAN, folder, runner=again, rounds=looking_at([], enough)) == expected
        assert again.tasks == []
    assert (in_vain > 0) is (enough != 99), "of the next round, for slots that had nothing else to do"


def test_a_slot_without_a_task_of_its_round_gets_one_of_the_next_one(tmp_path: Path) -> None:
    plans = [dataclasses.replace(ROUNDS_PLAN, replications=count) for count in COUNTS]
    open_sweep(tmp_path / "sweep", plans[0])
    runner = WorkInAnyOrder(0, 14)
    kept: list[PointResult] = []
    with part_place(tmp_path / "sweep") as place:
        stream = RoundStream(plans, set(), place, runner, kept.extend)
        given = [piece for _ in range(40) if (piece := stream.give()) is not None]
        assert [(piece.tasks[0].replication, piece.kept) for piece in given[12:]] == [(4, None), (5, None)]
        first, second = (
            ended(piece, work(ROUNDS_PLAN.scenario, piece)) for piece in given[12:]
        )  # fmt: skip
        stream.note(first)
        assert kept == []
        assert stream.left == 12
        for piece in given[:12]:
            stream.note(DonePiece(piece, (), 0.1, is_warm=True))
        assert stream.left == 0
        stream.begin_next()
        assert kept == list(first.results)
        assert stream.left == 5
        stream.note(second)
        assert kept == [*first.results, *second.results]
        rest = stream.give()
        assert rest is not None
        assert rest.kept == place


def test_a_sweep_that_is_ended_at_a_look_is_continued(tmp_path: Path) -> None:
    def refuse(_: Sequence[PointResult]) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(ROUNDS_PLAN, tmp_path / "sweep", runner=WorkInAnyOrder(1, 8), rounds=Rounds(COUNTS, refuse))
    expected = results_here(dataclasses.replace(ROUNDS_PLAN, replications=6))
    assert len(read_results(tmp_path / "sweep")) == 12
    seen: list[int] = []
    runner = WorkInAnyOrder(2, 8)
    found = run_sweep(ROUNDS_PLAN, tmp_path / "sweep", runner=runner, rounds=looking_at(seen, 6))
    assert found == expected
    assert seen == [4, 6]
    checked_folder(tmp_path / "sweep", expected)


# Traces and recordings on other machines.


def traced(trace: Path) -> Scenario:
    plain = overloaded().traffic[0]
    first = Traffic("t", to="c", arrivals=TraceArrivals(str(trace)), size=ConstantSize(1000))
    return overloaded(traffic=(first, plain.__class__("u", to="c", arrivals=plain.arrivals)))


def write_trace(trace: Path, gap_ns: int) -> Path:
    trace.parent.mkdir(exist_ok=True)
    trace.write_text("time_ns,size_bytes\n" + "".join(f"{place * gap_ns},1000\n" for place in range(500)))
    return trace


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of another machine."""
    folder = tmp_path / "there"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    carried.file_of.cache_clear()
    carried.folder_of.cache_clear()
    return folder


def test_a_trace_travels_with_its_scenario(tmp_path: Path, there: Path) -> None:
    trace = write_trace(tmp_path / "here" / "trace.csv", 1000000)
    scenario = traced(trace)
    task = Task(Point(((DEPTH, "100"),)), 0, 3)
    expected = run_task(scenario, task)
    sent = pickle.dumps(CarriedScenario.elsewhere(scenario))
    assert CarriedScenario.here(scenario).placed(scenario) is scenario
    trace.unlink()
    came = pickle.loads(sent)
    assert str(tmp_path / "here") not in repr(came.placed(scenario))
    assert run_task(scenario, task, came.placed) == expected
    (file,) = there.rglob("*.csv")
    file.write_text("time_ns,size_bytes\n0,1\n")
    carried.file_of.cache_clear()
    assert run_task(scenario, task, came.placed) == expected, "a changed file is written anew"
    with pytest.raises(NotFound, match=r"trace\.csv: there is no such trace file"):
        CarriedScenario.elsewhere(scenario)


def test_the_traces_that_a_grid_names_travel_with_its_scenario(tmp_path: Path, there: Path) -> None:
    traces = [write_trace(tmp_path / "here" / f"trace-{gap}.csv", gap * 100000) for gap in (3, 5, 7)]
    scenario = traced(traces[0])
    files = ",".join(map(str, traces))
    plan = plan_sweep(scenario, parse_axes([f"{DEPTH}=20,300", f"traffic[t]/trace/file={files}"]), 1)
    expected = results_here(plan)
    assert len({each.figures for each in expected}) == 6
    sent = pickle.dumps(CarriedScenario.elsewhere(scenario, plan.variants()))
    for trace in traces:
        trace.unlink()
    came = pickle.loads(sent)
    answer = work(scenario, TaskPiece(tuple(plan.tasks())), placed=came.placed)
    assert ended(TaskPiece(tuple(plan.tasks())), answer).results == tuple(expected)
    assert len([*there.rglob("*.csv")]) == 3


@pytest.mark.slow
def test_a_recording_travels_with_its_scenario(tmp_path: Path, there: Path) -> None:
    recording = tmp_path / "here"
    shutil.copytree(Path(__file__).parents[2] / "fixtures" / "recordings" / "monday", recording)
    scenario = recorded_scenario(recording)
    task = Task(Point(()), 1, 3)
    expected = run_task(scenario, task)
    sent = pickle.dumps(CarriedScenario.elsewhere(scenario))
    shutil.rmtree(recording)
    came = pickle.loads(sent)
    assert run_task(scenario, task, came.placed) == expected
    arrivals = next(there.rglob("arrivals/*/*.parquet"))
    arrivals.write_bytes(b"PAR1")
    carried.folder_of.cache_clear()
    assert run_task(scenario, task, came.placed) == expected, "a changed file is written anew"
    with pytest.raises(NotFound, match=r"here is not a folder"):
        CarriedScenario.elsewhere(scenario)


def test_files_that_are_too_large_to_travel_are_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried, "MOST_BYTES", 1000)
    with pytest.raises(InvalidInput, match=r"trace\.csv .* is too large to be sent to executors") as caught:
        CarriedScenario.elsewhere(traced(write_trace(tmp_path / "trace.csv", 1000000)))
    assert "by its URI" in caught.value.remedy


def test_a_scenario_without_a_trace_is_the_same() -> None:
    plan: SweepPlan = PLAN
    assert CarriedScenario.elsewhere(plan.scenario).placed(plan.scenario) is plan.scenario
    assert plan.scenario.horizon_ns == SECOND_NS
