"""Random scenarios of a broker's queue, by number, and the comparison of the kernel with the plain queue."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from qsctl.eventlog.outcomes import LOSS_COLUMNS
from qsctl.eventlog.schema import LogLevel, bucket_of
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS
from qsctl.sim.broker_queue.run import BrokerQueueRun
from qsctl.sim.model import OUTCOMES, Stop
from qsctl.sim.scenario.parts import broker_queue as b
from qsctl.sim.scenario.parts.work_time import BackOff, BackOffKind, WorkKind, WorkTime
from qsctl.sim.scenario.rules.scenario import breaches_of
from qsctl.sim.scenario.scenario import (
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    MmppArrivals,
    Model,
    OnOffArrivals,
    PoissonArrivals,
    Scenario,
    ScheduleArrivals,
    UniformSize,
)
from tests.sim.oracle_queue import PlainQueue

MS = MILLISECOND_NS


def random_queue(number: int, messages: int = 150) -> Scenario:
    """Return the scenario of this number: valid, and of about so many messages."""
    r = random.Random(number)
    while True:
        scenario = _scenario(r, number, messages)
        if next(breaches_of(scenario), None) is None:
            return scenario


def _sometimes(r: random.Random, probability: float, value: Any, other: Any) -> Any:
    return value() if r.random() < probability else other


def _work(r: random.Random, mean_ms: int) -> WorkTime:
    mean = mean_ms * MS
    return r.choice([
        WorkTime(times_ns=(mean,)), WorkTime(times_ns=(mean,)),
        WorkTime(WorkKind.EXPONENTIAL, (mean,)), WorkTime(WorkKind.LOGNORMAL, (mean, 5 * mean)),
        WorkTime(WorkKind.GAMMA, (mean,), variation=r.choice([0.3, 1.0, 2.0])),
        WorkTime(WorkKind.UNIFORM, (mean // 2, mean * 3 // 2)),
        WorkTime(WorkKind.HISTOGRAM, (0, mean, 4 * mean), (1.0, 2.0, 0.5)),
    ])  # fmt: skip


def _interval(r: random.Random, horizon: int) -> ClientInterval:
    start = r.choice([0, horizon // 10, horizon // 4, horizon // 2])
    return ClientInterval(start, horizon // r.choice([20, 8, 3]), r.choice([INFINITE_NS, horizon // 2]))


def _publisher(r: random.Random, number: int, rate: float, horizon: int, classes: list[str]) -> b.QueuePublisher:
    mean_gap = SECOND_NS / rate
    arrivals: b.QueueArrivals = r.choice([
        PoissonArrivals(rate), PoissonArrivals(rate), ConstantArrivals(rate),
        OnOffArrivals(3 * rate, round(20 * mean_gap), round(40 * mean_gap), r.random() < 0.5),
        MmppArrivals((rate, 3 * rate), (round(20 * mean_gap), round(9 * mean_gap))),
        ScheduleArrivals((0, horizon // 10, horizon // 5), (rate, 0.0, 2 * rate), horizon // 3),
        b.ClosedArrivals(r.randint(1, 6), WorkTime(WorkKind.EXPONENTIAL, (round(4 * mean_gap),))),
    ])  # fmt: skip
    closed = isinstance(arrivals, b.ClosedArrivals)
    return b.QueuePublisher(
        f"p{number}",
        arrivals,
        size=ConstantSize(1000) if closed or r.random() < 0.5 else UniformSize(1, 5000),
        work_class=r.choice(["", r.choice(classes)]),
        batch=1 if closed else r.choice([1, 1, 1, 4]),
        keys=r.choice([1, 2, 7]),
        key_skew=r.choice([0.0, 1.0]),
        time_to_live_ns=_sometimes(r, 0.2, lambda: r.choice([30, 100, 700]) * MS, INFINITE_NS),
        start_ns=r.choice([0, 0, horizon // 10]),
        on_refusal=r.choice(list(b.RefusalReaction)),
        retry_after_ns=r.choice([10, 50]) * MS,
        retries=r.choice([-1, 0, 2]),
    )


def _workers(r: random.Random, number: int, classes: list[str], mean: int, horizon: int) -> b.QueueWorkers:
    return b.QueueWorkers(
        f"w{number}",
        count=r.choice([1, 2, 3]),
        servers=r.choice([1, 1, 2, 4]),
        prefetch=r.choice([-1, 1, 1, 2, 5, 20]),
        receive=r.choice([b.ReceiveMode.PUSH, b.ReceiveMode.PUSH, b.ReceiveMode.POLL]),
        batch=r.choice([1, 1, 3, 10]),
        wait_ns=r.choice([0, 20, 1000]) * MS,
        poll_interval_ns=r.choice([0, 7]) * MS,
        round_trip_ns=r.choice([0, 0, 0, 2, 10]) * MS,
        speed=r.choice([1.0, 1.0, 1.0, 0.5, 3.0]),
        acknowledge_batch=r.choice([1, 1, 1, 3]),
        acknowledge_interval_ns=r.choice([5, 100]) * MS,
        works=_sometimes(r, 0.3, lambda: (b.ClassWork(r.choice(classes), _work(r, mean)),), ()),
        pauses=_sometimes(r, 0.2, lambda: (_interval(r, horizon),), ()),
        absences=_sometimes(r, 0.3, lambda: (_interval(r, horizon),), ()),
    )


def _scenario(r: random.Random, number: int, messages: int) -> Scenario:
    mean = r.choice([5, 20, 50])
    rate = r.choice([0.5, 0.9, 1.3, 3.0]) * 1000 / mean * r.choice([1, 2])
    horizon = round(messages / rate * SECOND_NS) // MS * MS + 1
    order = r.choice([b.DeliveryOrder.FIFO, b.DeliveryOrder.FIFO, b.DeliveryOrder.PRIORITY, b.DeliveryOrder.KEY])
    keyed = order is b.DeliveryOrder.KEY
    classes = [f"c{each}" for each in range(r.choice([1, 1, 2, 3]))]
    workers = tuple(_workers(r, each, classes, mean, horizon) for each in range(r.choice([1, 1, 2])))
    publishers = r.choice([1, 1, 2])
    partitions = r.choice([0, 1, 4]) if keyed else 0
    autoscaling = _sometimes(
        r, 0.25, lambda: (
            b.AutoscalingRule("w0", r.choice([1, 5, 20]), r.choice([3, 5]), r.choice([0, 1]), horizon // 40,
                              _work(r, mean), r.choice([0, horizon // 15])),
        ), (),
    )  # fmt: skip
    queue = b.BrokerQueue(
        "q",
        tuple(_publisher(r, each, rate / publishers, horizon, classes) for each in range(publishers)),
        tuple(
            b.WorkClass(
                name, _work(r, mean), r.choice([1.0, 3.0]),
                r.choice([0, 1, 2]) if order is b.DeliveryOrder.PRIORITY else 0,
                r.choice([0.0, 0.0, 0.1, 0.5]), r.choice([0.0, 0.0, 0.05]),
                _sometimes(r, 0.15, lambda: r.choice([30, 200]) * MS, INFINITE_NS),
            )
            for name in classes
        ),
        workers,
        order=order,
        priorities=r.choice([3, 10]),
        partitions=partitions,
        access=b.QueueAccess.SHARED if partitions else r.choice([b.QueueAccess.SHARED] * 3 + [b.QueueAccess.EXCLUSIVE]),
        rebalance_ns=r.choice([0, 30 * MS]),
        max_unacknowledged=r.choice([-1, -1, 3, 30]),
        delay_ns=r.choice([0, 0, 0, 25 * MS]),
        time_to_live_ns=_sometimes(r, 0.15, lambda: 300 * MS, INFINITE_NS),
        expires=r.choice(list(b.ExpiryPlace)),
        connection_loss=r.choice(list(b.ConnectionLoss)),
        backlog=_sometimes(r, 0.2, lambda: b.QueueBacklog(20, keys=r.choice([1, 5])), None),
        visibility=_sometimes(
            r, 0.5,
            lambda: b.VisibilityRule(
                r.choice([(mean * MS,), (3 * mean * MS,), (mean * MS, 5 * mean * MS), (INFINITE_NS, mean * MS)]),
                r.choice([0, 0, mean * MS // 3]), r.choice(list(b.LateAcknowledgmentRule)),
            ),
            None,
        ),
        retry=b.RetryRule(
            r.choice([-1, 1, 3, 5]),
            b.ReturnPlace.HEAD if keyed else r.choice(list(b.ReturnPlace)),
            r.choice([
                BackOff(), BackOff(), BackOff(delays_ns=(10 * MS, 40 * MS)),
                BackOff(BackOffKind.EXPONENTIAL, (5 * MS, 100 * MS), 3.0),
            ]),
            r.choice([0.0, 0.5]),
            r.choice([b.FailureReport.REJECT, b.FailureReport.REJECT, b.FailureReport.SILENT]),
        ),
        limits=_sometimes(
            r, 0.5,
            lambda: b.LengthLimits(
                r.choice([-1, 1, 5, 30]), r.choice([-1, -1, 20_000]), r.choice(list(b.LimitScope)),
                r.choice(list(b.OverflowRule)),
            ),
            b.LengthLimits(),
        ),
        dead_letters=_sometimes(
            r, 0.6,
            lambda: b.DeadLetterLimits(
                "", r.choice([-1, 3]), r.choice([-1, 9000]),
                r.choice([INFINITE_NS, 200 * MS]), r.choice(list(b.DeadOverflow)),
            ),
            None,
        ),
        outages=_sometimes(
            r, 0.3,
            lambda: tuple(
                b.WorkOutage(
                    i.start_ns, i.duration_ns, i.every_ns, r.choice(["", classes[0]]),
                    r.choice([None, WorkTime(times_ns=(2 * MS,))]),
                )
                for i in (_interval(r, horizon), _interval(r, horizon))
            ),
            (),
        ),
        autoscaling=autoscaling,
        objective=b.DoneObjective(r.choice([50, 500]) * MS),
    )  # fmt: skip
    return Scenario(
        f"random-{number}",
        Model.QUEUE,
        seed=number,
        horizon_ns=horizon,
        warm_up_ns=r.choice([0, 0, horizon // 4]),
        queue=queue,
    )


class RanQueue:
    """The kernel's run: its rows, counters and figures."""

    def __init__(self, scenario: Scenario, level: LogLevel = LogLevel.MESSAGES, chunk_rows: int = 50) -> None:
        self.run = BrokerQueueRun(scenario, 0, level, chunk_rows)
        self.rows: list[tuple[int, ...]] = []
        steps = [scenario.horizon_ns * each // 7 for each in range(1, 8)]
        for until in steps:
            while self.run.step(until) is Stop.LOG_FULL:
                self._take()
        while self.run.finish() is Stop.LOG_FULL:
            self._take()
        self._take()
        self.counters = self.run.counters()
        (self.worked,) = self.run.worked_queues

    def _take(self) -> None:
        names = (
            "enqueued_ns", "enter_ns", "wait_ns", "acknowledge_ns", "topic_id", "size_bytes", "attempts", "queue",
            "outcome",
        )  # fmt: skip
        rows = self.run.take_log()
        columns = [rows[name].tolist() for name in names]
        self.rows += list(zip(*columns, strict=True))


def compare_queue(scenario: Scenario) -> RanQueue:
    """Run both; they are equal to the message, and so are counters and figures."""
    plain, ran = PlainQueue(scenario, 0).run(), RanQueue(scenario)
    assert sorted(ran.rows) == sorted(plain.rows)
    counters = counters_of_rows(scenario, plain.rows)
    for place, queue in enumerate(ran.counters["queue"]):
        for name, value in counters[queue].items():
            assert ran.counters[name][place] == value, (queue, name)
    worked = ran.worked
    assert (worked.duplicates, worked.parallel_duplicates, worked.requests) == (
        plain.duplicates, plain.parallel, plain.requests,
    )  # fmt: skip
    assert (worked.backlog_max, worked.ready_max, worked.oldest_ns, worked.drain_ns) == (
        plain.backlog_max, plain.ready_max, plain.oldest, plain.drain,
    )  # fmt: skip
    observed = scenario.horizon_ns - scenario.warm_up_ns
    assert abs(worked.backlog_mean - plain.area / observed) <= 1e-9 * max(1.0, worked.backlog_mean)
    for worker, c in zip(ran.run.workers, plain.consumers, strict=True):
        assert (worker.busy_ns, worker.present_ns, worker.paid_ns, worker.succeeded, worker.failed) == (
            c.busy_ns, c.present_ns, c.paid_ns, c.succeeded, c.failed,
        )  # fmt: skip
    return ran


def counters_of_rows(scenario: Scenario, rows: list[tuple[int, ...]]) -> dict[str, dict[str, int]]:
    """Return what counters state, as a fold over the rows: one that left before the end of the warm-up counts not."""
    assert scenario.queue is not None
    found: dict[str, dict[str, int]] = {}
    warm_up = scenario.warm_up_ns
    names = {"delivered": "delivered_messages", "held": "length_messages", "waiting": "waiting_messages"}
    losses = dict.fromkeys(LOSS_COLUMNS, 0)
    for which, queue in enumerate((scenario.queue.name, scenario.queue.dead_name)):
        counted: Counter[str] = Counter(losses)
        for born, _, wait, done, _, size, attempts, of, outcome in rows:
            if of != which:
                continue
            counted["arrived_messages"] += born >= warm_up
            word = str(OUTCOMES[outcome])
            if word in ("held", "waiting") or born + wait >= warm_up:
                counted[names.get(word, f"{word}_messages")] += 1
                counted["redelivered_messages"] += max(0, attempts - 1)
                if word == "delivered":
                    counted["delivered_bytes"] += size
                    counted["wait_sum_ns"] += wait
                    counted["done_sum_ns"] += done
                    counted[f"bucket {bucket_of(done)}"] += 1
        found[queue] = {name: value for name, value in counted.items() if not name.startswith("bucket") and (
            which == 0 or name != "done_sum_ns")}  # fmt: skip
    return found
