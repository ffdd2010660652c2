"""The elements of a scenario: each dataclass of `scenario.py` as an element, each field as an attribute or a child.

One table serves the XML reader, the canonical text and the overrides, so that a path is like the file:
`profile[default]/queue[D-1]/max-depth`. A test holds that `schemas/qsctl_simulation.xsd` agrees.
"""

from __future__ import annotations

from typing import Final

from qsctl.declared.values import DURATION, Value
from qsctl.eventlog.schema import LogLevel
from qsctl.profiles.ranges import BY_FIELD
from qsctl.sim.scenario import scenario as s
from qsctl.sim.scenario.forms._broker_queue import broker_queue_form
from qsctl.sim.scenario.forms._client import ABSENCE, GROUP
from qsctl.sim.scenario.forms._engine import engine_form
from qsctl.sim.scenario.forms.form import CLUSTER, EGRESS, SERVICE, SOLACE, Attribute, Child, Columns, Form
from qsctl.sim.scenario.forms.replay import REPLAY
from qsctl.sim.scenario.forms.values import (
    BIT_RATE,
    BOOLEAN,
    FINITE_DURATION,
    NAME,
    PERCENTAGE,
    PORT_RATE,
    POSITIVE_DURATION,
    PROBABILITY,
    PROFILE_NAME,
    RATE,
    REAL,
    TEXT,
    choice,
    integer,
    size,
    whole_number_of,
)
from qsctl.sim.scenario.parts.world import RandomFaults, WorldScenario

_MESSAGE_BYTES: Final = size(1, 2**31 - 1)

QUEUE = Form(
    "queue",
    s.QueueLimits,
    (
        Attribute("max-depth", "max_depth_work_units", whole_number_of("d_1_max_depth_work_units")),
        Attribute("min-msg-burst", "min_msg_burst", whole_number_of("d_1_min_msg_burst")),
        Attribute("weight", "weight", integer(1, 1_000_000), models=SOLACE),
    ),
    key="name",
    aside=("name",),
)
QUEUE_NAME: Final = choice(s.Queue)


def _read_tibco_queue(text: str) -> object:
    if text != s.TIBCO_QUEUE:
        raise ValueError(text)
    return s.Queue.D_1


TIBCO_QUEUE_NAME: Final = Value(
    f"{s.TIBCO_QUEUE}, the one queue of a TIBCO client", _read_tibco_queue, lambda _: s.TIBCO_QUEUE
)
"""The application message queue has the place of D-1 inside."""


def queue_name(model: s.Model) -> Value:
    """Return the kind of value that names a queue in a scenario of this model."""
    return TIBCO_QUEUE_NAME if model is s.Model.TIBCO else QUEUE_NAME


TCP = Form(
    "tcp",
    s.TcpSettings,
    (
        Attribute("mss", "mss_bytes", whole_number_of("tcp_mss_bytes")),
        Attribute("initial-window", "initial_window_segments", whole_number_of("tcp_initial_window_segments")),
        # From one segment, for what theory is checked with; a broker's own range begins at 16 KB.
        Attribute(
            "maximum-window",
            "max_window_bytes",
            size(BY_FIELD["tcp_mss_bytes"].maximum, BY_FIELD["tcp_max_window_kb"].maximum * s.KILOBYTE_BYTES),
        ),
        Attribute("transmit-queue", "transmit_queue_bytes", size(1)),
        Attribute("congestion-control", "congestion_control", choice(s.CongestionControl)),
        Attribute("minimum-time-out", "minimum_time_out_ns", POSITIVE_DURATION),
    ),
)
ELIDING = Form(
    "eliding",
    s.Eliding,
    (
        Attribute("enabled", "enabled", BOOLEAN),
        Attribute("delay", "delay_ns", FINITE_DURATION),
        Attribute("max-topics", "max_topics", whole_number_of("eliding_max_topics")),
    ),
    models=SOLACE,
)
PROFILE = Form(
    "profile",
    s.Profile,
    (
        Attribute("name", "name", PROFILE_NAME, required=True),
        Attribute("admission", "admission", choice(s.Admission), models=SOLACE),
        Attribute("scheduler", "scheduler", choice(s.Scheduler), models=SOLACE),
        Attribute("guaranteed-overflow", "guaranteed_overflow", choice(s.GuaranteedOverflow), models=SOLACE),
        Attribute("redelivery-delay", "redelivery_delay_ns", POSITIVE_DURATION, models=SOLACE),
        Attribute("max-subscriptions", "max_subscriptions", integer(1, unlimited=True), models=SOLACE),
    ),
    (Child("queues", (QUEUE,), many=True, mapping=True), Child("tcp", (TCP,)), Child("eliding", (ELIDING,))),
    key="name",
    aside=("file",),
    models=EGRESS,
)
PORT = Form(
    "port",
    s.Port,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("rate", "rate_bits_per_second", PORT_RATE),
        Attribute("links", "links", integer(1, 8)),
    ),
    key="name",
    models=EGRESS,
)

