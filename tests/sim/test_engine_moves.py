"""What an operator moved is delivered once, by the thread and in the order that the move says."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from qsctl.core.integration.administration import MoveOrder, MovePlace, moving
from qsctl.core.integration.database import Database
from qsctl.core.integration.message import Message, State
from qsctl.errors import Refused
from qsctl.sim.engine._peers import Peers
from qsctl.sim.engine.world import EngineWorld, ReceivedMessage
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import read_scenario

SITE = """<scenario name="site" model="integration" horizon="10s">
  <engine icl-delay="1ms">
    <process name="p">
      <thread name="in"><inbound><constant rate="10/s"/><procedure takes="20ms"/>
        <route><detail to="a b"/></route></inbound></thread>
      <thread name="a"><outbound><procedure takes="1ms"/><constant rate="20/s"/>
        <outage start="2s" duration="1h"/></outbound></thread>
    </process>
    <process name="q">
      <thread name="b"><outbound><constant rate="3/s"/></outbound></thread>
      <thread name="c"><outbound><constant rate="100/s"/></outbound></thread>
    </process>
  </engine>
</scenario>
"""
SECOND_NS = 10**9


@cache
def site() -> Scenario:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "site.xml"
        path.write_text(SITE, encoding="utf-8")
        return read_scenario(path)


def stopped(at_ns: int) -> tuple[Scenario, Database, Peers]:
    """The site as its power fails, and what was received until then."""
    scenario = site()
    world = EngineWorld(scenario)
    world.run(at_ns)
    peers = Peers()
    peers.apply(world.take_peers())
    return scenario, world.engine.database.copy(), peers


def resumed(scenario: Scenario, database: Database, peers: Peers) -> list[ReceivedMessage]:
    received: list[ReceivedMessage] = []
    world = EngineWorld(scenario, database=database, peers=peers, until_ns=peers.at_ns, on_received=received.append)
    world.run(3600 * SECOND_NS)
    return received


def moved(database: Database, messages: list[Message], order: MoveOrder) -> list[Message]:
    records, after = moving(database, [each.mid for each in messages], order, database.latest_ns)
    for record in records:
        database.apply(record)
    return after


@pytest.mark.parametrize("place", [MovePlace.POST_TRANSLATION, MovePlace.OUTBOUND_PRE_TPS, MovePlace.OUTBOUND_POST_TPS])
def test_another_thread_delivers_what_is_moved_once_and_in_its_order(place: MovePlace) -> None:
    scenario, database, peers = stopped(6 * SECOND_NS)
    waiting = [each for each in database.messages() if each.destination == "a" and each.state >= State.POST_TRANSLATION]
    assert len(waiting) > 30
    after = moved(database, waiting, MoveOrder(place, "c"))
    found = [each.payload for each in resumed(scenario, database, peers) if each.thread == "c"]
    assert found == [each.payload for each in after]


def test_what_is_put_before_all_others_goes_next() -> None:
    scenario, database, peers = stopped(8 * SECOND_NS)
    waiting = [each for each in database.messages() if each.owner == "b" and each.state is State.OUTBOUND_POST_TPS]
    last = waiting[-2:]
    assert len(waiting) > 10
    moved(database, last, MoveOrder(at_front=True))
    found = [each.payload for each in resumed(scenario, database, peers) if each.thread == "b"]
    assert found[:2] == [each.payload for each in last]
    assert Counter(found) == Counter(set(found))


@pytest.mark.parametrize("seed", range(12))
def test_no_move_loses_or_doubles_a_message(seed: int) -> None:
    """Random moves of random messages at a random instant: each result comes once, whichever thread it is moved to."""
    draw = random.Random(seed)
    scenario, database, peers = stopped(draw.randrange(SECOND_NS, 10 * SECOND_NS))
    for _ in range(draw.randrange(1, 6)):
        waiting = database.messages()
        chosen = draw.sample(waiting, draw.randrange(0, len(waiting) + 1))
        place = draw.choice([None, *(each for each in MovePlace if each is not MovePlace.ERRORS)])
        order = MoveOrder(place, draw.choice([None, None, "a", "c"]), draw.choice([None, 1, 9999]), draw.random() < 0.4)
        for message in chosen:
            try:
                moved(database, [message], order)
            except Refused:
                continue
    expected = Counter(each.payload for each in database.messages() if each.destination)
    for each in database.messages():
        expected[each.payload] += 0 if each.destination else 2  # what was not routed yet goes to a and b
    came = Counter(each.payload for each in resumed(scenario, database, peers))
    stuck = Counter(each.payload for each in database.messages())
    assert came + stuck == expected
    assert sum(came.values()) > 0
    assert not database.failed()
