"""A scenario as frozen dataclasses, in nanoseconds, bytes, bits a second and work units.

`xml.py` reads them from XML (`schemas/qsctl_simulation.xsd`), `overrides` changes one value by its path,
the models turn them into arrays. The defaults of a client profile are in `profiles/ranges.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final

from qsctl.core.settings import ServiceSettings
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS, Nanoseconds
from qsctl.profiles.client_profile import QUEUE_ORDER as QUEUE_ORDER
from qsctl.profiles.client_profile import WORK_UNIT_BYTES as WORK_UNIT_BYTES
from qsctl.profiles.client_profile import Queue as Queue
from qsctl.profiles.ranges import default_profile
from qsctl.sim.scenario.parts.broker_queue import BrokerQueue
from qsctl.sim.scenario.parts.client import ClientGroup as ClientGroup
from qsctl.sim.scenario.parts.client import ClientInterval as ClientInterval
from qsctl.sim.scenario.parts.durable import Access as Access
from qsctl.sim.scenario.parts.durable import DurableQueue as DurableQueue
from qsctl.sim.scenario.parts.durable import Flow as Flow
from qsctl.sim.scenario.parts.durable import FlowSettings, SpoolSettings
from qsctl.sim.scenario.parts.engine import Engine
from qsctl.sim.scenario.parts.replay import Replay
from qsctl.sim.scenario.parts.traffic import Arrivals as Arrivals
from qsctl.sim.scenario.parts.traffic import ConstantArrivals as ConstantArrivals
from qsctl.sim.scenario.parts.traffic import ConstantSize as ConstantSize
from qsctl.sim.scenario.parts.traffic import ExponentialSize as ExponentialSize
from qsctl.sim.scenario.parts.traffic import LognormalSize as LognormalSize
from qsctl.sim.scenario.parts.traffic import MixedSize as MixedSize
from qsctl.sim.scenario.parts.traffic import MmppArrivals as MmppArrivals
from qsctl.sim.scenario.parts.traffic import OnOffArrivals as OnOffArrivals
from qsctl.sim.scenario.parts.traffic import ParetoSize as ParetoSize
from qsctl.sim.scenario.parts.traffic import PoissonArrivals as PoissonArrivals
from qsctl.sim.scenario.parts.traffic import ScheduleArrivals as ScheduleArrivals
from qsctl.sim.scenario.parts.traffic import Size as Size
from qsctl.sim.scenario.parts.traffic import TraceArrivals as TraceArrivals
from qsctl.sim.scenario.parts.traffic import UniformSize as UniformSize
from qsctl.sim.scenario.parts.world import WorldScenario
from qsctl.sim.scenario.places import Places

_DEFAULT: Final = default_profile()
KILOBYTE_BYTES: Final = 1024
"""As the brokers count them: a maximum window of 256 KB is 262,144 bytes."""


class Model(StrEnum):
    """The product whose queues are simulated."""

    SOLACE = "solace"
    TIBCO = "tibco"
    SHARED_READER_QUEUE = "shared_reader_queue"
    INTEGRATION = "integration"
    WORLD = "world"
    REPLAY = "replay"
    QUEUE = "queue"


TIBCO_QUEUE: Final = "egress"
"""Name of the one queue in a TIBCO client profile; inside it has the place of D-1."""
TIBCO_MIN_BURST_MESSAGES: Final = 0
"""The default of its minimum burst length tolerance: [P7500]'s page on the queues does not have it, the vendor's next
one, "Configuring Client Queues", does."""


class Admission(StrEnum):
    """The way in which a full queue makes room (our reading of [SOL-QUEUES])."""

    DEPTH = "depth"
    FIT = "fit"


class Scheduler(StrEnum):
    """The way in which the five queues share the TCP transmit queue."""

    STRICT = "strict"
    WEIGHTED = "weighted"


class CongestionControl(StrEnum):
    """The growth of a connection's window after lost segments: RFC 5681 and RFC 6582, or RFC 9438."""

    RENO = "reno"
    CUBIC = "cubic"