POISSON = Form("poisson", s.PoissonArrivals, (Attribute("rate", "rate_per_second", RATE, required=True),))
CONSTANT = Form("constant", s.ConstantArrivals, (Attribute("rate", "rate_per_second", RATE, required=True),))
ON_OFF = Form(
    "on-off",
    s.OnOffArrivals,
    (
        Attribute("rate", "rate_per_second", RATE, required=True),
        Attribute("on", "on_ns", POSITIVE_DURATION, required=True),
        Attribute("off", "off_ns", POSITIVE_DURATION, required=True),
        Attribute("fixed", "fixed", BOOLEAN),
    ),
)
MMPP = Form(
    "mmpp",
    s.MmppArrivals,
    (Attribute("cycle", "cycle", BOOLEAN),),
    columns=Columns(
        "state",
        (
            Attribute("rate", "rates_per_second", RATE, required=True),
            Attribute("mean-stay", "mean_stays_ns", POSITIVE_DURATION, required=True),
        ),
    ),
)
TRACE = Form("trace", s.TraceArrivals, (Attribute("file", "path", TEXT, required=True),))
SCHEDULE = Form(
    "schedule",
    s.ScheduleArrivals,
    (Attribute("period", "period_ns", POSITIVE_DURATION),),
    columns=Columns(
        "rate",
        (
            Attribute("at", "instants_ns", FINITE_DURATION, required=True),
            Attribute("rate", "rates_per_second", RATE, required=True),
        ),
    ),
)
ARRIVALS: Final = (POISSON, CONSTANT, ON_OFF, MMPP, TRACE, SCHEDULE)

CONSTANT_SIZE = Form("size", s.ConstantSize, (Attribute("bytes", "size_bytes", _MESSAGE_BYTES, required=True),))
UNIFORM_SIZE = Form(
    "uniform-size",
    s.UniformSize,
    (
        Attribute("minimum", "minimum_bytes", _MESSAGE_BYTES, required=True),
        Attribute("maximum", "maximum_bytes", _MESSAGE_BYTES, required=True),
    ),
)
LOGNORMAL_SIZE = Form(
    "lognormal-size",
    s.LognormalSize,
    (
        Attribute("median", "median_bytes", _MESSAGE_BYTES, required=True),
        Attribute("sigma", "sigma", REAL, required=True),
        Attribute("maximum", "maximum_bytes", _MESSAGE_BYTES),
    ),
)
EXPONENTIAL_SIZE = Form(
    "exponential-size",
    s.ExponentialSize,
    (
        Attribute("mean", "mean_bytes", _MESSAGE_BYTES, required=True),
        Attribute("maximum", "maximum_bytes", _MESSAGE_BYTES),
    ),
)
PARETO_SIZE = Form(
    "pareto-size",
    s.ParetoSize,
    (
        Attribute("minimum", "minimum_bytes", _MESSAGE_BYTES, required=True),
        Attribute("shape", "shape", REAL, required=True),
        Attribute("maximum", "maximum_bytes", _MESSAGE_BYTES),
    ),
)
MIXED_SIZE = Form(
    "mixed-size",
    s.MixedSize,
    columns=Columns(
        "choice",
        (
            Attribute("bytes", "sizes_bytes", _MESSAGE_BYTES, required=True),
            Attribute("weight", "weights", REAL, required=True),
        ),
    ),
)
SIZES: Final = (CONSTANT_SIZE, UNIFORM_SIZE, LOGNORMAL_SIZE, EXPONENTIAL_SIZE, PARETO_SIZE, MIXED_SIZE)

