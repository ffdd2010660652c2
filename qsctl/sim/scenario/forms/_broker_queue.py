"""The XML elements that describe a queue of any broker; `elements.py` puts them into the table."""

from __future__ import annotations

from typing import Final

from qsctl.declared.values import DURATION
from qsctl.sim.scenario import scenario as s
from qsctl.sim.scenario.forms.form import MESSAGE_QUEUE, Attribute, Child, Form
from qsctl.sim.scenario.forms.values import (
    FINITE_DURATION,
    NAME,
    POSITIVE_DURATION,
    POSITIVE_REAL,
    PROBABILITY,
    REAL,
    choice,
    integer,
    size,
)
from qsctl.sim.scenario.parts import broker_queue as b
from qsctl.sim.scenario.parts.work_time import BACK_OFF, OPTIONAL_WORK, TIMEOUTS, WORK

KEYS_MAX: Final = 1_000_000
PRIORITIES_MAX: Final = 32
PARTITIONS_MAX: Final = 10_000
CONSUMERS_MAX: Final = 10_000
BACKLOG_MAX: Final = 10_000_000

_INTERVAL: Final = (
    Attribute("start", "start_ns", FINITE_DURATION, required=True),
    Attribute("duration", "duration_ns", DURATION, required=True),
    Attribute("every", "every_ns", DURATION),
)
CLOSED = Form(
    "closed",
    b.ClosedArrivals,
    (
        Attribute("sources", "sources", integer(1, 100_000), required=True),
        Attribute("think", "think", WORK, required=True),
    ),
)
WORK_CLASS = Form(
    "class",
    b.WorkClass,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("work", "work", WORK, required=True),
        Attribute("weight", "weight", REAL),
        Attribute("priority", "priority", integer(0, PRIORITIES_MAX - 1)),
        Attribute("fails", "fails", PROBABILITY),
        Attribute("poison", "poison", PROBABILITY),
        Attribute("time-to-live", "time_to_live_ns", DURATION),
    ),
    key="name",
)
CLASS_WORK = Form(
    "work",
    b.ClassWork,
    (Attribute("class", "work_class", NAME, required=True), Attribute("time", "time", WORK, required=True)),
    key="class",
)
WORKERS = Form(
    "consumer",
    b.QueueWorkers,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("count", "count", integer(0, CONSUMERS_MAX)),
        Attribute("servers", "servers", integer(1, 1000)),
        Attribute("prefetch", "prefetch", integer(1, 1_000_000, unlimited=True)),
        Attribute("receive", "receive", choice(b.ReceiveMode)),
        Attribute("batch", "batch", integer(1, 10_000)),
        Attribute("wait", "wait_ns", FINITE_DURATION),
        Attribute("poll-interval", "poll_interval_ns", FINITE_DURATION),
        Attribute("round-trip", "round_trip_ns", FINITE_DURATION),
        Attribute("speed", "speed", POSITIVE_REAL),
        Attribute("acknowledge-batch", "acknowledge_batch", integer(1, 10_000)),
        Attribute("acknowledge-interval", "acknowledge_interval_ns", POSITIVE_DURATION),
    ),
    (
        Child("works", (CLASS_WORK,), many=True),
        Child("pauses", (Form("pause", s.ClientInterval, _INTERVAL),), many=True),
        Child("absences", (Form("absence", s.ClientInterval, _INTERVAL),), many=True),
    ),
    key="name",
)
VISIBILITY = Form(
    "visibility",
    b.VisibilityRule,
    (
        Attribute("timeout", "timeouts_ns", TIMEOUTS, required=True),
        Attribute("heartbeat", "heartbeat_ns", FINITE_DURATION),
        Attribute("late", "late", choice(b.LateAcknowledgmentRule)),
    ),
)
RETRY = Form(
    "retry",
    b.RetryRule,
    (
        Attribute("max-deliveries", "max_deliveries", integer(1, 1_000_000, unlimited=True)),
        Attribute("to", "to", choice(b.ReturnPlace)),
        Attribute("back-off", "back_off", BACK_OFF),
        Attribute("jitter", "jitter", PROBABILITY),
        Attribute("on-failure", "on_failure", choice(b.FailureReport)),
    ),
)
LIMITS = Form(
    "limits",
    b.LengthLimits,
    (
        Attribute("max-messages", "max_messages", integer(1, 1_000_000_000, unlimited=True)),
        Attribute("max-bytes", "max_bytes", size(1, unlimited=True)),
        Attribute("counts", "counts", choice(b.LimitScope)),
        Attribute("overflow", "overflow", choice(b.OverflowRule)),
    ),
)
DEAD_LETTERS = Form(
    "dead-letters",
    b.DeadLetterLimits,
    (
        Attribute("name", "name", NAME),
        Attribute("max-messages", "max_messages", integer(1, 1_000_000_000, unlimited=True)),
        Attribute("max-bytes", "max_bytes", size(1, unlimited=True)),
        Attribute("time-to-live", "time_to_live_ns", DURATION),
        Attribute("overflow", "overflow", choice(b.DeadOverflow)),
    ),
)
WORK_OUTAGE = Form(
    "outage",
    b.WorkOutage,
    (
        *_INTERVAL,
        Attribute("class", "work_class", NAME),
        Attribute("work", "work", OPTIONAL_WORK),
    ),
)
AUTOSCALING = Form(
    "autoscaling",
    b.AutoscalingRule,
    (
        Attribute("consumer", "workers", NAME, required=True),
        Attribute("messages-per-consumer", "messages_per_consumer", integer(1, 1_000_000_000), required=True),
        Attribute("maximum", "maximum", integer(1, CONSUMERS_MAX), required=True),
        Attribute("minimum", "minimum", integer(0, CONSUMERS_MAX)),
        Attribute("every", "every_ns", POSITIVE_DURATION),
        Attribute("start-up", "start_up", WORK),
        Attribute("scale-in-delay", "scale_in_delay_ns", FINITE_DURATION),
    ),
    key="consumer",
)
PRICE = Form(
    "price",
    b.WorkPrices,
    (
        Attribute("million-requests", "million_requests", REAL),
        Attribute("worker-hour", "worker_hour", REAL),
    ),
)
OBJECTIVE = Form("objective", b.DoneObjective, (Attribute("done", "done_ns", POSITIVE_DURATION, required=True),))


