"""A queue of any broker, its publishers, consumers and dead letters, as a scenario states them.

`sim/broker_queue/__init__.py` describes the effect of each setting and cites the brokers' documents.
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
    """The order in which ready messages are delivered."""

    FIFO = "fifo"
    PRIORITY = "priority"
    KEY = "key"
    """One message at a time of each key, or of each partition."""


class QueueAccess(StrEnum):
    """The consumers that receive messages."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    """One consumer receives all messages; the others are on standby."""


class ExpiryPlace(StrEnum):
    """The place in the queue where an expired message is noticed."""

    HEAD = "head"
    ANYWHERE = "anywhere"


class ConnectionLoss(StrEnum):
    """The time at which unacknowledged messages of a consumer return after it left."""

    RETURN = "return"
    """They return immediately."""
    TIME_OUT = "time-out"
    """A message returns when its visibility time-out expires."""


class RefusalReaction(StrEnum):
    """The reaction of a publisher to a refused message."""

    LOSE = "lose"
    RETRY = "retry"
    BLOCK = "block"
    """The publisher blocks, with all its later messages, until the queue has room."""


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
    """Ahead of all messages never delivered, after those that returned earlier."""
    TAIL = "tail"


class FailureReport(StrEnum):
    """The answer of a consumer for a message on which its work failed."""

    REJECT = "reject"
    SILENT = "silent"
    """No answer: the message returns when its visibility time-out expires."""


class LimitScope(StrEnum):
    """The messages that the limits of a queue count."""

    ALL = "all"
    READY = "ready"
    """Messages that are ready, without those delivered and not yet acknowledged."""


class OverflowRule(StrEnum):
    """The treatment of a message for which the limits leave no room, or of the one dropped instead."""

    REJECT = "reject"
    REJECT_DEAD_LETTER = "reject-dead-letter"
    """The message is refused, and a copy is dead-lettered."""
    DROP_HEAD = "drop-head"
    """Messages at the head of the queue are dropped until the new one has room."""
    DROP_TAIL = "drop-tail"
    """The message is dropped, and its publisher is not notified."""
    BLOCK = "block"
    """Publishers block, regardless of their `on-refusal`."""


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
    """A stream of messages. Without `work_class`, each message draws its class by the classes' weights."""

    name: str
    arrivals: QueueArrivals
    size: Size = ConstantSize()
    work_class: str = ""
    batch: int = 1
    """Number of messages at each arrival, all of the same size and key."""
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
    """A class of messages with the same distribution of work, priority and probabilities of failure."""

    name: str
    work: WorkTime
    weight: float = 1.0
    priority: int = 0
    fails: float = 0.0
    """Probability that an attempt fails."""
    poison: float = 0.0
    """Probability that every attempt on a message fails."""
    time_to_live_ns: Nanoseconds = INFINITE_NS


@dataclass(frozen=True, slots=True)
class ClassWork:
    """The work of some consumers for the messages of a class."""

    work_class: str
    time: WorkTime


@dataclass(frozen=True, slots=True)
class QueueWorkers:
    """A group of `count` equal consumers, each with `servers` parallel servers.

    During `pauses` they begin no work. During `absences` they are disconnected, and their current work is aborted.
    """

    name: str
    count: int = 1
    servers: int = 1
    prefetch: int = 1
    """Maximum number of unacknowledged messages of one consumer; -1: no limit."""
    receive: ReceiveMode = ReceiveMode.PUSH
    batch: int = 1
    """Maximum number of messages in the answer to a poll."""
    wait_ns: Nanoseconds = 20 * SECOND_NS
    """Maximum time that a poll waits at the broker for a message (long polling)."""
    poll_interval_ns: Nanoseconds = 0
    """Time from an empty answer to the next poll."""
    round_trip_ns: Nanoseconds = 0
    speed: float = 1.0
    acknowledge_batch: int = 1
    acknowledge_interval_ns: Nanoseconds = SECOND_NS
    works: tuple[ClassWork, ...] = ()
    pauses: tuple[ClientInterval, ...] = ()
    absences: tuple[ClientInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class VisibilityRule:
    """The visibility time-out, after which a delivered and unanswered message returns to the queue."""

    timeouts_ns: tuple[Nanoseconds, ...]
    """The time-out of the first delivery, the second, and so on; the last value applies to all later ones."""
    heartbeat_ns: Nanoseconds = 0
    """Interval at which a consumer extends the time-out of a message that it works on; 0: it never does."""
    late: LateAcknowledgmentRule = LateAcknowledgmentRule.UNTIL_REDELIVERED


@dataclass(frozen=True, slots=True)
class RetryRule:
    """The rule for a message that returns."""

    max_deliveries: int = -1
    to: ReturnPlace = ReturnPlace.HEAD
    back_off: BackOff = BackOff()
    """Delay before a rejected message is ready again."""
    jitter: float = 0.0
    """Maximum fraction by which a back-off is randomly shortened."""
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
    """The name of the dead-letter queue; empty: the queue's name followed by `.dead`."""
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
    """The class whose work fails; empty: every class."""
    work: WorkTime | None = None
    """Duration of an attempt that fails because of the outage; None: that of any other attempt."""


@dataclass(frozen=True, slots=True)
class AutoscalingRule:
    """A rule that scales the number of consumers of one group with the number of messages in the queue."""

    workers: str
    messages_per_consumer: int
    maximum: int
    minimum: int = 1
    every_ns: Nanoseconds = 30 * SECOND_NS
    start_up: WorkTime = NO_WORK
    scale_in_delay_ns: Nanoseconds = 5 * MINUTE_NS
    """Time for which fewer consumers must have sufficed before one is removed."""


@dataclass(frozen=True, slots=True)
class WorkPrices:
    """The prices of requests and of consumers' hours, in any currency."""

    million_requests: float = 0.0
    worker_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class DoneObjective:
    """The objective for the time within which a message is done."""

    done_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class BrokerQueue:
    """A queue with its publishers, consumers, limits and dead letters."""

    name: str
    publishers: tuple[QueuePublisher, ...]
    classes: tuple[WorkClass, ...]
    workers: tuple[QueueWorkers, ...]
    order: DeliveryOrder = DeliveryOrder.FIFO
    priorities: int = 10
    partitions: int = 0
    """Number of partitions; 0: every key is ordered by itself and may be delivered to any consumer."""
    access: QueueAccess = QueueAccess.SHARED
    rebalance_ns: Nanoseconds = 0
    """Pause of delivery after a consumer joins or leaves; for partitioned queues and exclusive consumers."""
    max_unacknowledged: int = -1
    delay_ns: Nanoseconds = 0
    """Delay before an accepted message is ready for delivery."""
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
        """The name of the queue's dead-letter queue."""
        return (self.dead_letters.name if self.dead_letters else "") or f"{self.name}.dead"