TRAFFIC = Form(
    "traffic",
    s.Traffic,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("to", "to", NAME, required=True),
        Attribute("queue", "queue", QUEUE_NAME, tibco_value=TIBCO_QUEUE_NAME),
        Attribute("topics", "topics", integer(1, 10_000_000)),
        Attribute("topic-skew", "topic_skew", REAL),
        Attribute("fan-out", "fan_out", BOOLEAN),
        Attribute("start", "start_ns", FINITE_DURATION),
        Attribute("stop", "stop_ns", DURATION),
        Attribute("discard-eligible", "discard_eligible", BOOLEAN, models=SOLACE),
        Attribute("eliding-eligible", "eliding_eligible", BOOLEAN, models=SOLACE),
        Attribute("shared", "shared", BOOLEAN, models=SOLACE),
        Attribute("priority", "priority", integer(0, 9), models=SOLACE),
        Attribute("time-to-live", "time_to_live_ns", DURATION, models=SOLACE),
        Attribute("dmq-eligible", "dead_message_eligible", BOOLEAN, models=SOLACE),
    ),
    (Child("arrivals", ARRIVALS, required=True), Child("size", SIZES)),
    key="name",
    aside=("delivery", "cos"),
    models=EGRESS,
)
FLOW_ATTRIBUTES = (
    Attribute("window", "window_messages", integer(1, 65_535)),
    Attribute("acknowledge-delay", "acknowledge_delay_ns", DURATION),
    Attribute("library-threshold", "library_threshold_percent", integer(0, 100)),
    Attribute("library-timer", "library_timer_ns", POSITIVE_DURATION),
)
"""Of a flow, whether an endpoint or a durable queue sends over it."""
SPOOL_ATTRIBUTES = (
    Attribute("unacknowledged-limit", "unacknowledged_limit_messages", integer(1, unlimited=True)),
    Attribute("max-messages", "max_messages", integer(1, unlimited=True)),
    Attribute("max-spool-usage", "max_spool_usage_bytes", size(1, unlimited=True)),
    Attribute("low-priority-limit", "low_priority_limit_messages", integer(0, unlimited=True)),
)
"""Of what keeps guaranteed messages: an endpoint or a durable queue."""
DURABLE_ATTRIBUTES = (
    Attribute("access", "access", choice(s.Access)),
    Attribute("respect-message-priority", "respects_priority", BOOLEAN),
    Attribute("partitions", "partitions", integer(0, 1000)),
    Attribute("rebalance-delay", "rebalance_delay_ns", FINITE_DURATION),
    Attribute("max-handoff-time", "max_handoff_ns", FINITE_DURATION),
    Attribute("respect-ttl", "respects_time_to_live", BOOLEAN),
    Attribute("max-ttl", "max_time_to_live_ns", DURATION),
    Attribute("max-redelivery", "max_redelivery", integer(1, 255, unlimited=True)),
    Attribute("dead-message-queue", "dead_message_queue", NAME),
)
"""Of a durable queue alone."""
NEGATIVE = (Attribute("fails", "fails", PROBABILITY), Attribute("rejects", "rejects", PROBABILITY))
"""An application's negative acknowledgments, of flows to durable queues alone."""
ENDPOINT = Form(
    "endpoint",
    s.Endpoint,
    (
        Attribute("to", "to", NAME, required=True),
        Attribute("flows", "flows", integer(1, BY_FIELD["max_egress_flows"].maximum)),
        *SPOOL_ATTRIBUTES,
        *FLOW_ATTRIBUTES,
    ),
    key="to",
    models=SOLACE,
    elsewhere=dict.fromkeys(
        [each.name for each in (*DURABLE_ATTRIBUTES, *NEGATIVE)],
        "give the group a <flow> of a <durable-queue> instead of an <endpoint>",
    ),
)
FLOW = Form(
    "flow",
    s.Flow,
    (Attribute("group", "group", NAME, required=True), *FLOW_ATTRIBUTES, *NEGATIVE),
    key="group",
)
DURABLE_QUEUE = Form(
    "durable-queue",
    s.DurableQueue,
    (Attribute("name", "name", NAME, required=True), *SPOOL_ATTRIBUTES, *DURABLE_ATTRIBUTES),
    (Child("flows", (FLOW,), many=True),),
    key="name",
    models=SOLACE,
)
BROKER = Form(
    "broker",
    s.Broker,
    (
        Attribute("egress-buffer", "egress_buffer_bytes", size()),
        Attribute("load-factor-set", "load_factor_set_percent", integer(1, 100)),
        Attribute("load-factor-clear", "load_factor_clear_percent", integer(0, 100)),
        Attribute("slow-penalty", "slow_penalty_percent", PERCENTAGE),
        Attribute("slow-threshold", "slow_threshold_percent", PERCENTAGE),
        Attribute("slow-disconnect", "slow_disconnect", BOOLEAN),
        Attribute("slow-reconnect", "slow_reconnect_ns", DURATION),
        Attribute("ingress-buffer", "ingress_buffer_bytes", size()),
        Attribute("ingress-rate", "ingress_rate_bits_per_second", BIT_RATE),
        Attribute("max-message", "max_message_bytes", size(1)),
        Attribute("unacknowledged-limit", "unacknowledged_limit_messages", integer(1, unlimited=True)),
        Attribute("large-message", "large_message_bytes", size(1)),
    ),
    models=SOLACE,
)
CHANGE = Form(
    "change",
    s.TimedChange,
    (
        Attribute("at", "at_ns", FINITE_DURATION, required=True),
        Attribute("path", "path", TEXT, required=True),
        Attribute("value", "value", TEXT, required=True),
    ),
    models=EGRESS,
)
PRODUCER = Form(
    "producer",
    s.WorkloadProducer,
    (
        Attribute("topic", "topic_name", NAME, required=True),
        Attribute("count", "count", integer(1, 100_000)),
        Attribute("lifespan", "lifespan_ns", DURATION),
        Attribute("window", "window_samples", integer(1, unlimited=True)),
    ),
    (Child("arrivals", ARRIVALS, required=True), Child("size", SIZES)),
    key="topic",
)
CONSUMER = Form(
    "consumer",
    s.WorkloadConsumer,
    (
        Attribute("queue", "queue", NAME, required=True),
        Attribute("count", "count", integer(1, 100_000)),
        Attribute("rejects", "rejects", PROBABILITY),
        Attribute("silent", "silent", PROBABILITY),
    ),
    (Child("service", (POISSON, CONSTANT), required=True), Child("absences", (ABSENCE,), many=True)),
    key="queue",
)
WORKLOAD = Form(
    "workload",
    s.Workload,
    (Attribute("delay", "delay_ns", FINITE_DURATION), Attribute("sync", "sync_ns", FINITE_DURATION)),
    (Child("producers", (PRODUCER,), many=True), Child("consumers", (CONSUMER,), many=True)),
    foreign=("service",),
    models=SERVICE,
)

