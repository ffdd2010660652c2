"""Whatever stops, starts, crashes and comes in whichever order: sequence, conservation, and the records say it all."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.core.integration._lifecycle import HeldMessage
from qsctl.core.integration._message_queue import MessageQueue
from qsctl.core.integration.database import Database
from qsctl.core.integration.dispositions import Disposition
from qsctl.core.integration.events import Ended, Entered, Fate, Left, Received
from qsctl.core.integration.message import Message, State
from qsctl.core.integration.messages import (
    Accepted,
    Connected,
    ConnectionDelivery,
    ConnectionLost,
    ProcessStarted,
    ProcessStopped,
    ThreadStarted,
    ThreadStopped,
)
from qsctl.core.integration.procedures import ProcedureOutput
from qsctl.core.integration.records import Moved
from qsctl.core.integration.settings import EngineSettings, ProcessSettings
from tests.core.integration.scene import (
    CONTINUE,
    Procedure,
    Scene,
    inbound,
    makes,
    outbound,
    raw,
    route,
    thread,
    translate,
)
from tests.example_counts import examples

PROCESSES = ("p", "q")
THREADS = ("logged", "unlogged", "near", "far")


def sometimes(message: Message) -> tuple[ProcedureOutput, ...]:
    """Every third message in two, every fifth dropped: by its number, so that a restart does the same."""
    number = int(message.payload.partition(b".")[0])
    if number % 5 == 4:
        return (ProcedureOutput(Disposition.KILL),)
    if number % 3 == 2:
        return (CONTINUE, CONTINUE._replace(payload=message.payload + b".2"))
    return (CONTINUE,)


def engine() -> EngineSettings:
    routes = (route(raw("near", "far"), translate("far", by=[makes(takes_ns=3)])),)
    return EngineSettings(
        (
            ProcessSettings(
                "p",
                (
                    thread("logged", inbound(*routes, procedures=[Procedure(sometimes, duration_ns=2)])),
                    thread("unlogged", inbound(*routes, logged=False)),
                    thread("near", outbound(Procedure(duration_ns=1))),
                ),
            ),
            ProcessSettings("q", (thread("far", outbound()),)),
        ),
        icl_delay_ns=2,
    )


ARRIVE = st.tuples(st.just("arrive"), st.sampled_from(("logged", "unlogged")), st.sampled_from((5120, 5120, 6000)))
WAIT = st.tuples(st.just("wait"), st.integers(1, 6))
UPSETS = st.one_of(
    st.tuples(st.just("stop"), st.sampled_from(THREADS)),
    st.tuples(st.just("start"), st.sampled_from(THREADS)),
    st.tuples(st.just("lose"), st.sampled_from(("near", "far"))),
    st.tuples(st.just("connect"), st.sampled_from(("near", "far"))),
    st.tuples(st.just("crash"), st.sampled_from(PROCESSES)),
    st.tuples(st.just("boot"), st.sampled_from(PROCESSES)),
    st.tuples(st.just("power")),
)
STEPS = st.lists(st.one_of(ARRIVE, ARRIVE, ARRIVE, WAIT, WAIT, UPSETS), min_size=20, max_size=60)


class Story:
    """Steps done to an engine, over power failures; then everything runs, and nothing is left to do."""

    def __init__(self, steps: list[tuple[object, ...]]) -> None:
        self.scene = Scene(engine())
        self.scenes = [self.scene]
        self.sent: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.accepted: Counter[str] = Counter()
        for step in steps:
            self.do(*step)
        for process in PROCESSES:
            self.scene.do(ProcessStarted(process))
        for name in THREADS:
            self.scene.do(ThreadStarted(name))
        for name in ("near", "far"):
            self.scene.do(Connected(name))
        self.scene.until(self.scene.now + 100_000)

    def do(self, what: object, name: str = "", value: int = 0) -> None:
        scene = self.scene
        match what:
            case "arrive":
                number = len(self.sent[name])
                before = len(scene.sent)
                scene.arrive(name, f"{number}".encode(), priority=value)
                if any(isinstance(each, Accepted) for each in scene.sent[before:]):
                    self.sent[name].append((number, value))
            case "stop":
                scene.do(ThreadStopped(name))
            case "start":
                scene.do(ThreadStarted(name))
            case "lose":
                scene.do(ConnectionLost(name))
            case "connect":
                scene.do(Connected(name))
            case "crash":
                scene.do(ProcessStopped(name, is_crash=True))
            case "boot":
                scene.do(ProcessStarted(name))
            case "wait":
                scene.until(scene.now + int(name))
            case "power":
                now = scene.now
                records = [record for each in self.scenes for record in each.records]
                self.scene = Scene(scene.settings, Database(records))
                self.scene.now = now
                self.scenes.append(self.scene)

    def deliveries(self, to: str) -> list[tuple[str, bytes, int, bool]]:
        return [
            (each.source, each.payload, each.priority, each.is_possible_duplicate)
            for scene in self.scenes
            for each in scene.sent
            if isinstance(each, ConnectionDelivery) and each.thread == to
        ]


def expected_of(number: int) -> list[bytes]:
    if number % 5 == 4:
        return []
    return [b"%d" % number] + ([b"%d.2" % number] if number % 3 == 2 else [])


@settings(max_examples=examples(50), deadline=None)
@given(STEPS)
def test_sequence_and_completeness_for_every_destination(steps: list[tuple[object, ...]]) -> None:
    story = Story(steps)
    for to in ("near", "far"):
        first: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        unmarked: Counter[tuple[str, bytes]] = Counter()
        for source, payload, priority, is_marked in story.deliveries(to):
            unmarked[source, payload] += not is_marked
            if payload not in first[source, priority]:
                first[source, priority].append(payload)
        assert not [key for key, times in unmarked.items() if times > 1], "none twice, but what is marked"
        for (source, priority), found in first.items():
            order = [
                payload
                for number, of in story.sent[source]
                if of == priority
                for payload in (expected_of(number) if source == "logged" else [b"%d" % number])
            ]
            if source == "logged":
                assert found == order, f"{to}: all of them, first in, first out"
            else:
                assert found == [each for each in order if each in found], f"{to}: first in, first out"
        logged = Counter(payload for number, _ in story.sent["logged"] for payload in expected_of(number))
        had = {payload for source, payload, _, _ in story.deliveries(to) if source == "logged"}
        assert had == set(logged)
    assert not story.scene.engine.messages()
    assert not story.scene.engine.database.recovery


@settings(max_examples=examples(50), deadline=None)
@given(STEPS)
def test_messages_are_conserved(steps: list[tuple[object, ...]]) -> None:
    """What came in, or was made, is in memory, or ended in one way; in a queue it is as long as events say."""
    scene = Story([step for step in steps if step[0] != "power"]).scene
    alive: set[object] = set()
    inside: set[object] = set()
    for event in scene.events:
        match event:
            case Received(_, _, mid):
                assert mid not in alive
                alive.add(mid)
            case Entered(_, _, _, queue, mid):
                alive.add(mid)
                assert (mid, queue) not in inside
                inside.add((mid, queue))
            case Left(_, _, _, queue, mid):
                inside.remove((mid, queue))
            case Ended(_, mid, _, _, _, fate):
                if fate is not Fate.FAILED:
                    alive.remove(mid)
                alive.discard(mid)
            case _:
                pass
    assert alive == {each.mid for each in scene.engine.messages()} == set()
    assert not inside


@settings(max_examples=examples(30), deadline=None)
@given(STEPS, st.data())
def test_the_records_give_the_state_that_wrote_them(steps: list[tuple[object, ...]], data: st.DataObject) -> None:
    scene = Scene(engine())
    story = object.__new__(Story)
    story.scene, story.scenes, story.sent = scene, [scene], defaultdict(list)
    for step in steps:
        if step[0] != "power":
            story.do(*step)
    replayed = Database(scene.records)
    assert replayed.recovery == scene.engine.database.recovery
    assert replayed.errors == scene.engine.database.errors
    backed = {each.mid: each for each in scene.engine.messages() if each.serial}
    for message in replayed.messages():
        if message.mid in backed:
            assert message == backed[message.mid], "memory and database say the same of a message"
    compacted = Database(replayed.snapshot())
    assert (compacted.recovery, compacted.errors, compacted.next_serial, compacted.start) == (
        replayed.recovery,
        replayed.errors,
        replayed.next_serial,
        replayed.start,
    )
    # Two starts behind any prefix leave the same: recovery does not depend on how often it is cut short.
    prefix = data.draw(st.integers(1, len(scene.records)))
    once = scene.restart(records=prefix)
    writes = [isinstance(each, Moved) and each.state is State.PRE_WRITE for each in once.records]
    cut = data.draw(st.integers(0, writes.index(True) if any(writes) else len(writes)))  # nothing was delivered by then
    twice = Scene(engine(), Database([*scene.records[:prefix], *once.records[:cut]]))
    for each in (once, twice):
        each.until(100_000)
    assert set(once.deliveries()) == set(twice.deliveries())


@given(st.lists(st.tuples(st.sampled_from(("put", "take", "remove")), st.integers(0, 3), st.integers(0, 9))))
def test_a_queue_is_by_priority_then_by_place(steps: list[tuple[str, int, int]]) -> None:
    queue = MessageQueue(State.PRE_TRANSLATION, "p", "x")
    model: list[tuple[int, int]] = []
    for number, (what, priority, which) in enumerate(steps):
        if what == "put":
            mid = (0, 1, number)
            message = Message(0, mid, mid, State.PRE_TRANSLATION, number, "p", "x", "in", "", priority)  # type: ignore[arg-type]
            queue.put(HeldMessage(message))
            model.append((-priority, number))
        elif what == "take":
            model.sort()
            taken = queue.take()
            assert (taken.message.position if taken else None) == (model.pop(0)[1] if model else None)
        elif model:
            gone = model.pop(which % len(model))
            assert queue.remove((0, 1, gone[1])) is not None  # type: ignore[arg-type]
    assert [held.message.position for held in queue] == [number for _, number in sorted(model)]
    assert len(queue) == len(model)


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_number_that_operators_know(state: State) -> None:
    assert 1 <= state.code <= 20