class GuaranteedOverflow(StrEnum):
    """The messages that G-1 holds, and the treatment of a guaranteed message without room.

    `hold`: G-1 holds a message until the client has acknowledged it; one without room waits at its endpoint.
    `redeliver`, as version 0.1 did: G-1 holds a message until it enters the TCP transmit queue; one without room
    pushes the oldest out, which comes again after the redelivery delay.
    """

    HOLD = "hold"
    REDELIVER = "redeliver"


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """`max-depth` and `min-msg-burst` of one priority queue."""

    max_depth_work_units: int = _DEFAULT.d_1_max_depth_work_units
    min_msg_burst: int = _DEFAULT.d_1_min_msg_burst
    weight: int = 1
    """Weight under the weighted scheduler, in messages a round."""


def default_queue_limits() -> dict[Queue, QueueLimits]:
    """Return the limits of a client profile that states none."""
    defaults = {queue: _DEFAULT.queue(queue) for queue in QUEUE_ORDER}
    return {queue: QueueLimits(each.max_depth_work_units, each.min_msg_burst) for queue, each in defaults.items()}


@dataclass(frozen=True, slots=True)
class Eliding:
    """Message eliding of direct topics [SOL-QUEUES, client profile]."""

    enabled: bool = _DEFAULT.eliding_enabled
    delay_ns: Nanoseconds = _DEFAULT.eliding_delay_ms * MILLISECOND_NS
    max_topics: int = _DEFAULT.eliding_max_topics


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """A connection's transmit queue and windows."""

    mss_bytes: int = _DEFAULT.tcp_mss_bytes
    initial_window_segments: int = _DEFAULT.tcp_initial_window_segments
    max_window_bytes: int = _DEFAULT.tcp_max_window_kb * KILOBYTE_BYTES
    transmit_queue_bytes: int = _DEFAULT.tcp_max_window_kb * KILOBYTE_BYTES
    """A message enters while the queue's bytes are below this (it may overshoot by one message)."""
    congestion_control: CongestionControl = CongestionControl.RENO
    """The congestion control of connections that lose segments."""
    minimum_time_out_ns: Nanoseconds = 200 * MILLISECOND_NS
    """The shortest retransmission time-out of connections that lose segments; 200 ms is Linux's."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A client profile."""

    name: str
    queues: dict[Queue, QueueLimits] = field(default_factory=default_queue_limits)
    tcp: TcpSettings = TcpSettings()
    eliding: Eliding = Eliding()
    admission: Admission = Admission.DEPTH
    scheduler: Scheduler = Scheduler.STRICT
    guaranteed_overflow: GuaranteedOverflow = GuaranteedOverflow.HOLD
    redelivery_delay_ns: Nanoseconds = 100 * MILLISECOND_NS
    """The redelivery delay of `GuaranteedOverflow.REDELIVER`."""
    max_subscriptions: int = -1
    """Maximum number of subscriptions of a client; -1: the platform's default, which is simulated as no limit."""


@dataclass(frozen=True, slots=True)
class Port:
    """An Ethernet port at line rate, shared by its clients (FIFO)."""

    name: str
    rate_bits_per_second: int = 1_000_000_000
    """The rate of one link."""
    links: int = 1
    """Links of an aggregation group (802.3ad): each client's connection keeps to one of them, in turn by its number."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """A stream of messages to the clients of a group, or to a durable queue.

    `fan_out` false: every client has its own independent stream. True: one stream, each message to every client.
    `topics` and `topic_skew` (Zipf exponent, 0 is uniform) give topic numbers for eliding.
    """

    name: str
    to: str
    arrivals: Arrivals
    size: Size = ConstantSize()
    queue: Queue = Queue.D_1
    topics: int = 1
    topic_skew: float = 0.0
    fan_out: bool = False
    start_ns: Nanoseconds = 0
    stop_ns: Nanoseconds = INFINITE_NS
    discard_eligible: bool = False
    """Guaranteed messages of COS 1 or 2: refused first when their endpoint is congested [SOL-QUEUES]."""
    eliding_eligible: bool = True
    """Whether a newer direct message of the topic may replace one that is queued."""
    shared: bool = False
    """One stream, each message to one client of the group in turn: a shared subscription."""
    priority: int = 4
    """The priority, from 0 to 9, of messages to a durable queue that respects priorities."""
    time_to_live_ns: Nanoseconds = INFINITE_NS
    """The time to live set by the publisher, for a durable queue that respects it."""
    dead_message_eligible: bool = False
    """Whether removed messages are moved to the dead message queue instead of deleted."""


@dataclass(frozen=True, slots=True)
class Endpoint(SpoolSettings, FlowSettings):
    """The durable endpoints of guaranteed traffic, one for each client, with their flows and window (W1, W2)."""

    to: str
    flows: int = 1


def flow_endpoint(queue: DurableQueue, flow: Flow) -> Endpoint:
    """Return the limits of a client's flow to a durable queue, as those of a separate endpoint with one flow."""
    settings = {each.name: getattr(flow, each.name) for each in fields(FlowSettings)}
    return Endpoint(flow.group, unacknowledged_limit_messages=queue.unacknowledged_limit_messages, **settings)


