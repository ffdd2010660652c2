"""Small random scenarios, and the same arrivals for the kernel and the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import INFINITE_NS, MILLISECOND_NS
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.kernel.records import ARRIVAL_TRAFFIC_SHIFT
from qsctl.sim.model import EVENT_NAMES, OUTCOMES, Stop
from qsctl.sim.scenario.parts.client import (
    ConstantTime,
    ExponentialTime,
    LognormalTime,
    MixedTime,
    ParetoTime,
    UniformTime,
)
from qsctl.sim.scenario.scenario import (
    Access,
    Admission,
    Broker,
    ClientGroup,
    ClientInterval,
    CongestionControl,
    ConstantArrivals,
    ConstantSize,
    DurableQueue,
    Eliding,
    Endpoint,
    Flow,
    GuaranteedOverflow,
    MixedSize,
    Model,
    OnOffArrivals,
    PoissonArrivals,
    Port,
    Profile,
    Queue,
    QueueLimits,
    Scenario,
    Scheduler,
    TcpSettings,
    TimedChange,
    Traffic,
    UniformSize,
)

HORIZON_NS = 40 * MILLISECOND_NS

sizes = st.sampled_from(
    [
        ConstantSize(1), ConstantSize(1000), ConstantSize(2048), ConstantSize(5000), UniformSize(1, 9000),
        MixedSize((100, 2049, 20_000), (1.0, 2.0, 1.0)),
    ]
)  # fmt: skip


service_times = st.sampled_from(
    [
        ConstantTime(), ConstantTime(), ConstantTime(), ConstantTime(300_000), UniformTime(1, 2_000_000),
        ExponentialTime(500_000), LognormalTime(200_000, 1.5), ParetoTime(50_000, 1.2, 9_000_000),
        MixedTime((10_000, 900_000, 7_000_000), (3.0, 1.0, 0.5)),
    ]
)  # fmt: skip


@st.composite
def interval(draw: st.DrawFn) -> ClientInterval:
    start = draw(st.integers(0, HORIZON_NS))
    duration = draw(st.integers(100_000, HORIZON_NS // 2))
    every = st.sampled_from([INFINITE_NS, HORIZON_NS // 3, 2 * duration]).filter(lambda every: every > duration)
    return ClientInterval(start, duration, draw(every))


@st.composite
def profile(draw: st.DrawFn, name: str, rare: bool) -> Profile:
    limits = st.builds(
        QueueLimits,
        max_depth_work_units=st.sampled_from([1, 2, 5, 20, 1000]),
        min_msg_burst=st.integers(0, 5),
        weight=st.integers(1, 3),
    )
    tcp = TcpSettings(
        mss_bytes=draw(st.sampled_from([536, 1460])),
        initial_window_segments=draw(st.sampled_from([1, 2, 10])),
        max_window_bytes=draw(st.sampled_from([1000, 8192, 65_536])),
        transmit_queue_bytes=draw(st.sampled_from([1, 3000, 20_000, 200_000])),
        congestion_control=draw(st.sampled_from(CongestionControl)),
        minimum_time_out_ns=draw(st.sampled_from([1, 1_000_000, 4_000_000, 200_000_000])),
    )
    return Profile(
        name,
        queues={queue: draw(limits) for queue in Queue},
        tcp=tcp,
        eliding=draw(
            st.builds(
                Eliding,
                enabled=st.booleans(),
                delay_ns=st.sampled_from([0, 500_000, 3_000_000]),
                max_topics=st.sampled_from([1, 2, 100]),
            )
        )
        if rare
        else Eliding(),
        admission=draw(st.sampled_from(Admission)),
        scheduler=draw(st.sampled_from(Scheduler)),
        guaranteed_overflow=draw(st.sampled_from(GuaranteedOverflow)),
        redelivery_delay_ns=draw(st.sampled_from([300_000, 2_000_000])),
    )


@st.composite
def durable_queues(draw: st.DrawFn, groups: list[str]) -> list[DurableQueue]:
    """One or two durable queues that share out the groups."""
    flows = [
        Flow(
            group,
            window_messages=draw(st.integers(1, 6)),
            acknowledge_delay_ns=draw(st.sampled_from([0, 0, 400_000, INFINITE_NS])),
            library_threshold_percent=draw(st.sampled_from([0, 60, 100])),
            library_timer_ns=draw(st.sampled_from([300_000, 4_000_000])),
            fails=draw(st.sampled_from([0.3, 0.0, 0.8])),
            rejects=draw(st.sampled_from([0.0, 0.1, 0.2])),
        )
        for group in groups
    ]
    cut = draw(st.integers(0, len(flows) - 1))

    def made(name: str, part: list[Flow], dead: str) -> DurableQueue:
        access = draw(st.sampled_from(Access))
        partitions = draw(st.sampled_from([0, 0, 1, 4])) if access is Access.NON_EXCLUSIVE else 0
        respects_time_to_live = draw(st.booleans())
        return DurableQueue(
            name,
            access=access,
            partitions=partitions,
            rebalance_delay_ns=draw(st.sampled_from([0, 1_000_000])),
            max_handoff_ns=draw(st.sampled_from([1_000_000_000, 0, 500_000])),
            respects_priority=not partitions and draw(st.booleans()),
            respects_time_to_live=respects_time_to_live,
            max_time_to_live_ns=draw(st.sampled_from([INFINITE_NS, 2_000_000]))
            if respects_time_to_live
            else INFINITE_NS,
            max_redelivery=draw(st.sampled_from([1, -1, 2])),
            dead_message_queue=draw(st.sampled_from(["", dead])),
            unacknowledged_limit_messages=draw(st.sampled_from([-1, 1, 3, 10_000])),
            max_messages=draw(st.sampled_from([-1, 20])),
            max_spool_usage_bytes=draw(st.sampled_from([-1, -1, 30_000])),
            low_priority_limit_messages=draw(st.sampled_from([-1, 5])),
            flows=tuple(part),
        )

    both = bool(flows[:cut]) or draw(st.booleans())
    orders = made("orders", flows[cut:], "invoices" if both else "")
    return [orders, made("invoices", flows[:cut], "orders")] if both else [orders]


@st.composite
def partitioned_scenarios(draw: st.DrawFn) -> Scenario:
    """A partitioned queue whose clients come and go while much of it is out: partitions are handed over."""
    groups = [
        ClientGroup(
            f"g{i}",
            port="p",
            profile="d",
            round_trip_ns=draw(st.sampled_from([0, 1_000_000])),
            loss_probability=draw(st.sampled_from([0.0, 0.0, 0.0, 0.1])),
            service_time=draw(st.sampled_from([ConstantTime(), ConstantTime(300_000), ExponentialTime(500_000)])),
            absences=tuple(draw(st.lists(interval(), max_size=2))),
        )
        for i in range(draw(st.integers(2, 4)))
    ]
    flows = [
        Flow(
            group.name,
            window_messages=draw(st.integers(1, 20)),
            acknowledge_delay_ns=draw(st.sampled_from([0, 400_000, 3_000_000, INFINITE_NS])),
            library_threshold_percent=draw(st.sampled_from([0, 60])),
            fails=draw(st.sampled_from([0.0, 0.3])),
            rejects=draw(st.sampled_from([0.0, 0.2])),
        )
        for group in groups
    ]
    queue = DurableQueue(
        "q",
        access=Access.NON_EXCLUSIVE,
        partitions=draw(st.integers(1, 9)),
        rebalance_delay_ns=draw(st.sampled_from([0, 500_000, 3_000_000])),
        max_handoff_ns=draw(st.sampled_from([1_000_000_000, 0, 500_000, 4_000_000])),
        max_redelivery=draw(st.sampled_from([-1, 2])),
        flows=tuple(flows),
    )
    return Scenario(
        "partitioned",
        model=Model.SOLACE,
        seed=draw(st.integers(0, 2**16)),
        horizon_ns=HORIZON_NS,
        warm_up_ns=draw(st.sampled_from([0, 0, HORIZON_NS // 3])),
        ports=(Port("p", 1_000_000_000),),
        profiles=(Profile("d"),),
        groups=tuple(groups),
        traffic=(
            Traffic(
                "t", "q", PoissonArrivals(draw(st.sampled_from([1000.0, 5000.0]))), ConstantSize(500), Queue.G_1,
                topics=draw(st.sampled_from([1, 20])),
            ),
        ),
        durable_queues=(queue,),
    )  # fmt: skip


@st.composite
def solace_scenarios(draw: st.DrawFn) -> Scenario:
    """Up to three groups on two ports; every feature on in some of them."""
    rare = draw(st.booleans())
    groups = []
    for i in range(draw(st.integers(1, 3))):
        outages = st.lists(interval(), max_size=2).map(tuple)
        groups.append(
            ClientGroup(
                f"g{i}",
                port=draw(st.sampled_from(["p0", "p1"])),
                profile=draw(st.sampled_from(["a", "b"])),
                count=draw(st.integers(1, 2)),
                round_trip_ns=draw(st.sampled_from([0, 100_000, 1_000_000])),
                link_rate_bits_per_second=draw(st.sampled_from([0, 0, 20_000_000])) if rare else 0,
                loss_probability=draw(st.sampled_from([0.0, 0.0, 0.02, 0.2])) if rare else 0.0,
                delayed_acknowledgment_ns=draw(st.sampled_from([0, 300_000, 40_000_000])),
                acknowledgment_latency_ns=draw(st.sampled_from([0, 0, 700_000])),
                receive_buffer_bytes=draw(st.sampled_from([0, 0, 1, 3000, 50_000])),
                readers=draw(st.sampled_from([1, 1, 3])),
                service_time=draw(service_times),
                pauses=draw(outages) if rare else (),
                absences=draw(outages) if rare else (),
            )
        )
    traffic = []
    for i in range(draw(st.integers(1, 4))):
        rate = draw(st.sampled_from([200.0, 1000.0, 3000.0]))
        arrivals = draw(
            st.sampled_from(
                [PoissonArrivals(rate), ConstantArrivals(rate), OnOffArrivals(3 * rate, 2_000_000, 4_000_000)]
            )
        )
        traffic.append(
            Traffic(
                f"t{i}",
                to=draw(st.sampled_from(groups)).name,
                arrivals=arrivals,
                size=draw(sizes),
                queue=draw(st.sampled_from(Queue)),
                topics=draw(st.sampled_from([1, 3])),
                fan_out=draw(st.booleans()),
                stop_ns=draw(st.sampled_from([INFINITE_NS, HORIZON_NS // 2])),
                discard_eligible=draw(st.booleans()),
                eliding_eligible=draw(st.sampled_from([True, True, False])),
            )
        )
        if rare and traffic[-1].queue is not Queue.G_1 and not traffic[-1].fan_out:
            traffic[-1] = replace(traffic[-1], shared=draw(st.booleans()))
    sharing = (
        draw(st.sets(st.sampled_from([group.name for group in groups]), min_size=1)) if draw(st.booleans()) else ()
    )
    queues = draw(durable_queues(sorted(sharing))) if sharing else []
    if queues:
        traffic = [
            replace(each, to=draw(st.sampled_from(queues)).name)
            if each.queue is Queue.G_1 and (each.to in sharing or draw(st.booleans()))
            else each
            for each in traffic
        ]
        traffic.append(Traffic("spooled", queues[0].name, PoissonArrivals(2000.0), draw(sizes), Queue.G_1, topics=5))
        traffic = [
            replace(
                each,
                priority=draw(st.integers(0, 9)),
                time_to_live_ns=draw(st.sampled_from([INFINITE_NS, 300_000, 5_000_000])),
                dead_message_eligible=draw(st.booleans()),
            )
            for each in traffic
        ]
    endpoints = [
        Endpoint(
            group.name,
            flows=draw(st.integers(1, 2)),
            window_messages=draw(st.integers(1, 6)),
            max_messages=draw(st.sampled_from([-1, 20])),
            max_spool_usage_bytes=draw(st.sampled_from([-1, -1, 30_000])),
            low_priority_limit_messages=draw(st.sampled_from([-1, 5])),
            unacknowledged_limit_messages=draw(st.sampled_from([-1, 1, 3, 10_000])),
            library_threshold_percent=draw(st.sampled_from([0, 60, 100])),
            library_timer_ns=draw(st.sampled_from([300_000, 4_000_000, 10**9])),
            acknowledge_delay_ns=draw(st.sampled_from([0, 0, 400_000, INFINITE_NS])),
        )
        for group in groups
        if group.name not in sharing and draw(st.booleans())
    ]
    depth_change = TimedChange(HORIZON_NS // 4, f"profile[a]/queue[{draw(st.sampled_from(Queue))}]/max-depth", "3")
    changes = draw(
        st.lists(
            st.sampled_from(
                [depth_change, TimedChange(HORIZON_NS // 2, "port[p0]/rate", "30000000"),
                 TimedChange(2 * HORIZON_NS // 3, "port[p0]/rate", "90000000"),
                 TimedChange(HORIZON_NS // 3, "profile[b]/queue[D-2]/min-msg-burst", "2"),
                 TimedChange(HORIZON_NS // 3, "profile[a]/queue[G-1]/min-msg-burst", "4"),
                 TimedChange(HORIZON_NS // 2, "profile[b]/queue[G-1]/max-depth", "20"),
                 TimedChange(HORIZON_NS // 2, "profile[b]/queue[D-3]/weight", "5"),
                 TimedChange(HORIZON_NS // 5, "client[g0]/pause", "5ms"),
                 TimedChange(HORIZON_NS // 2, "client[g0]/absence", "4ms")]
            ),
            max_size=3,
            unique=True,
        )
    )  # fmt: skip
    profiles = [draw(profile("a", rare)), draw(profile("b", rare))]
    bound = {group.profile for group in groups if group.name in sharing}
    profiles = [replace(each, guaranteed_overflow=GuaranteedOverflow.HOLD) if each.name in bound else each
                for each in profiles]  # fmt: skip
    return Scenario(
        "random",
        seed=draw(st.integers(0, 2**32)),
        horizon_ns=HORIZON_NS,
        warm_up_ns=draw(st.sampled_from([0, 0, HORIZON_NS // 3])),
        ports=(Port("p0", draw(st.sampled_from([8_000_000, 80_000_000, 10**9]))), Port("p1", 50_000_000)),
        profiles=tuple(profiles),
        groups=tuple(groups),
        traffic=tuple(traffic),
        endpoints=tuple(endpoints),
        durable_queues=tuple(queues),
        broker=Broker(
            egress_buffer_bytes=draw(st.sampled_from([0, 0, 30_000])) if rare else 0,
            slow_reconnect_ns=draw(st.sampled_from([INFINITE_NS, 3_000_000])),
            unacknowledged_limit_messages=draw(st.sampled_from([-1, -1, 2, 10])),
        ),
        changes=tuple(changes) if rare else (),
    )


TIBCO_CHANGES = (
    TimedChange(HORIZON_NS // 4, "profile[a]/queue[egress]/max-depth", "3"),
    TimedChange(HORIZON_NS // 2, "profile[b]/queue[egress]/max-depth", "20"),
    TimedChange(HORIZON_NS // 2, "port[p0]/rate", "30000000"),
    TimedChange(2 * HORIZON_NS // 3, "port[p0]/rate", "90000000"),
    TimedChange(HORIZON_NS // 3, "profile[b]/queue[egress]/min-msg-burst", "2"),
    TimedChange(HORIZON_NS // 5, "client[g0]/pause", "5ms"),
    TimedChange(HORIZON_NS // 2, "client[g0]/absence", "4ms"),
)


@st.composite
def tibco_scenarios(draw: st.DrawFn) -> Scenario:
    """The same groups, links, losses and absences; one queue a client, with a depth and nothing else."""
    scenario = draw(solace_scenarios())
    names = {group.name for group in scenario.groups}
    traffic = tuple(
        Traffic(f"t{i}", t.to if t.to in names else "g0", t.arrivals, size=t.size, fan_out=t.fan_out)
        for i, t in enumerate(scenario.traffic)
    )
    profiles = tuple(
        Profile(
            each.name,
            queues={Queue.D_1: QueueLimits(each.queues[Queue.D_1].max_depth_work_units, draw(st.integers(0, 5)))},
            tcp=each.tcp,
        )
        for each in scenario.profiles
    )
    changes = draw(st.lists(st.sampled_from(TIBCO_CHANGES), max_size=3, unique=True)) if draw(st.booleans()) else ()
    return Scenario(
        "random", Model.TIBCO, scenario.seed, HORIZON_NS, scenario.warm_up_ns, ports=scenario.ports,
        profiles=profiles, groups=scenario.groups, traffic=traffic, changes=tuple(changes),
    )  # fmt: skip


def arrivals_of(scenario: Scenario) -> list[tuple[int, int, int, int, int, int]]:
    """Time, client, size, topic, queue, number of the traffic."""
    streams = ArrivalStreams(scenario, 0)
    found = []
    while streams.now_ns < scenario.horizon_ns:
        for row in streams.window(scenario.horizon_ns):
            tag = int(row["tag"])
            place = (int(row["time"]), int(row["client"]))
            found.append((*place, int(row["bytes"]), int(row["topic"]), tag & 7, tag >> ARRIVAL_TRAFFIC_SHIFT))
    return found


class Ran:
    """A model run to its end: rows and events as plain tuples."""

    def __init__(self, scenario: Scenario, level: LogLevel = LogLevel.EVENTS, chunk_rows: int = 64) -> None:
        self.run = EgressRun(scenario, 0, level, chunk_rows)
        self.rows: list[tuple[Any, ...]] = []
        self.events: list[tuple[int, int, int, int, str]] = []
        while self.run.step(scenario.horizon_ns) is Stop.LOG_FULL:
            self.drain()
        self.drain()
        while self.run.finish() is Stop.LOG_FULL:
            self.drain()
        self.drain()
        self.counters = self.run.counters()

    def drain(self) -> None:
        for row in self.run.take_log():
            self.rows.append(
                (
                    int(row["client_id"]), int(row["queue"]), int(row["topic_id"]), int(row["size_bytes"]),
                    int(row["enqueued_ns"]), int(row["wait_ns"]), int(row["send_ns"]), int(row["acknowledge_ns"]),
                    OUTCOMES[row["outcome"]].value, bool(row["discard_indication"]), int(row["attempts"]),
                )
            )  # fmt: skip
        for row in self.run.take_events():
            name = EVENT_NAMES[row["event"]]
            self.events.append((int(row["at_ns"]), int(row["client_id"]), int(row["queue"]), int(row["value"]), name))
