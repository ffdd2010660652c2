"""Random faults against every kind of world: nothing is lost or overwritten, and a seed is one history."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from qsctl.core.high_availability.configuration import Configuration
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.world._world import World
from qsctl.sim.world.faults.schedule import parse_schedule
from qsctl.sim.world.faults.vocabulary import Verb
from qsctl.sim.world.results.verdict import JudgedWorld, judge
from qsctl.sim.world.services.configuration import instance_name
from qsctl.sim.world.services.history import Observer
from tests.campaigns import trials
from tests.processes import run
from tests.world import kinds

KINDS: list[Callable[[int], Scenario]] = [
    kinds.alone, kinds.alone_with_dead_letters, kinds.gathering, kinds.two, kinds.three, kinds.three_unsynchronized,
    kinds.four, kinds.five, kinds.volatile, kinds.compacting, kinds.lifespans, kinds.dead_letters,
    kinds.dead_letters_compacting, kinds.witnessed, kinds.gathering_three,
]  # fmt: skip
EXPECTED = {
    kinds.replaced: Verb.REPLACE, kinds.replaced_in_order: Verb.REPLACE, kinds.replaced_with_dead_letters: Verb.REPLACE,
    kinds.bereft: Verb.LOSE_DISK, kinds.survivors: Verb.DESTROY, kinds.visited: Verb.STRANGER,
    kinds.brief: Verb.CRASH, kinds.swarm: Verb.CRASH, kinds.large: Verb.CRASH,
    kinds.upgraded: Verb.VERSION, kinds.held: Verb.CRASH, kinds.contested: Verb.CRASH,
}  # fmt: skip
"""What happens in the worlds of a kind, at least."""

SEEDS_EACH = trials("QSCTL_WORLD_SEEDS", 1, 50)
"""Of each kind; many more are the campaign's."""


def violations(judged: JudgedWorld) -> list[str]:
    return [f"{each.name}: {what}" for each in judged.verdicts() for _, what in each.violations]


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_seed_breaks_a_rule(kind: Callable[[int], Scenario]) -> None:
    accepted = crashes = elections = 0
    for seed in range(2, SEEDS_EACH + 2):  # in the first of one kind no master is lost
        judged = judge(kind(seed))
        assert violations(judged) == [], f"{kind.__name__}({seed})"
        accepted += judged.counts.accepted
        crashes += judged.counts.crashes
        elections += judged.counts.elections
    assert accepted > 40 * SEEDS_EACH, "samples were enqueued all the while"
    assert crashes >= SEEDS_EACH, "and services crashed"
    assert elections > SEEDS_EACH or kind in {kinds.alone, kinds.alone_with_dead_letters, kinds.gathering}


@pytest.mark.slow(beyond=4)
@pytest.mark.campaign
@pytest.mark.parametrize(
    "kind",
    [
        kinds.replaced, kinds.replaced_in_order, kinds.replaced_with_dead_letters, kinds.bereft, kinds.survivors,
        kinds.visited, kinds.brief, kinds.swarm, kinds.large, kinds.upgraded, kinds.held,
        kinds.contested,
    ],
    ids=lambda kind: kind.__name__,
)  # fmt: skip
def test_no_seed_breaks_a_rule_where_queues_and_disks_go(kind: Callable[[int], Scenario]) -> None:
    replaced = created = 0
    done: Counter[str] = Counter()
    for seed in range(1, SEEDS_EACH + 1):
        judged = judge(kind(seed))
        assert violations(judged) == [], f"{kind.__name__}({seed})"
        replaced += len(judged.world.administrator.replacements)
        created += sum(each.is_over for each in judged.world.administrator.replacements)
        done.update(judged.done_counts)
    assert created == replaced, "each was deleted and created again"
    assert done[EXPECTED[kind]] >= SEEDS_EACH


@pytest.mark.slow(beyond=4)
@pytest.mark.campaign
def test_preferred_instance_is_the_master_once_faults_have_ended() -> None:
    moved_count = 0
    for seed in range(1, SEEDS_EACH + 3):
        judged = JudgedWorld(kinds.preferring(seed))
        moves = Moves(judged.world)
        judged.world.observers.add(moves)
        judged.run()
        assert violations(judged) == [], f"preferring({seed})"
        world = judged.world
        (led,) = [each for each, service in world.services.items() if service.is_master(world.queues[0].full_name)]
        assert led == world.declared.preferred_instance
        moved_count += moves.count
    assert moved_count > SEEDS_EACH, "it was not the master all the while"