def broker_queue_form(arrivals: tuple[Form, ...], sizes: tuple[Form, ...]) -> Form:
    """Return the form of the element `<queue>`, with the forms of arrivals and sizes that all models share."""
    publisher = Form(
        "publisher",
        b.QueuePublisher,
        (
            Attribute("name", "name", NAME, required=True),
            Attribute("class", "work_class", NAME),
            Attribute("batch", "batch", integer(1, 100_000)),
            Attribute("keys", "keys", integer(1, KEYS_MAX)),
            Attribute("key-skew", "key_skew", REAL),
            Attribute("time-to-live", "time_to_live_ns", DURATION),
            Attribute("start", "start_ns", FINITE_DURATION),
            Attribute("stop", "stop_ns", DURATION),
            Attribute("on-refusal", "on_refusal", choice(b.RefusalReaction)),
            Attribute("retry-after", "retry_after_ns", POSITIVE_DURATION),
            Attribute("retries", "retries", integer(0, 1_000_000, unlimited=True)),
        ),
        (Child("arrivals", (*arrivals, CLOSED), required=True), Child("size", sizes)),
        key="name",
    )
    backlog = Form(
        "backlog",
        b.QueueBacklog,
        (
            Attribute("messages", "messages", integer(1, BACKLOG_MAX), required=True),
            Attribute("class", "work_class", NAME),
            Attribute("keys", "keys", integer(1, KEYS_MAX)),
            Attribute("key-skew", "key_skew", REAL),
        ),
        (Child("size", sizes),),
    )
    return Form(
        "queue",
        b.BrokerQueue,
        (
            Attribute("name", "name", NAME, required=True),
            Attribute("order", "order", choice(b.DeliveryOrder)),
            Attribute("priorities", "priorities", integer(1, PRIORITIES_MAX)),
            Attribute("partitions", "partitions", integer(0, PARTITIONS_MAX)),
            Attribute("access", "access", choice(b.QueueAccess)),
            Attribute("rebalance", "rebalance_ns", FINITE_DURATION),
            Attribute("max-unacknowledged", "max_unacknowledged", integer(1, unlimited=True)),
            Attribute("delay", "delay_ns", FINITE_DURATION),
            Attribute("time-to-live", "time_to_live_ns", DURATION),
            Attribute("expires", "expires", choice(b.ExpiryPlace)),
            Attribute("connection-loss", "connection_loss", choice(b.ConnectionLoss)),
        ),
        (
            Child("publishers", (publisher,), many=True, required=True),
            Child("classes", (WORK_CLASS,), many=True, required=True),
            Child("workers", (WORKERS,), many=True, required=True),
            Child("backlog", (backlog,)),
            Child("visibility", (VISIBILITY,)),
            Child("retry", (RETRY,)),
            Child("limits", (LIMITS,)),
            Child("dead_letters", (DEAD_LETTERS,)),
            Child("outages", (WORK_OUTAGE,), many=True),
            Child("autoscaling", (AUTOSCALING,), many=True),
            Child("prices", (PRICE,)),
            Child("objective", (OBJECTIVE,)),
        ),
        models=MESSAGE_QUEUE,
    )
