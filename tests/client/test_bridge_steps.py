"""The state machines of a bridge against plain queues: kills between any two effects, full targets, loops.

The journals of producers and consumers alone are judged: every sample is consumed, and whatever is consumed after its
first time carries the flag.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.client.bridge._place import MirrorPlace, place_octets
from qsctl.client.bridge.steps import AnotherMirror, BridgeSteps, InsertTarget, ReadSource
from qsctl.client.transfer import BATCH_BYTES, BATCH_COUNT
from qsctl.core.messages import bridges_of, flags_over_bridge
from qsctl.identity import Incarnation
from tests.client.bridged_queues import Bridged, Queue, unflagged_doubles
from tests.example_counts import examples

ACTIONS = st.lists(
    st.sampled_from(
        ["step"] * 16
        + [
            "produce",
            "produce",
            "kill before",
            "kill after",
            "consume",
            "consume",
            "consume",
            "consume source",
            "hold",
            "give back",
        ]
        + ["room", "no room"]
    ),
    min_size=10,
    max_size=80,
)


def act(bridged: Bridged, actions: list[str], *, has_source_consumers: bool) -> None:
    for action in actions:
        match action:
            case "step":
                bridged.step()
            case "produce":
                bridged.produce(3)
            case "kill before" | "kill after":
                bridged.kill(is_carried_out=action == "kill after")
            case "consume":
                bridged.consume_target(2)
            case "room" | "no room":
                bridged.target.room = 1_000 if action == "room" else 2
            case "consume source" if has_source_consumers:
                bridged.consume_source()
            case "hold" if has_source_consumers:
                bridged.hold()
            case "give back" if has_source_consumers:
                bridged.give_back()


def finish(bridged: Bridged) -> None:
    bridged.source.held = [each for each in bridged.source.held if not each.with_consumer]
    bridged.target.room = 1_000
    for _ in range(3):  # a rest may be due for an obstacle that is gone
        bridged.run()
    bridged.consume_target(1_000)


@given(ACTIONS, st.booleans())
@settings(max_examples=examples(120))
def test_shovel_loses_nothing_and_flags_each_second_delivery(actions: list[str], is_exclusive: bool) -> None:
    bridged = Bridged(bridge=BridgeSteps(is_exclusive=is_exclusive))
    act(bridged, actions, has_source_consumers=not is_exclusive)
    finish(bridged)
    assert {number for number, _ in bridged.consumed} == set(bridged.produced)
    assert not unflagged_doubles(bridged.consumed)
    assert not bridged.source.held


@given(ACTIONS)
@settings(max_examples=examples(120))
def test_mirror_copies_everything_and_flags_each_second_copy(actions: list[str]) -> None:
    bridged = Bridged(mirror=True)
    act(bridged, actions, has_source_consumers=False)
    finish(bridged)
    assert {number for number, _ in bridged.consumed} == set(bridged.produced)
    assert not unflagged_doubles(bridged.consumed)
    assert [each.number for each in bridged.source.held] == bridged.produced, "the source keeps its samples"
    if "kill after" not in actions and "kill before" not in actions:
        assert bridged.consumed == [(number, False) for number in bridged.produced], "each once, in order, unflagged"


@pytest.mark.parametrize("is_carried_out", [False, True])
@pytest.mark.parametrize("kind", ["shovel", "exclusive shovel", "mirror"])
def test_kill_at_each_effect_while_consumers_leave_nothing_to_compare_with(kind: str, is_carried_out: bool) -> None:
    """The target has forgotten what it was sent: only the flag distinguishes the second copy."""
    doubles_count = 0
    for steps_count in range(60):
        bridged = Bridged(mirror=kind == "mirror", bridge=BridgeSteps(is_exclusive=kind == "exclusive shovel"))
        bridged.produce(12)
        for _ in range(steps_count):
            bridged.step()
        bridged.kill(is_carried_out=is_carried_out)
        bridged.consume_target(100)
        finish(bridged)
        assert {number for number, _ in bridged.consumed} == set(bridged.produced)
        assert not unflagged_doubles(bridged.consumed)
        doubles_count += len(bridged.consumed) - len(bridged.produced)
    assert doubles_count > 0, "no kill came between an insertion and what follows it"


def test_mirror_that_is_killed_twice_still_flags_what_the_first_kill_left_uncertain() -> None:
    """The second process begins with small batches, and ends before it is past the large one of the first."""
    for steps_count in range(1, 30):
        bridged = Bridged(mirror=True)
        bridged.produce(100)
        while len(bridged.target.held) < 63:
            bridged.step()
        bridged.kill(is_carried_out=False)
        bridged.consume_target(100)
        for _ in range(steps_count):
            bridged.step()
        bridged.kill(is_carried_out=True)
        bridged.consume_target(100)
        finish(bridged)
        assert {number for number, _ in bridged.consumed} == set(bridged.produced)
        assert not unflagged_doubles(bridged.consumed)


@given(ACTIONS)
@settings(max_examples=examples(50))
def test_first_deliveries_of_one_producer_are_in_its_order(actions: list[str]) -> None:
    for mirror in (False, True):
        bridged = Bridged(mirror=mirror)
        act(bridged, actions, has_source_consumers=False)
        finish(bridged)
        assert list(dict.fromkeys(number for number, _ in bridged.consumed)) == bridged.produced


@pytest.mark.parametrize("mirror", [False, True])
def test_undisturbed_bridge_delivers_each_once(mirror: bool) -> None:
    bridged = Bridged(mirror=mirror, bridge=BridgeSteps(is_exclusive=True))
    bridged.produce(700)
    bridged.run()
    bridged.consume_target(700)
    assert bridged.consumed == [(number, False) for number in bridged.produced]
    assert (bridged.bridge.counts.moved_count, bridged.bridge.counts.duplicate_count) == (700, 0)


def test_shovel_beside_consumers_of_the_source_flags_all() -> None:
    bridged = Bridged()
    bridged.produce(3)
    bridged.run()
    bridged.consume_target(3)
    assert bridged.consumed == [(1, True), (2, True), (3, True)]


@pytest.mark.parametrize("mirror", [False, True])
def test_full_target_is_sent_one_sample_at_a_time_until_it_has_room(mirror: bool) -> None:
    bridged = Bridged(mirror=mirror, target=Queue(room=10))
    bridged.produce(100)
    sizes: list[int] = []
    for _ in range(5):
        bridged.run()
        bridged.rests.pop()
        sizes.append(inserted_next(bridged))
    assert sizes == [1] * 5
    assert len(bridged.target.held) == 10
    assert bridged.bridge.counts.moved_count == 10
    bridged.target.room = 1_000
    finish(bridged)
    assert [number for number, _ in bridged.consumed] == bridged.produced


def inserted_next(bridged: Bridged) -> int:
    """Return how many samples the next insertion has, without carrying it out."""
    while not isinstance(bridged._effect, InsertTarget):
        bridged.step()
    return len(bridged._effect.samples)


def test_batch_is_bounded_in_samples_and_octets() -> None:
    bridged = Bridged(source=Queue(room=5_000), target=Queue(room=5_000))
    bridged.produce(2_000)
    bridged.produce(10, bytes(BATCH_BYTES // 2))
    bridged.produce(3, bytes(2 * BATCH_BYTES))
    largest = largest_bytes = 0
    while not bridged.step():
        if isinstance(bridged._effect, InsertTarget):
            payloads = [len(each.payload) for each in bridged._effect.samples]
            largest = max(largest, len(payloads))
            if len(payloads) > 1:
                largest_bytes = max(largest_bytes, sum(payloads))
    assert largest == BATCH_COUNT
    assert largest_bytes <= BATCH_BYTES
    assert len(bridged.target.held) == 2_013


@pytest.mark.parametrize("mirror", [False, True])
def test_samples_that_the_target_never_accepts_hold_nothing_up(mirror: bool) -> None:
    bridged = Bridged(mirror=mirror, target=Queue(too_large={1, 4, 5, 9}))
    bridged.produce(12)
    bridged.run()
    bridged.consume_target(12)
    assert [number for number, _ in bridged.consumed] == [2, 3, 6, 7, 8, 10, 11, 12]
    counts = bridged.bridge.counts
    assert (counts.refused_count, counts.refused_reason) == (4, "it is larger than the queue accepts")
    if not mirror:
        assert [each.number for each in bridged.source.held] == [1, 4, 5, 9]


@pytest.mark.parametrize("mirror", [False, True])
def test_sample_that_crossed_the_largest_number_of_bridges_does_not_cross(mirror: bool) -> None:
    bridged = Bridged(mirror=mirror)
    bridged.produce(1)
    bridged.source.enter(50, flags=flags_over_bridge(0))
    bridged.produce(1)
    bridged.run()
    bridged.consume_target(9)
    assert [number for number, _ in bridged.consumed] == [1, 2]
    assert [bridges_of(each) for each in bridged.bridges] == [1, 1]
    assert bridged.bridge.counts.left_count == 1


@pytest.mark.parametrize("mirror", [False, True])
def test_sample_goes_round_a_ring_of_bridges_a_bounded_number_of_times(mirror: bool) -> None:
    """Two bridges between the same two queues, each other's source and target, that let samples cross four bridges."""
    there = Bridged(mirror=mirror, bridge=BridgeSteps(bridges_max=4, is_exclusive=True))
    back = Bridged(mirror=mirror, bridge=BridgeSteps(bridges_max=4, is_exclusive=True))
    back.source, back.target = there.target, there.source
    there.produce(1)
    for _ in range(10):
        for each in (there, back):
            each.run()
            each.run()
            while mirror and each.source.held:  # so that the queue does not know the sample when it comes back
                each.consume_source()
    moved_count = there.bridge.counts.moved_count + back.bridge.counts.moved_count
    assert 2 <= moved_count <= 4
    assert not unflagged_doubles(there.consumed)
    assert not unflagged_doubles(back.consumed)
    if mirror:
        assert there.consumed[:2] == [(1, False), (1, True)], "it came back with the flag"
    else:
        assert len(there.source.held) + len(there.target.held) == 1