class Moves(Observer):
    """The number of times that another instance became master than that before."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._latest = 0
        self.count = 0

    def stepped(self, service: int) -> None:
        if self._world.services[service].is_master(self._world.queues[0].full_name) and service != self._latest:
            self._latest = service
            self.count += 1


@pytest.mark.slow(beyond=4)
@pytest.mark.campaign
def test_no_seed_breaks_a_rule_where_members_change() -> None:
    accepted = list_count = 0
    for seed in range(2, SEEDS_EACH + 3):  # in the first one list of members is all
        judged = JudgedWorld(kinds.changing(seed))
        lists = Lists(judged.world)
        judged.world.observers.add(lists)
        judged.run()
        assert violations(judged) == [], f"changing({seed})"
        accepted += judged.counts.accepted
        list_count += len(lists.seen)
    assert accepted > 40 * SEEDS_EACH
    assert list_count > 2 * SEEDS_EACH, "members were removed and promoted"


class Lists(Observer):
    """The lists of voters that masters had."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.seen: set[frozenset[int]] = set()

    def stepped(self, service: int) -> None:
        queue = self._world.queues[0].full_name
        if self._world.services[service].is_master(queue):
            self.seen.add(frozenset(self._world.voters(self._world.services[service], queue)))


@pytest.mark.slow
@pytest.mark.campaign
def test_members_keep_one_configuration_whatever_happens() -> None:
    checked = changes = crashes = 0
    seeds = max(4, SEEDS_EACH)
    for seed in range(1, seeds + 1):
        judged = judge(kinds.administered(seed))
        assert violations(judged) == [], f"administered({seed})"
        checked += next(each.checked_count for each in judged.verdicts() if each.name == "P14")
        changes += len(judged.world.changes)
        crashes += judged.counts.crashes
    assert changes > 5 * seeds
    assert checked > 3 * changes
    assert crashes > seeds


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kinds.three, kinds.swarm], ids=lambda kind: kind.__name__)
def test_the_same_seed_gives_the_same_history(kind: Callable[[int], Scenario]) -> None:
    first, second, other = judge(kind(3)), judge(kind(3)), judge(kind(4))
    assert first.world.trace.fingerprint == second.world.trace.fingerprint
    assert first.world.trace.count > 500
    assert other.world.trace.fingerprint != first.world.trace.fingerprint


@pytest.mark.slow
def test_a_history_does_not_depend_on_the_hashes_of_a_process() -> None:
    program = (
        "from tests.world import kinds; from qsctl.sim.world.results.verdict import judge;"
        "print(judge(kinds.five(5)).world.trace.fingerprint)"
    )
    here = judge(kinds.five(5)).world.trace.fingerprint
    for hash_seed in ("0", "4711"):
        if hash_seed != os.environ.get("PYTHONHASHSEED"):
            environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.getcwd()}
            there = run([sys.executable, "-c", program], env=environment, check=True).stdout.strip()
            assert there == str(here)
            return


def test_faults_are_drawn_from_the_seed_and_end_before_the_time_without_them() -> None:
    judged = JudgedWorld(kinds.three(2))
    again = JudgedWorld(kinds.three(2))
    assert judged.faults == again.faults
    assert len(judged.faults.steps) > 10
    begun = [step.at_ns for step in judged.faults.steps]
    assert all(at_ns is not None for at_ns in begun)
    assert begun == sorted(begun)  # type: ignore[type-var]


def test_a_compaction_that_the_disk_refuses_does_not_end_the_service() -> None:
    """Found by a world: the file of the service's state was compacted, and the error left the loop."""
    lines = ["at 1s break-disk 1", "at 1.1s compact 1", "at 3s repair-disk 1"]
    judged = judge(kinds.alone(1), parse_schedule(lines, "refused.txt"))
    assert violations(judged) == []
    assert judged.counts.crashes == 0
    assert judged.counts.accepted > 40


@pytest.mark.parametrize("flushes", [["at 900ms flush Orders", "at 9.5s flush Orders"], []], ids=["flushed", "kept"])
def test_what_left_a_queue_before_its_content_was_stored_again_is_not_lost(flushes: list[str]) -> None:
    """Found by worlds: the judges forgot dead letters and flushed samples, and took withheld deliveries as sent."""
    lines = list(flushes)
    for at_ms in range(1077, 9000, 900):
        lines += [f"at {at_ms}ms break-disk 1", f"at {at_ms + 150}ms repair-disk 1"]
    judged = judge(kinds.alone_with_dead_letters(11), parse_schedule(lines, "again.txt"))
    assert violations(judged) == []
    assert judged.counts.accepted > 40


