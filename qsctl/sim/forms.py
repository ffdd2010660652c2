"""How a scenario is written: each dataclass of `scenario.py` as an element, each field as an attribute or a child.

One table serves the XML reader, the canonical text and the overrides, so that a path is what the file shows:
`profile[default]/queue[D-1]/max-depth`. A test holds that `schemas/qsctl_simulation.xsd` says the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qsctl.eventlog.schema import LogLevel
from qsctl.sim import scenario as s
from qsctl.sim.values import (
    BIT_RATE,
    BOOLEAN,
    DURATION,
    FINITE_DURATION,
    NAME,
    PERCENTAGE,
    PORT_RATE,
    POSITIVE_DURATION,
    PROBABILITY,
    RATE,
    REAL,
    TEXT,
    Value,
    choice,
    integer,
    size,
)

DEPTH_MAX_WORK_UNITS: Final = 262_144
"""The largest max-depth and min-msg-burst (seed 004, "Configuring Max Egress Queue Depths")."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An XML attribute and the field that it sets."""

    name: str
    field: str
    value: Value
    required: bool = False


@dataclass(frozen=True, slots=True)
class Child:
    """A field that holds other elements: one, or with `many` a tuple; `mapping`: a dict by the child's key."""

    field: str
    forms: tuple[Form, ...]
    many: bool = False
    mapping: bool = False
    required: bool = False


@dataclass(frozen=True, slots=True)
class Columns:
    """Fields that are tuples of equal length, written as one element for each index."""

    element: str
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """An element: the dataclass it makes, its attributes and children.

    `key` is the attribute that `element[key]` of a path names; without one, elements are numbered from 1. `aside`
    names the attributes and `foreign` the child elements that the XML reader treats by itself.
    """

    element: str
    type: type[object]
    attributes: tuple[Attribute, ...] = ()
    children: tuple[Child, ...] = ()
    columns: Columns | None = None
    key: str = ""
    aside: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of this name."""
        return next((each for each in self.attributes if each.name == name), None)

    def child(self, element: str) -> tuple[Child, Form] | None:
        """The child whose element has this name."""
        for child in self.children:
            for form in child.forms:
                if form.element == element:
                    return child, form
        return None


_POSITIVE: Final = integer(1)
_MESSAGE_BYTES: Final = size(1, 2**31 - 1)

QUEUE = Form(
    "queue",
    s.QueueLimits,
    (
        Attribute("max-depth", "max_depth_work_units", integer(2, DEPTH_MAX_WORK_UNITS)),
        Attribute("min-msg-burst", "min_msg_burst", integer(0, DEPTH_MAX_WORK_UNITS)),
        Attribute("weight", "weight", integer(1, 1_000_000)),
    ),
    key="name",
    aside=("name",),
)
QUEUE_NAME: Final = choice(s.Queue, egress=s.Queue.D_1)
"""The queue's name; `egress` is the one queue of a TIBCO profile, written as D-1 inside."""

TCP = Form(
    "tcp",
    s.TcpSettings,
    (
        Attribute("mss", "mss_bytes", integer(256, 1460)),
        Attribute("initial-window", "initial_window_segments", integer(2, 7826)),
        Attribute("maximum-window", "max_window_bytes", size(1460, 65_536 * 1024)),
        Attribute("transmit-queue", "transmit_queue_bytes", size(1)),
    ),
)
ELIDING = Form(
    "eliding",
    s.Eliding,
    (
        Attribute("enabled", "enabled", BOOLEAN),
        Attribute("delay", "delay_ns", FINITE_DURATION),
        Attribute("max-topics", "max_topics", integer(1, 32_000)),
    ),
)
PROFILE = Form(
    "profile",
    s.Profile,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("admission", "admission", choice(s.Admission)),
        Attribute("scheduler", "scheduler", choice(s.Scheduler)),
        Attribute("guaranteed-overflow", "guaranteed_overflow", choice(s.GuaranteedOverflow)),
        Attribute("redelivery-delay", "redelivery_delay_ns", POSITIVE_DURATION),
    ),
    (Child("queues", (QUEUE,), many=True, mapping=True), Child("tcp", (TCP,)), Child("eliding", (ELIDING,))),
    key="name",
    aside=("file",),
)
PORT = Form(
    "port",
    s.Port,
    (Attribute("name", "name", NAME, required=True), Attribute("rate", "rate_bits_per_second", PORT_RATE)),
    key="name",
)