@pytest.mark.parametrize("mirror", [False, True])
def test_trial_counts_and_changes_nothing(mirror: bool) -> None:
    bridged = Bridged(mirror=mirror, bridge=BridgeSteps(is_trial=True))
    bridged.produce(500)
    bridged.run()
    assert bridged.bridge.counts.moved_count == 500
    assert not bridged.target.held
    assert not bridged.places.held
    assert not any(each.flagged for each in bridged.source.held)


@pytest.mark.parametrize("mirror", [False, True])
def test_limit_is_kept_to_the_sample(mirror: bool) -> None:
    bridged = Bridged(mirror=mirror, bridge=BridgeSteps(limit=300))
    bridged.produce(500)
    bridged.run()
    assert len(bridged.target.held) == 300
    if mirror:
        assert (bridged.place.done_position, bridged.place.sending_position) == (300, 300)


def test_ended_mirror_sends_nothing_twice_when_it_is_started_again() -> None:
    bridged = Bridged(mirror=True)
    bridged.produce(5)
    while not bridged.target.held:
        bridged.step()
    bridged.bridge.is_ending = True
    bridged.run()
    bridged.consume_target(5)
    bridged.bridge.is_ending = False
    bridged.kill(is_carried_out=False)
    bridged.run()
    bridged.consume_target(5)
    assert bridged.consumed == [(number, False) for number in bridged.produced]


