"""A queue of any broker, its publishers, consumers and dead letters, as a scenario states them.

What each setting does, with the brokers' own documents for it, is in `sim/broker_queue/__init__.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from qsctl.instant import INFINITE_NS, MINUTE_NS, SECOND_NS, Nanoseconds
from qsctl.sim.scenario.parts.client import ClientInterval
from qsctl.sim.scenario.parts.traffic import Arrivals, ConstantSize, Size
from qsctl.sim.scenario.parts.work_time import NO_WORK, BackOff, WorkTime


class DeliveryOrder(StrEnum):
    """In which order ready messages are delivered."""

    FIFO = "fifo"
    PRIORITY = "priority"
    KEY = "key"
    """One message of a key, or partition, at a time."""


class QueueAccess(StrEnum):
    """The consumers that receive messages."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    """One of them; the others are on standby."""


class ExpiryPlace(StrEnum):
    """The place in the queue where an expired message is noticed."""

    HEAD = "head"
    ANYWHERE = "anywhere"


class ConnectionLoss(StrEnum):
    """The time at which unacknowledged messages of a consumer return after it left."""

    RETURN = "return"
    """At once."""
    TIME_OUT = "time-out"
    """When its visibility time-out is over."""


class RefusalReaction(StrEnum):
    """The reaction of a publisher to a refused message."""

    LOSE = "lose"
    RETRY = "retry"
    BLOCK = "block"
    """It waits, and all its later messages behind it, until there is room."""


class ReceiveMode(StrEnum):
    """The way in which a consumer receives messages."""

    PUSH = "push"
    POLL = "poll"


class LateAcknowledgmentRule(StrEnum):
    """The effect of an acknowledgment after the visibility time-out."""

    ACCEPTED = "accepted"
    UNTIL_REDELIVERED = "until-redelivered"
    IGNORED = "ignored"


class ReturnPlace(StrEnum):
    """The place of a message that was delivered and returns."""

    HEAD = "head"
    """Before all that were never delivered, behind those that came back before."""
    TAIL = "tail"


class FailureReport(StrEnum):
    """The answer of a consumer for a message on which its work failed."""

    REJECT = "reject"
    SILENT = "silent"
    """Nothing: the visibility time-out brings it back."""


class LimitScope(StrEnum):
    """The messages that the limits of a queue count."""

    ALL = "all"
    READY = "ready"
    """Those that are not with a consumer."""


class OverflowRule(StrEnum):
    """The treatment of a message for which the limits leave no room, or of the one dropped instead."""

    REJECT = "reject"
    REJECT_DEAD_LETTER = "reject-dead-letter"
    """It is refused, and a dead letter besides."""
    DROP_HEAD = "drop-head"
    """Those to be delivered next are dropped until it has room."""
    DROP_TAIL = "drop-tail"
    """It is dropped, and its publisher learns nothing."""
    BLOCK = "block"
    """Publishers wait, whatever their `on-refusal`."""


class DeadOverflow(StrEnum):
    """The dead letter that is dropped where there is no room for another one."""

    DROP_HEAD = "drop-head"
    DROP_TAIL = "drop-tail"


@dataclass(frozen=True, slots=True)
class ClosedArrivals:
    """Sources that each publish, wait until the message is done or lost, think, and publish again."""

    sources: int
    think: WorkTime


QueueArrivals: TypeAlias = Arrivals | ClosedArrivals


@dataclass(frozen=True, slots=True)
class QueuePublisher:
    """A stream of messages. Without a class, each message has one by the classes' weights."""

    name: str
    arrivals: QueueArrivals
    size: Size = ConstantSize()
    work_class: str = ""
    batch: int = 1
    """Messages at each arrival; those of one are alike in size and key."""
    keys: int = 1
    key_skew: float = 0.0
    """Zipf exponent of the keys' popularity; 0 is uniform."""
    time_to_live_ns: Nanoseconds = INFINITE_NS
    start_ns: Nanoseconds = 0
    stop_ns: Nanoseconds = INFINITE_NS
    on_refusal: RefusalReaction = RefusalReaction.LOSE
    retry_after_ns: Nanoseconds = SECOND_NS
    retries: int = -1
    """Number of attempts for a refused message; -1: until it is accepted."""


@dataclass(frozen=True, slots=True)
class QueueBacklog:
    """Messages that are in the queue when the run begins."""

    messages: int
    size: Size = ConstantSize()
    work_class: str = ""
    keys: int = 1
    key_skew: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkClass:
    """Messages alike in what they need."""

    name: str
    work: WorkTime
    weight: float = 1.0
    priority: int = 0
    fails: float = 0.0
    """Probability that an attempt fails."""
    poison: float = 0.0
    """Probability that a message is one on which each attempt fails."""
    time_to_live_ns: Nanoseconds = INFINITE_NS


@dataclass(frozen=True, slots=True)
class ClassWork:
    """The work of some consumers for the messages of a class."""

    work_class: str
    time: WorkTime