_INTERVAL: Final = (
    Attribute("start", "start_ns", FINITE_DURATION, required=True),
    Attribute("duration", "duration_ns", DURATION, required=True),
    Attribute("every", "every_ns", DURATION),
)
PAUSE = Form("pause", s.Interval, _INTERVAL)
ABSENCE = Form("absence", s.Interval, _INTERVAL)

GROUP = Form(
    "group",
    s.ClientGroup,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("port", "port", NAME, required=True),
        Attribute("profile", "profile", NAME, required=True),
        Attribute("count", "count", integer(1, 1_000_000)),
        Attribute("round-trip", "round_trip_ns", FINITE_DURATION),
        Attribute("link-rate", "link_rate_bits_per_second", BIT_RATE),
        Attribute("loss", "loss_probability", PROBABILITY),
        Attribute("reading-delay", "reading_delay_ns", FINITE_DURATION),
    ),
    (Child("pauses", (PAUSE,), many=True), Child("absences", (ABSENCE,), many=True)),
    key="name",
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
    columns=Columns(
        "state",
        (
            Attribute("rate", "rates_per_second", RATE, required=True),
            Attribute("mean-stay", "mean_stays_ns", POSITIVE_DURATION, required=True),
        ),
    ),
)
TRACE = Form("trace", s.TraceArrivals, (Attribute("file", "path", TEXT, required=True),))
ARRIVALS: Final = (POISSON, CONSTANT, ON_OFF, MMPP, TRACE)

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
SIZES: Final = (CONSTANT_SIZE, UNIFORM_SIZE, LOGNORMAL_SIZE, MIXED_SIZE)

TRAFFIC = Form(
    "traffic",
    s.Traffic,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("to", "to", NAME, required=True),
        Attribute("queue", "queue", QUEUE_NAME),
        Attribute("topics", "topics", integer(1, 10_000_000)),
        Attribute("topic-skew", "topic_skew", REAL),
        Attribute("fan-out", "fan_out", BOOLEAN),
        Attribute("start", "start_ns", FINITE_DURATION),
        Attribute("stop", "stop_ns", DURATION),
        Attribute("discard-eligible", "discard_eligible", BOOLEAN),
    ),
    (Child("arrivals", ARRIVALS, required=True), Child("size", SIZES)),
    key="name",
    aside=("delivery", "cos"),
)
ENDPOINT = Form(
    "endpoint",
    s.Endpoint,
    (
        Attribute("to", "to", NAME, required=True),
        Attribute("flows", "flows", integer(1, 200_000)),
        Attribute("window", "window_messages", integer(1, 65_535)),
        Attribute("max-messages", "max_messages", integer(1, unlimited=True)),
        Attribute("low-priority-limit", "low_priority_limit_messages", integer(0, unlimited=True)),
        Attribute("acknowledge-delay", "acknowledge_delay_ns", DURATION),
    ),
    key="to",
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
        Attribute("slow-reconnect", "slow_reconnect_ns", DURATION),
        Attribute("ingress-buffer", "ingress_buffer_bytes", size()),
        Attribute("ingress-rate", "ingress_rate_bits_per_second", BIT_RATE),
        Attribute("max-message", "max_message_bytes", size(1)),
    ),
)
CHANGE = Form(
    "change",
    s.TimedChange,
    (
        Attribute("at", "at_ns", FINITE_DURATION, required=True),
        Attribute("path", "path", TEXT, required=True),
        Attribute("value", "value", TEXT, required=True),
    ),
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
    (Attribute("delay", "delay_ns", FINITE_DURATION),),
    (Child("producers", (PRODUCER,), many=True), Child("consumers", (CONSUMER,), many=True)),
    foreign=("service",),
)

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
        Child("broker", (BROKER,)),
        Child("changes", (CHANGE,), many=True),
        Child("workload", (WORKLOAD,)),
    ),
    foreign=("description",),
)