@dataclass(frozen=True, slots=True)
class Broker:
    """Egress and ingress buffers of the whole broker [SOL-QUEUES, "Data Buffer Management"]. 0: not limited."""

    egress_buffer_bytes: int = 0
    load_factor_set_percent: int = 80
    load_factor_clear_percent: int = 60
    slow_penalty_percent: float = 1.0
    slow_threshold_percent: float = 50.0
    slow_disconnect: bool = True
    """Whether the slowest subscribers are disconnected while the load is above 100 %."""
    slow_reconnect_ns: Nanoseconds = INFINITE_NS
    """Time after which a client disconnected as the slowest reconnects; infinite: it never does."""
    ingress_buffer_bytes: int = 0
    """Shared by the publishers (one a traffic) in equal parts; it fills when the ingress rate is limited."""
    ingress_rate_bits_per_second: int = 0
    """The rate at which the broker accepts messages, first come first served; 0: immediately."""
    max_message_bytes: int = 30_000_000
    unacknowledged_limit_messages: int = -1
    """Maximum number of unacknowledged deliveries of all flows together; -1: no limit."""
    large_message_bytes: int = 1_048_576
    """A larger message raises the one-shot event Large Message of its client [SOL-QUEUES]."""


@dataclass(frozen=True, slots=True)
class TimedChange:
    """A change of the value at `path` to `value` at `at_ns`; a path is, for example, `client[web]/pause`."""

    at_ns: Nanoseconds
    path: str
    value: str


@dataclass(frozen=True, slots=True)
class WorkloadProducer:
    """A producer that writes to a topic of the simulated queuing service."""

    topic_name: str
    arrivals: Arrivals
    size: Size = ConstantSize()
    count: int = 1
    lifespan_ns: Nanoseconds = INFINITE_NS
    window_samples: int = -1
    """Maximum number of unacknowledged writes before the producer waits; -1: it never waits."""


@dataclass(frozen=True, slots=True)
class WorkloadConsumer:
    """A consumer that serves one sample at a time for a service time, then acknowledges, rejects or does not answer."""

    queue: str
    service: Arrivals
    """The rate of service while busy; constant or Poisson (exponential times)."""
    count: int = 1
    rejects: float = 0.0
    silent: float = 0.0
    absences: tuple[ClientInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """The load of producers and consumers on our own service [QS 2], with the network's delay one way.

    `sync_ns` is the time that its storage needs to make a group of records durable.
    """

    service: ServiceSettings
    producers: tuple[WorkloadProducer, ...]
    consumers: tuple[WorkloadConsumer, ...]
    delay_ns: Nanoseconds = 50_000
    sync_ns: Nanoseconds = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario to simulate. `horizon_ns` is exclusive; statistics restart at `warm_up_ns`, state does not."""

    name: str
    model: Model = Model.SOLACE
    seed: int = 1
    horizon_ns: Nanoseconds = 10 * SECOND_NS
    warm_up_ns: Nanoseconds = 0
    replications: int = 1
    log_level: str = "messages"
    ports: tuple[Port, ...] = ()
    profiles: tuple[Profile, ...] = ()
    groups: tuple[ClientGroup, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    durable_queues: tuple[DurableQueue, ...] = ()
    broker: Broker = Broker()
    changes: tuple[TimedChange, ...] = ()
    workload: Workload | None = None
    engine: Engine | None = None
    world: WorldScenario | None = None
    replay: Replay | None = None
    queue: BrokerQueue | None = None
    description: str = ""
    places: Places | None = field(default=None, compare=False, repr=False)
    """The places of the scenario's parts in its file, for error messages."""

    @property
    def service(self) -> ServiceSettings | None:
        """The configuration of the simulated queuing service; None: the scenario has none."""
        owner = self.workload or self.replay
        return None if owner is None else owner.service
