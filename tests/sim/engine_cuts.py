"""Random scenarios of an integration engine, cut behind any of their transactions and continued from the database."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from qsctl.core.integration.database import Database
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.messages import Accepted, Outbound
from qsctl.core.integration.routes import DetailKind, ErrorSeverity
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.engine._peers import Peers, PeersChanged, StoredRecord
from qsctl.sim.engine.behaviours import label_of
from qsctl.sim.engine.world import EngineWorld, ReceivedMessage
from qsctl.sim.scenario.parts.engine import (
    Behaviour,
    Engine,
    EngineDetail,
    EngineInbound,
    EngineOutbound,
    EngineProcedure,
    EngineProcess,
    EngineRoute,
    EngineThread,
    EngineTranslation,
    Spread,
)
from qsctl.sim.scenario.scenario import (
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    Model,
    PoissonArrivals,
    Scenario,
    UniformSize,
)

HORIZON_NS = 2 * SECOND_NS


def random_scenario(number: int) -> Scenario:
    """Two processes, up to three inbound and three outbound threads, and everything that may go wrong with them."""
    draw = random.Random(number)
    outs = [f"out{at}" for at in range(draw.randint(2, 3))]
    inbound = [_inbound_thread(draw, f"in{at}", outs, number == 0 or draw.random() < 0.8) for at in range(3)]
    outbound = [_outbound_thread(draw, name) for name in outs]
    split = draw.randint(1, len(outbound) - 1)
    processes = (
        EngineProcess("front", (*inbound, *outbound[:split]), _intervals(draw, 0.3)),
        EngineProcess("back", tuple(outbound[split:]), _intervals(draw, 0.3)),
    )
    engine = Engine(
        draw.choice([0, MILLISECOND_NS, 7 * MILLISECOND_NS]), processes=processes, failures=_intervals(draw, 0.3)
    )
    return Scenario(f"cut{number}", model=Model.INTEGRATION, horizon_ns=HORIZON_NS, engine=engine, seed=number)


def _intervals(draw: random.Random, probability: float) -> tuple[ClientInterval, ...]:
    if draw.random() >= probability:
        return ()
    step = HORIZON_NS // 40
    return (ClientInterval(draw.randint(0, 30) * step, draw.randint(1, 15) * step),)


def _takes(draw: random.Random) -> dict[str, Any]:
    takes_ns = draw.choice([0, MILLISECOND_NS, 9 * MILLISECOND_NS])
    return {"takes_ns": takes_ns, "spread": draw.choice(list(Spread))}


def _inbound_thread(draw: random.Random, name: str, outs: list[str], logging: bool) -> EngineThread:
    procedures = tuple(
        EngineProcedure(
            does, draw.randint(2, 5), text="planned", times=draw.randint(1, 2), recoverable=draw.random() < 0.3,
            **_takes(draw),
        )
        for does in draw.sample([Behaviour.PASS, Behaviour.DROP, Behaviour.ERROR, Behaviour.SPLIT, Behaviour.RETRY,
                                 Behaviour.FAIL, Behaviour.CHANGE], draw.randint(0, 2))
    )  # fmt: skip
    details = []
    for at in range(draw.randint(1, 2)):
        to = " ".join(draw.sample(outs, draw.randint(1, len(outs))))
        pre = (EngineProcedure(Behaviour.CHANGE, text=f"d{at}"),)
        if draw.random() < 0.5:
            details.append(EngineDetail(to, pre=pre))
            continue
        translation = EngineTranslation(
            draw.randint(1, 2),
            error_every=draw.choice([0, 0, 4]),
            severity=draw.choice(list(ErrorSeverity)),
            **_takes(draw),
        )
        details.append(EngineDetail(to, DetailKind.TRANSLATE, pre, (translation,)))
    rate = draw.choice([5.0, 12.0])
    arrivals = draw.choice([PoissonArrivals(rate), ConstantArrivals(rate)])
    size = draw.choice([ConstantSize(40), UniformSize(30, 90)])
    inbound = EngineInbound(
        arrivals,
        size,
        logging,
        draw.choice([5120, 6000]),
        procedures=procedures,
        routes=(EngineRoute(details=tuple(details)),),
    )
    return EngineThread(
        name, tps_retries=-1, tps_retry_interval_ns=20 * MILLISECOND_NS, inbound=inbound, stops=_intervals(draw, 0.5)
    )


def _outbound_thread(draw: random.Random, name: str) -> EngineThread:
    rate = draw.choice([15.0, 40.0, 200.0])
    awaits_reply = draw.random() < 0.3
    return EngineThread(
        name,
        outbound=EngineOutbound(
            draw.choice([PoissonArrivals(rate), ConstantArrivals(rate)]),
            refuses=draw.choice([0.0, 0.2]),
            retries=draw.choice([-1, -1, 2]),
            retry_interval_ns=30 * MILLISECOND_NS,
            awaits_reply=awaits_reply,
            reply_timeout_ns=50 * MILLISECOND_NS,
            reply_delay_ns=draw.choice([0, 10 * MILLISECOND_NS]),
            silent=0.2 if awaits_reply else 0.0,
            procedures=(EngineProcedure(**_takes(draw)),) if draw.random() < 0.5 else (),
            outages=_intervals(draw, 0.5),
        ),
        stops=_intervals(draw, 0.5),
    )


class Cut(Exception):
    """The engine was killed behind a transaction."""


@dataclass
class Followed:
    """A world, what came out of it, and its transactions."""

    scenario: Scenario
    cut_behind: int = -1
    received: list[ReceivedMessage] = field(default_factory=list)
    answered: list[tuple[int, str, int]] = field(default_factory=list)
    batches: list[Sequence[StoredRecord]] = field(default_factory=list)
    reached: list[tuple[int, int]] = field(default_factory=list)
    """Behind each transaction: how many messages receivers, and how many answers senders had."""
    world: EngineWorld = field(init=False)

    def begin(self, database: Database | None = None, peers: Peers | None = None) -> None:
        world = object.__new__(EngineWorld)
        self.world = world  # a cut may come while it is made
        world.__init__(  # type: ignore[misc]
            self.scenario,
            database=database,
            peers=peers,
            store=self._store,
            on_release=self._release,
            on_received=self.received.append,
        )

    def _store(self, records: Sequence[StoredRecord]) -> None:
        self.batches.append(list(records))
        self.reached.append((len(self.received), len(self.answered)))
        if len(self.batches) == self.cut_behind:
            raise Cut

    def _release(self, message: Outbound) -> None:
        if isinstance(message, Accepted):
            self.answered.append((self.world.now, message.thread, message.token))

    def figures(self) -> dict[str, int]:
        world = self.world
        return {
            "offered": world.offered, "delivered": world.delivered, "failed": world.failed, "lost": world.lost,
            "waiting": world.waiting_at_senders, "now": world.now,
        }  # fmt: skip

    def stored(self) -> list[tuple[object, ...]]:
        database = self.world.engine.database
        return [
            (each.mid, each.source_mid, each.state, each.error, each.payload, each.flags, each.created_at_ns)
            for each in (*database.messages(), *database.failed())
        ]


def uninterrupted(scenario: Scenario) -> Followed:
    made = Followed(scenario)
    made.begin()
    made.world.run()
    return made


def described(batches: Sequence[Sequence[StoredRecord]]) -> tuple[Database, Peers]:
    database, peers = Database(), Peers()
    for record in (each for batch in batches for each in batch):
        peers.apply(record) if isinstance(record, PeersChanged) else database.apply(record)
    return database, peers


def killed_in_memory(scenario: Scenario, behind: int) -> Followed:
    """The engine is killed and starts again at once, and the very senders and receivers go on that were there."""
    made = Followed(scenario, behind)
    try:
        made.begin()
        made.world.run()
    except Cut:
        made.world.restart()
        made.world.run()
        return made
    raise AssertionError(f"there are fewer than {behind} transactions")


def continued(
    whole: Followed, behind: int, known: Callable[[Database, Peers], Peers] = lambda _, peers: peers
) -> Followed:
    """A new engine, new senders and new receivers go on from the records up to a transaction."""
    return continued_from(whole.scenario, whole.batches[:behind], known)


def continued_from(
    scenario: Scenario,
    batches: Sequence[Sequence[StoredRecord]],
    known: Callable[[Database, Peers], Peers] = lambda _, peers: peers,
) -> Followed:
    made = Followed(scenario)
    database, peers = described(batches)
    made.begin(database, known(database, peers))
    made.world.run()
    return made


def check_same_as_in_memory(whole: Followed, behind: int, after: Followed) -> None:
    """Message for message, at the same instants, with the same marks, and in all figures."""
    reference = killed_in_memory(whole.scenario, behind)
    received, answered = reference.reached[behind - 1]
    assert after.received == reference.received[received:]
    assert after.answered == reference.answered[answered:]
    assert after.figures() == reference.figures()
    assert after.stored() == reference.stored()


_DELIVERY = frozenset({ErrorCode.RETRIES})


def check_against_uninterrupted(whole: Followed, received: Sequence[ReceivedMessage], after: Followed) -> None:
    """Cut + continue brings what the uninterrupted run brings: all of it, in its order, twice only what is marked.

    `received`: what receivers have had in all parts of the run that was cut.
    """
    logged = {
        thread.name
        for process in whole.world.declared.processes
        for thread in process.threads
        if thread.inbound is not None and thread.inbound.logging
    }
    assert _accounted(received, after, logged) == _accounted(whole.received, whole, logged)
    unmarked = Counter(
        (each.thread, each.payload) for each in received if not each.is_possible_duplicate and _is_of(each, logged)
    )
    assert not [key for key, count in unmarked.items() if count > 1], "twice, and not marked"
    failed = {_item(each.destination, each.payload) for world in (whole, after) for each in _undelivered(world)}
    assert _orders(received, logged, failed) == _orders(whole.received, logged, failed)
    assert after.world.offered == whole.world.offered
    assert after.world.waiting_at_senders == whole.world.waiting_at_senders == 0


def _accounted(received: Sequence[ReceivedMessage], run: Followed, logged: set[str]) -> set[tuple[str, str]]:
    """What came of each message of a logged connection: where, or with which error; a reply is the receiver's."""
    found = {_item(each.thread, each.payload) for each in received if _is_of(each, logged)}
    for message in run.world.engine.database.failed():
        if label_of(message.payload).thread in logged:
            is_delivery = message.error in _DELIVERY
            found.add(_item(message.destination if is_delivery else f"error {message.error}", message.payload))
    assert not run.world.engine.database.messages()
    return found


def _undelivered(run: Followed) -> list[Any]:
    return [each for each in run.world.engine.database.failed() if each.error in _DELIVERY]


def _orders(
    received: Sequence[ReceivedMessage], logged: set[str], failed: set[tuple[str, str]]
) -> dict[tuple[str, str], list[str]]:
    """By receiver and sender, what came for the first time, in order; not what one of the runs could not deliver."""
    found: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for each in received:
        where, what = _item(each.thread, each.payload)
        if _is_of(each, logged) and (where, what) not in failed:
            found[where, what.split()[0]].setdefault(what)
    return {key: list(each) for key, each in found.items()}


def _is_of(received: ReceivedMessage, logged: set[str]) -> bool:
    return label_of(received.payload).thread in logged


def _item(where: str, payload: bytes) -> tuple[str, str]:
    label = label_of(payload)
    return where, f"{label.thread} {label.number} {label.path}"
