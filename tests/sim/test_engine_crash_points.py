"""Show 1: all messages or none at every interruption; and the judge finds what breaks that."""

from __future__ import annotations

import dataclasses

import pytest

from qsctl.core.integration import _recovery as recovery
from qsctl.core.integration._ledger import EngineLedger
from qsctl.core.integration._translation_thread import TranslationThread
from qsctl.core.integration.database import Database
from qsctl.core.integration.message import Flag
from qsctl.errors import InvalidInput
from qsctl.instant import MILLISECOND_NS
from qsctl.sim.engine.crash_points import CrashReport, explore
from qsctl.sim.scenario.scenario import ClientInterval, Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from tests.campaigns import trials

IS_LONG = bool(trials("QSCTL_CRASH_POINTS", 0, 1))
"""Every point, and every point of each recovery, under several seeds: about two minutes."""


@pytest.fixture(scope="module")
def small() -> Scenario:
    return read_scenario(find_scenario("engine-crash-points"))


def check(report: CrashReport) -> None:
    assert not report.violations, "\n".join(map(str, report.violations[:5]))


@pytest.mark.slow
def test_every_interruption_leaves_all_messages_or_none_and_none_twice(small: Scenario) -> None:
    report = explore(small, nested=False)
    check(report)
    assert report.points > 1_000
    met = {row.after for row in report.rows}
    assert {"copy into partial queue", "removal: translated", "move to post-translation"} <= met
    assert sum(row.translated_again for row in report.rows) > 0
    assert sum(row.moved_on for row in report.rows) > 0
    assert sum(row.returned for row in report.rows) > 0
    assert sum(row.dropped_copies for row in report.rows) > 0
    assert sum(row.possible_duplicates for row in report.rows) > 0
    assert sum(row.lost for row in report.rows) > 0, "one connection is not logged"


@pytest.mark.slow
def test_an_interrupted_recovery_is_recovered_from(small: Scenario) -> None:
    report = explore(small, every=31)
    check(report)
    assert report.nested > 150


def test_interruptions_while_processes_and_threads_come_and_go(small: Scenario) -> None:
    engine = small.engine
    assert engine is not None
    front, back = engine.processes
    crashed = dataclasses.replace(
        engine,
        processes=(
            dataclasses.replace(front, crashes=(ClientInterval(900 * MILLISECOND_NS, 50 * MILLISECOND_NS),)),
            dataclasses.replace(back, crashes=(ClientInterval(300 * MILLISECOND_NS, 200 * MILLISECOND_NS),)),
        ),
        failures=(ClientInterval(1_400 * MILLISECOND_NS, 100 * MILLISECOND_NS),),
    )
    check(explore(dataclasses.replace(small, engine=crashed), every=7, nested=False))


@pytest.mark.campaign
@pytest.mark.skipif(not IS_LONG, reason="QSCTL_CRASH_POINTS=1 runs it: about two minutes")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_every_interruption_of_every_recovery(small: Scenario, seed: int) -> None:
    report = explore(dataclasses.replace(small, seed=seed))
    check(report)
    assert report.nested > 5_000


def planted(report: CrashReport, words: str) -> None:
    assert any(words in each.what for each in report.violations), report.violations[:3]


def test_the_judge_finds_results_that_are_not_thrown_away(small: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Database, "counts", lambda *_: True)
    planted(explore(small, every=9, nested=False), "delivered twice without the flag of a possible duplicate")


@pytest.mark.slow
def test_the_judge_finds_a_source_that_is_removed_before_its_results_are_stored(
    small: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_copies(self: TranslationThread) -> None:
        save, self.site.ledger.save = self.site.ledger.save, lambda _: None  # type: ignore[method-assign]
        try:
            original(self)
        finally:
            self.site.ledger.save = save  # type: ignore[method-assign]

    original = TranslationThread._to_partial
    monkeypatch.setattr(TranslationThread, "_to_partial", without_copies)
    planted(explore(small, every=2, nested=False), "lost, though its sender was answered")


def test_the_judge_finds_deliveries_that_are_not_marked(small: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "_MAY_BE_DELIVERED", frozenset())
    planted(explore(small, every=9, nested=False), "delivered twice without the flag of a possible duplicate")


def test_the_judge_finds_a_message_that_is_not_copied(small: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(self: EngineLedger, held: object) -> None:
        if held.message.mid.number % 7 == 0 and not held.message.serial:  # type: ignore[attr-defined]
            held.change(flags=held.message.flags & ~Flag.USERDB)  # type: ignore[attr-defined]
        original(self, held)  # type: ignore[arg-type]

    original = EngineLedger.save
    monkeypatch.setattr(EngineLedger, "save", forgets)
    report = explore(small, every=9, nested=False)
    assert report.violations


def test_results_that_cannot_be_distinguished_are_refused(small: Scenario) -> None:
    engine = small.engine
    assert engine is not None
    front = engine.processes[0]
    orders = next(each for each in front.threads if each.name == "orders_in")
    assert orders.inbound is not None
    twice = dataclasses.replace(
        orders.inbound,
        routes=(dataclasses.replace(orders.inbound.routes[0], details=orders.inbound.routes[0].details[1:] * 2),),
    )
    threads = tuple(dataclasses.replace(each, inbound=twice) if each is orders else each for each in front.threads)
    doubled = dataclasses.replace(
        engine, processes=(dataclasses.replace(front, threads=threads), *engine.processes[1:])
    )
    with pytest.raises(InvalidInput, match="that are alike"):
        explore(dataclasses.replace(small, engine=doubled))