def test_a_configuration_that_a_full_disk_kept_from_being_stored_is_judged_as_it_is_stored_later() -> None:
    """Found by worlds: the judges missed what was stored with the whole, and took a member's refusal for the answer."""
    lines = []
    for at_ms in range(1500, 9000, 800):
        lines += [f"at {at_ms}ms fill-disk 1", f"at {at_ms + 10}ms delete Extra-1"]
        lines += [f"at {at_ms + 200}ms create Extra-1", f"at {at_ms + 500}ms repair-disk 1"]
    judged = judge(kinds.administered(1), parse_schedule(lines, "full.txt"))
    assert violations(judged) == []
    assert judged.counts.accepted > 40


def test_consumers_answer_once_faults_have_ended() -> None:
    """Found by worlds: consumers that seldom answer kept a sample now and then until the end."""
    silent = kinds.world(kinds.replicated(3), seed=1, silent=0.95)
    assert violations(judge(silent, parse_schedule(["at 1s crash 1", "at 2s start 1"], "silent.txt"))) == []


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("kind", [kinds.alone, kinds.three, kinds.administered], ids=lambda kind: kind.__name__)
def test_a_flipped_bit_is_found_by_the_next_start(kind: Callable[[int], Scenario]) -> None:
    """Found or not, what a start restores is a beginning of what was stored; the rest comes from the other replicas."""
    lines = [
        line
        for at_s in range(2, 6)
        for line in (f"at {at_s}s crash 1", f"at {at_s}010ms flip-bit 1", f"at {at_s}100ms start 1")
    ]
    judged = JudgedWorld(kind(1), parse_schedule(lines, "flipped.txt"))
    lost: list[int] = []
    judged.world.observers.add(Losses(lost))
    judged.run()
    assert violations(judged) == []
    assert lost, "it was found"
    assert judged.counts.accepted > 40


def test_no_crash_waits_once_faults_have_ended() -> None:
    lines = ["at 5s cut producer-1,producer-2 | 1,2,3"]  # what they have is written when the faults end
    lines += [f"at 5.9999s crash {number} at in-write" for number in (1, 2, 3)]
    judged = judge(kinds.three(1), parse_schedule(lines, "late.txt"))
    assert violations(judged) == []
    assert judged.counts.crashes == 0


@pytest.mark.parametrize(("lines", "broken"), [([], ["P14"]), (["at 2s member remove 2"], [])])
def test_a_member_of_the_configuration_follows_it_and_one_that_was_removed_need_not(
    lines: list[str], broken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a world: a removed member receives no more of the log, and was expected to follow it."""
    is_behind = vars(Configuration)["_is_behind"].fget

    def is_seen_behind(self: Configuration) -> bool:
        return self._engine.hosted.application_name != instance_name(2) and is_behind(self)

    monkeypatch.setattr(Configuration, "_is_behind", property(is_seen_behind))
    judged = judge(kinds.administered(1), parse_schedule(lines, "removed.txt"))
    assert judged.broken() == broken


def test_a_service_that_deleted_a_queue_and_could_not_answer_is_asked_to_create_it() -> None:
    """Found by a world: its answer was lost, and it was away when the others created the queue."""
    lines = ["at 2s cut-one-way 1 > producer-1", "at 2s replace Orders", "at 2.3s crash 1", "at 4s start 1"]
    judged = judge(kinds.three(1), parse_schedule(lines, "unanswered.txt"))
    (replacement,) = judged.world.administrator.replacements
    assert violations(judged) == []
    assert replacement.created_at == {1, 2, 3}


def test_a_queue_is_replaced_by_the_members_that_are_left_of_the_configuration() -> None:
    """Found by a world: the administrator waited for removed members to delete the queue, and none created it."""
    lines = ["at 1s member remove 3", "at 2.5s member remove 2", "at 4s replace Orders"]
    judged = judge(kinds.replaced_in_order(1), parse_schedule(lines, "left.txt"))
    assert violations(judged) == []
    (replacement,) = judged.world.administrator.replacements
    assert (replacement.deleted_at, replacement.created_at) == ({1}, {1})


class Losses(Observer):
    """Notes which services found that something of theirs is lost."""

    def __init__(self, lost: list[int]) -> None:
        self._lost = lost

    def lost_disk(self, service: int) -> None:
        self._lost.append(service)