@dataclass(frozen=True, slots=True)
class QueueWorkers:
    """`count` consumers alike, each with `servers` that work side by side.

    `pauses`: they begin no work. `absences`: they are gone, with what they worked on.
    """

    name: str
    count: int = 1
    servers: int = 1
    prefetch: int = 1
    """Messages that one consumer has received and not acknowledged; -1: no limit."""
    receive: ReceiveMode = ReceiveMode.PUSH
    batch: int = 1
    """Messages that an answer to a poll has at most."""
    wait_ns: Nanoseconds = 20 * SECOND_NS
    """Time that a poll waits at the broker for a message."""
    poll_interval_ns: Nanoseconds = 0
    """After an empty answer."""
    round_trip_ns: Nanoseconds = 0
    speed: float = 1.0
    acknowledge_batch: int = 1
    acknowledge_interval_ns: Nanoseconds = SECOND_NS
    works: tuple[ClassWork, ...] = ()
    pauses: tuple[ClientInterval, ...] = ()
    absences: tuple[ClientInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class VisibilityRule:
    """The time at which a delivered message without an answer returns."""

    timeouts_ns: tuple[Nanoseconds, ...]
    """Of the first delivery, the second and so on; the last one of all later ones."""
    heartbeat_ns: Nanoseconds = 0
    """While it works on a message, a consumer extends the time-out this often; 0: never."""
    late: LateAcknowledgmentRule = LateAcknowledgmentRule.UNTIL_REDELIVERED


@dataclass(frozen=True, slots=True)
class RetryRule:
    """The rule for a message that returns."""

    max_deliveries: int = -1
    to: ReturnPlace = ReturnPlace.HEAD
    back_off: BackOff = BackOff()
    """Before a rejected message is ready again."""
    jitter: float = 0.0
    """Part of a back-off by which it is shortened at most."""
    on_failure: FailureReport = FailureReport.REJECT


@dataclass(frozen=True, slots=True)
class LengthLimits:
    """The capacity of a queue; -1: no limit."""

    max_messages: int = -1
    max_bytes: int = -1
    counts: LimitScope = LimitScope.ALL
    overflow: OverflowRule = OverflowRule.REJECT


@dataclass(frozen=True, slots=True)
class DeadLetterLimits:
    """The queue of dead letters."""

    name: str = ""
    """Empty: the queue's name and `.dead`."""
    max_messages: int = -1
    max_bytes: int = -1
    time_to_live_ns: Nanoseconds = INFINITE_NS
    overflow: DeadOverflow = DeadOverflow.DROP_HEAD


@dataclass(frozen=True, slots=True)
class WorkOutage:
    """An outage of a service that the work of a class needs: attempts that begin meanwhile fail."""

    start_ns: Nanoseconds
    duration_ns: Nanoseconds
    every_ns: Nanoseconds = INFINITE_NS
    work_class: str = ""
    """Empty: of every class."""
    work: WorkTime | None = None
    """Duration of such an attempt; None: as usual."""


@dataclass(frozen=True, slots=True)
class AutoscalingRule:
    """The number of some consumers, by the messages in the queue."""

    workers: str
    messages_per_consumer: int
    maximum: int
    minimum: int = 1
    every_ns: Nanoseconds = 30 * SECOND_NS
    start_up: WorkTime = NO_WORK
    scale_in_delay_ns: Nanoseconds = 5 * MINUTE_NS
    """A consumer ends only when for so long no more were wanted."""


@dataclass(frozen=True, slots=True)
class WorkPrices:
    """The prices, in any currency."""

    million_requests: float = 0.0
    worker_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class DoneObjective:
    """Within which time a message shall be done."""

    done_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class BrokerQueue:
    """A queue."""

    name: str
    publishers: tuple[QueuePublisher, ...]
    classes: tuple[WorkClass, ...]
    workers: tuple[QueueWorkers, ...]
    order: DeliveryOrder = DeliveryOrder.FIFO
    priorities: int = 10
    partitions: int = 0
    """0: each key by itself, to any consumer."""
    access: QueueAccess = QueueAccess.SHARED
    rebalance_ns: Nanoseconds = 0
    """After a consumer came or left nothing is delivered for so long: of partitions and exclusive consumers."""
    max_unacknowledged: int = -1
    delay_ns: Nanoseconds = 0
    """Before an accepted message is ready."""
    time_to_live_ns: Nanoseconds = INFINITE_NS
    expires: ExpiryPlace = ExpiryPlace.ANYWHERE
    connection_loss: ConnectionLoss = ConnectionLoss.RETURN
    backlog: QueueBacklog | None = None
    visibility: VisibilityRule | None = None
    retry: RetryRule = RetryRule()
    limits: LengthLimits = LengthLimits()
    dead_letters: DeadLetterLimits | None = None
    outages: tuple[WorkOutage, ...] = ()
    autoscaling: tuple[AutoscalingRule, ...] = ()
    prices: WorkPrices = WorkPrices()
    objective: DoneObjective | None = None

    @property
    def dead_name(self) -> str:
        """The name of its queue of dead letters."""
        return (self.dead_letters.name if self.dead_letters else "") or f"{self.name}.dead"