RANDOM_FAULTS = Form(
    "random-faults",
    RandomFaults,
    (
        Attribute("every", "every_ns", DURATION),
        Attribute("crashes", "crashes", REAL),
        Attribute("cuts", "cuts", REAL),
        Attribute("pauses", "pauses", REAL),
        Attribute("disks", "disks", REAL),
        Attribute("lost-disks", "lost_disks", REAL),
        Attribute("clocks", "clocks", REAL),
        Attribute("programs", "programs", REAL),
        Attribute("administration", "administration", REAL),
        Attribute("power-cuts", "power_cuts", REAL),
        Attribute("replacements", "replacements", REAL),
        Attribute("majorities", "majorities", REAL),
        Attribute("destroyed", "destroyed", REAL),
        Attribute("strangers", "strangers", REAL),
        Attribute("restarts", "restarts", REAL),
        Attribute("upgrades", "upgrades", REAL),
        Attribute("members", "members", REAL),
        Attribute("elections", "elections", REAL),
    ),
)
WORLD = Form(
    "world",
    WorldScenario,
    (
        Attribute("instances", "instances", integer(0, 99)),
        Attribute("master-timeout", "master_timeout_ns", FINITE_DURATION),
        Attribute("delay-variation", "delay_variation_ns", FINITE_DURATION),
        Attribute("loss", "loss", PROBABILITY),
        Attribute("duplication", "duplication", PROBABILITY),
        Attribute("bandwidth", "bandwidth_bits_per_second", BIT_RATE),
        Attribute("lease", "lease_ns", POSITIVE_DURATION),
        Attribute("write-again", "write_again_ns", POSITIVE_DURATION),
        Attribute("persistence", "persistence", PROBABILITY),
        Attribute("relayed", "relayed", PROBABILITY),
        Attribute("preferred-instance", "preferred_instance", integer(0, 99)),
        Attribute("witness-instance", "witness_instance", integer(0, 99)),
        Attribute("replicates-configuration", "replicates_configuration", BOOLEAN),
        Attribute("compact-records", "compact_records", integer(0, 1_000_000)),
        Attribute("recovery", "recovery_ns", POSITIVE_DURATION),
        Attribute("schedule", "schedule", TEXT),
    ),
    (Child("faults", (RANDOM_FAULTS,)),),
    models=CLUSTER,
)

ENGINE = engine_form(ARRIVALS, SIZES, (POISSON, CONSTANT))
BROKER_QUEUE = broker_queue_form(ARRIVALS, SIZES)

SCENARIO = Form(
    "scenario",
    s.Scenario,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("model", "model", choice(s.Model)),
        Attribute("seed", "seed", integer(0, 2**63 - 1)),
        Attribute("horizon", "horizon_ns", POSITIVE_DURATION),
        Attribute("warm-up", "warm_up_ns", FINITE_DURATION),
        Attribute("replications", "replications", integer(1, 1_000_000)),
        Attribute("log-level", "log_level", choice(LogLevel)),
    ),
    (
        Child("ports", (PORT,), many=True),
        Child("profiles", (PROFILE,), many=True),
        Child("groups", (GROUP,), many=True),
        Child("traffic", (TRAFFIC,), many=True),
        Child("endpoints", (ENDPOINT,), many=True),
        Child("durable_queues", (DURABLE_QUEUE,), many=True),
        Child("broker", (BROKER,)),
        Child("changes", (CHANGE,), many=True),
        Child("workload", (WORKLOAD,)),
        Child("engine", (ENGINE,)),
        Child("world", (WORLD,)),
        Child("replay", (REPLAY,)),
        Child("queue", (BROKER_QUEUE,)),
    ),
    foreign=("description",),
)
