"""Scenarios of model `world`: what users run, what they read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs
from typer.testing import CliRunner, Result

from qsctl.core.high_availability import _mastery as mastery
from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.high_availability.ballot import HardState
from qsctl.core.high_availability.versions import EARLIEST, HEARTBEATS, VERSION
from qsctl.core.messages import Inbound
from qsctl.core.records import Enqueued, EpochBegan, MembersChanged, QueueStreamRecord
from qsctl.declared.problems import InvalidFile
from qsctl.errors import ExitStatus, InvalidInput
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.schema import LogLevel
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import SECOND_NS
from qsctl.sim.model import OUTCOMES, Stop
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.world.environment.agenda import WorldAgenda
from qsctl.sim.world.environment.network import Conditions, Network
from qsctl.sim.world.environment.session import Session
from qsctl.sim.world.faults.schedule import parse_schedule
from qsctl.sim.world.invariants.base import Ledger
from qsctl.sim.world.invariants.replicas import CommittedIsNeverOverwritten
from qsctl.sim.world.invariants.stores import RestartGivesAPrefix
from qsctl.sim.world.results.verdict import judge
from qsctl.sim.world.run import prepare
from qsctl.sim.world.services.configuration import instance_name
from qsctl.sim.world.services.incarnations import Incarnations
from qsctl.sim.world.services.service import SimulatedService
from qsctl.sim.world.services.stored import Append, Drop, StoredState, StreamFile
from tests.commands import command_line
from tests.core.high_availability import mutants
from tests.world import kinds

RULES = {f"P{number}" for number in range(1, 13)} | {"P15", "clients", "core"}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(command_line(), ["simulate", *arguments])


def ready(**overrides: str) -> Scenario:
    return apply_overrides(
        read_scenario(find_scenario("world")), {key.replace("__", "/"): value for key, value in overrides.items()}
    )


def document(result: Result) -> Any:
    return json.loads(result.stdout)


def test_the_ready_scenario_obeys_every_rule_and_shows_the_events() -> None:
    result = simulate("world", "-o", "json")
    assert result.exit_code == ExitStatus.DONE, result.output
    found = document(result)
    assert {each["rule"] for each in found["verdicts"]} == RULES
    assert all(each["violations"] == 0 and each["checked"] > 0 for each in found["verdicts"])
    events = {each["event"]: each["count"] for each in found["events"]}
    assert events["master-elected"] >= 1
    assert events["instance-ended"] >= 1
    assert found["queues"][0]["delivered_messages"] > 50


@pytest.mark.slow
def test_the_same_seed_gives_the_same_log_and_another_seed_another(tmp_path: Path) -> None:
    prints = [
        document(simulate("world", "-o", "json", "--seed", seed, "--out", str(tmp_path / folder)))["fingerprint"]
        for folder, seed in (("a", "7"), ("b", "7"), ("c", "8"))
    ]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.slow
def test_a_repetition_is_the_world_of_its_own_seed() -> None:
    rows = [
        _rows(prepare(scenario, number, LogLevel.MESSAGES)) for scenario, number in ((ready(), 2), (ready(seed="3"), 0))
    ]
    assert rows[0] == rows[1]


def _rows(run: Any) -> list[tuple[Any, ...]]:
    while run.step(run._scenario.horizon_ns) is Stop.LOG_FULL:
        pass
    rows = []
    while run.finish() is Stop.LOG_FULL:
        rows += run.take_log().tolist()
    return rows + run.take_log().tolist()


def test_every_written_sample_has_one_row_and_the_counters_agree() -> None:
    run = prepare(ready(), 0, LogLevel.EVENTS, 16)
    rows = _rows(run)
    counters = run.counters()
    outcomes = [OUTCOMES[row[10]] for row in rows]
    assert len(rows) == run.messages == counters["arrived_messages"].sum()
    assert sum(each == "delivered" for each in outcomes) == counters["delivered_messages"].sum()
    assert sum(each == "discarded" for each in outcomes) > 0, "refused while there was no master"


def test_a_broken_replica_is_reported_with_faults_that_break_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mutants.acknowledges_on_append(monkeypatch)
    result = simulate("world", "-o", "json")
    assert result.exit_code == ExitStatus.NO, result.output
    broken = [each for each in document(result)["verdicts"] if each["violations"]]
    assert [each["rule"] for each in broken] == ["P7"]
    Path("found.txt").write_text(broken[0]["replay"] or "set seed=1\n", encoding="utf-8")
    again = simulate("world", "--set", "world/schedule=found.txt", "-o", "json")
    assert again.exit_code == ExitStatus.NO, again.output
    shown = simulate("world")
    assert "P7, at" in shown.output
    assert "broken" in shown.output


def test_a_schedule_runs_from_the_command_line() -> None:
    schedule = find_scenario("world").parents[1] / "schedules" / "longest-log-is-not-latest.txt"
    result = simulate("world", "--set", f"world/schedule={schedule}", "-o", "json", "--out", "run")
    assert result.exit_code == ExitStatus.DONE, result.output
    assert open_run(Path("run")).info.status == "complete"
    assert document(result)["queues"][0]["delivered_messages"] == 13


def test_a_schedule_that_is_never_met_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "never.txt"
    path.write_text("set world/random-faults/every=infinite\nawait down 1 within 1s\ncrash 2\n", encoding="utf-8")
    result = simulate("world", "--set", f"world/schedule={path}", "-o", "json")
    assert result.exit_code == ExitStatus.NO
    found = next(each for each in document(result)["verdicts"] if each["rule"] == "schedule")
    assert found["first"] == "await down 1 within 1s"


@pytest.mark.parametrize(
    ("line", "found", "allowed"),
    [
        ("crush 1", "crush", "crash"),
        ("crash", "crash", "crash NODE [at POINT]"),
        ("crash 1 at lunch", "lunch", "before-sync"),
        ("crash 1 in after-sync", "crash 1 in after-sync", "crash NODE [at POINT]"),
        ("at noon crash 1", "noon", "250ms"),
        ("await rain", "rain", "no-master"),
        ("loss 7", "7", "0 to 1"),
        ("set horizon", "set horizon", "PATH=VALUE"),
        ("write consumer-1", "consumer-1", "producer-1"),
    ],
)
def test_a_wrong_line_is_named_with_what_is_allowed(line: str, found: str, allowed: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_schedule(["# one", "heal", line], "faults.txt")
    problem = caught.value.problems[0]
    assert (problem.file, problem.line, problem.found) == ("faults.txt", 3, found)
    assert allowed in problem.allowed


@pytest.mark.parametrize("line", ["crash 4", "hold producer-9", "flush Nothing", "cut 1 | 2,7"])
def test_a_schedule_that_names_what_there_is_not_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput, match="schedule's line"):
        judge(ready(), parse_schedule([line], "faults.txt"))


def test_a_world_needs_a_workload_and_time_for_faults() -> None:
    result = simulate("world", "--set", "world/recovery=16s")
    assert result.exit_code == ExitStatus.NO, result.output
    assert "takes up the whole run" in result.output
    result = simulate("world", "--set", "world/schedule=nowhere.txt")
    assert "there is no such schedule" in result.output
    result = simulate("queuing-world.xml")
    assert result.exit_code == ExitStatus.NOT_FOUND


@pytest.mark.slow
def test_the_time_to_a_new_master_follows_master_timeout() -> None:
    lines = ["set world/random-faults/every=infinite", "jitter 1 0", "jitter 2 0.5", "jitter 3 0.9", "await master 1"]
    Path("crash.txt").write_text("\n".join([*lines, "after 1s crash 1", "after 3s start 1", ""]), encoding="utf-8")
    peaks = []
    for timeout in ("200ms", "800ms"):
        changes = ("--set", "world/schedule=crash.txt", "--set", f"world/master-timeout={timeout}")
        result = simulate("world", *changes, "-o", "json")
        assert result.exit_code == ExitStatus.DONE, result.output
        elected = next(each for each in document(result)["events"] if each["event"] == "master-elected")
        peaks.append(elected["peak"])
    assert 200e6 < peaks[0] < 500e6 < 800e6 < peaks[1] < 1800e6


@pytest.mark.parametrize(("ends", "arrives"), [(False, ["a", "b"]), (True, [])])
def test_what_a_cut_link_lost_is_sent_again_while_the_producer_lives(ends: bool, arrives: list[str]) -> None:
    """Found by a schedule: the samples of a producer that had crashed arrived once the link was healed."""
    agenda, arrived = WorldAgenda(), []
    network = Network(agenda, Random(1), Conditions())
    session = Session(
        agenda, network, "producer-1", "1", SECOND_NS,
        at_service=lambda message: arrived.append(str(message)), at_program=lambda _: None,
        opened=lambda: None, lapsed=lambda: None,
    )  # fmt: skip
    network.on_change.append(session.network_changed)
    session.service_started()
    agenda.step()
    messages = cast(list[Inbound], ["a", "b"])
    network.block([("producer-1", "1")])
    session.send_to_service(messages[:1])
    agenda.step()
    session.send_to_service(messages[1:])
    if ends:
        session.program_ended()
    agenda.step()
    network.heal()
    assert arrived == arrives


def test_what_a_service_confirmed_counts_after_it_deleted_the_queue_and_not_for_the_next_one() -> None:
    """Found by a world: of a quorum one deleted the queue before the last one had the sample."""
    identity, stream = SampleIdentity(Guid(b"p" * 16), 1), "D/S/Orders"
    stored = (Append(stream, 1, (Enqueued(stream, 1, identity, 0, 0),)),)
    ledger = Ledger()
    ledger.stored(1, stored)
    ledger.stored(2, stored)
    ledger.stored(2, (Drop(stream),))
    ledger.stored(3, stored)
    assert ledger.most_holders(stream, identity) == 3
    ledger = Ledger()
    for service in (1, 2):
        ledger.stored(service, stored)
        ledger.stored(service, (Drop(stream),))
    ledger.stored(1, stored)  # of the next queue of the name
    ledger.stored(3, stored)
    assert ledger.most_holders(stream, identity) == 2


@pytest.mark.parametrize(
    ("stored_of", "is_restored", "is_broken"),
    [(1, False, False), (1, True, True), (2, False, True), (2, True, False)],
)
def test_a_log_of_a_deleted_queue_is_not_restored_and_that_of_the_queue_is(
    stored_of: int, is_restored: bool, is_broken: bool
) -> None:
    """Found by a world: of a queue that was deleted and created again the disk had the earlier log, set aside."""
    stream = "D/S/Orders"
    entry = Enqueued(stream, 1, SampleIdentity(Guid(b"p" * 16), 1), 0, 0)
    log = ReplicatedLog()
    if is_restored:
        log.append((entry,))
    left = StreamFile(records=[entry], hard_state=HardState(incarnation=stored_of))
    process = SimpleNamespace(
        engine=SimpleNamespace(hosted=SimpleNamespace(by_name={})),
        replicas={stream: SimpleNamespace(log=log, incarnation=2)},
        outlived={stream} if stored_of == 1 else set(),
        watch=SimpleNamespace(restart_faults=[], found_streams={stream: left}),
    )
    service = SimpleNamespace(process=process, stored=StoredState())
    rule = RestartGivesAPrefix(lambda: 0, {1: cast(SimulatedService, service)})
    rule.started(1)
    assert rule.checked_count == 2
    assert bool(rule.violation_count) == is_broken


class OneCreation(Incarnations):
    """The same creation of every queue at each service."""

    def __init__(self) -> None:
        self.which = 1

    def of(self, service: int, queue: str) -> int:
        return self.which


def committed(*records: QueueStreamRecord) -> ReplicatedLog:
    """Return a log with these records, all of which are committed."""
    log = ReplicatedLog()
    log.append(records)
    log.commit(log.last_index)
    return log


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize(
    ("name", "sequence_number", "payload", "is_of_next", "is_broken"),
    [
        ("witness", 1, b"", False, False),
        ("witness", 2, b"", False, True),
        ("other", 1, b"payload", False, False),
        ("other", 1, b"", False, True),
        ("witness", 1, b"", True, True),
    ],
)
def test_entries_of_a_witness_lack_payloads_even_where_its_list_was_compacted_at_once(
    name: str, sequence_number: int, payload: bytes, is_of_next: bool, is_broken: bool, is_compacted: bool
) -> None:
    """Found by a world: every member committed the list of members and compacted its log in one step."""
    stream = "D/S/Orders"
    began = EpochBegan(stream, 1, "master", flags_all=False)
    identity = SampleIdentity(Guid(b"p" * 16), 1)
    sample = Enqueued(stream, 1, identity, 0, 0, payload=b"payload")
    listed = MembersChanged(stream, ("master", "other"), ("witness",), ("witness",))
    with_list = committed(began, sample, listed)
    if is_compacted:
        with_list.compact(3, (began, listed, sample))
    found = structs.replace(sample, identity=SampleIdentity(identity.writer_guid, sequence_number), payload=payload)
    members = [
        ("master", committed(began, sample)), ("master", with_list),
        ("other", committed(began, sample)), (name, committed(began, found)),
    ]  # fmt: skip
    services: dict[int, SimulatedService] = {}
    incarnations = OneCreation()
    rule = CommittedIsNeverOverwritten(lambda: 0, services, Ledger(), incarnations)
    for number, (member, log) in enumerate(members, 1):
        replica = SimpleNamespace(name=member, log=log, incarnation=1)
        services[number] = cast(SimulatedService, SimpleNamespace(replicas={stream: replica}))
        if is_of_next and number == 3:
            incarnations.which = 2
        rule.stepped(number)
    assert bool(rule.violation_count) == is_broken


@pytest.mark.slow
@pytest.mark.parametrize("version", [EARLIEST, HEARTBEATS - 1, VERSION - 1])
def test_a_service_of_an_earlier_version_replicates_with_the_others(version: int) -> None:
    lines = [f"version 2 {version}", "at 2s crash 3", "at 3s start 3", "at 5s new-disk 2", "at 5.1s start 2"]
    judged = judge(kinds.compacting(1), parse_schedule(lines, "earlier.txt"))
    assert judged.broken() == []
    services = judged.world.services
    members = {number: each.process.replication.member for number, each in services.items() if each.process}
    assert [members[1].versions.of(instance_name(each)) for each in (2, 3)] == [version, VERSION]
    assert members[2].versions.common(map(instance_name, (1, 3))) == version
    of_queue = [each.replica(judged.world.queues[0].full_name) for each in services.values()]
    assert len({each.log.last for each in of_queue if each}) == 1


def test_a_voter_that_never_catches_up_breaks_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mastery, "SNAPSHOT_PIECES", 0)  # what the earliest version does not know
    lines = [f"version 2 {EARLIEST}", "at 4s new-disk 2", "at 4.1s start 2"]
    judged = judge(kinds.compacting(1), parse_schedule(lines, "earlier.txt"))
    assert judged.broken() == ["P12"]