def test_mirror_begins_anew_where_its_source_was_created_anew() -> None:
    bridged = Bridged(mirror=True)
    bridged.produce(5)
    bridged.run()
    bridged.source = Queue(incarnation=2)
    bridged.run()
    assert bridged.rests[-1] == "", "an empty one is waited for"
    bridged.produce(2)
    bridged.run()
    bridged.consume_target(9)
    assert [number for number, _ in bridged.consumed] == [1, 2, 3, 4, 5, 6, 7]
    assert (bridged.place.incarnation, bridged.place.done_position) == (2, 2)


def test_second_mirror_of_a_name_takes_over_and_the_first_ends() -> None:
    first = Bridged(mirror=True)
    first.produce(5)
    first.run()
    second = Bridged(mirror=True, source=first.source, target=first.target, places=first.places, runs=7)
    second.produced = first.produced
    second.produce(1)
    second.run()
    first.produce(1)
    with pytest.raises(AnotherMirror, match="another mirror 'm' is at work"):
        first.run()
        first.run()
    second.run()
    second.run()
    assert second.place.run == "run 8"
    assert {each.number for each in second.target.held} == set(second.produced)


def test_place_of_a_process_killed_between_two_places_is_removed() -> None:
    bridged = Bridged(mirror=True)
    bridged.produce(5)
    for number, place in ((1, MirrorPlace("m", "a")), (2, MirrorPlace("m", "a", Incarnation(1), 3, 3))):
        bridged.places.enter(number, place_octets(place))
    bridged.run()
    bridged.consume_target(9)
    assert [number for number, _ in bridged.consumed] == [4, 5]
    assert len(bridged.places.held) == 1


@pytest.mark.parametrize("is_flushed", [False, True])
def test_mirror_goes_on_where_its_queue_of_places_was_made_again(is_flushed: bool) -> None:
    bridged = Bridged(mirror=True)
    bridged.produce(5)
    bridged.run()
    bridged.consume_target(3)
    if is_flushed:
        bridged.places.held.clear()
    else:
        bridged.places = Queue(incarnation=2)
    bridged.produce(2)
    bridged.run()
    bridged.consume_target(9)
    assert bridged.consumed == [(number, False) for number in bridged.produced]
    bridged.kill(is_carried_out=False)
    bridged.produce(1)
    bridged.run()
    bridged.consume_target(9)
    assert bridged.consumed == [(number, False) for number in bridged.produced]


def test_full_queue_of_places_stops_a_mirror_before_it_copies() -> None:
    bridged = Bridged(mirror=True, places=Queue(room=0))
    bridged.produce(5)
    bridged.run()
    assert bridged.rests == ["the queue of places: the queue is full"]
    assert not bridged.target.held
    bridged.places.room = 2
    bridged.run()
    assert len(bridged.target.held) == 5


def test_source_is_read_behind_the_samples_that_stay_until_it_is_read_again() -> None:
    bridged = Bridged(target=Queue(too_large={1}), reads_again=False)
    bridged.produce(3)
    bridged.run()
    assert isinstance(bridged._effect, ReadSource)
    assert bridged._effect.after_position == 3
    bridged.reads_again = True
    bridged.run()
    assert isinstance(bridged._effect, ReadSource)
    assert bridged._effect.after_position == 0
    assert bridged.bridge.counts.refused_count == 1
