"""What a queue of samples consists of: its parts, and how it answers and tells (manual, section 2.4).

Decides: what of the settings is worked out once. The steps of a sample are `lifecycle`'s.
"""

from __future__ import annotations

from qsctl.core.events import BounceReason, SampleBounced, SamplesPassed
from qsctl.core.messages import AckResponse, ConsumerAvailability, WriteAcknowledgment
from qsctl.core.queue.consumer import Consumer
from qsctl.core.queue.departure import Departure
from qsctl.core.queue.dispatch import Lane, Lanes
from qsctl.core.queue.held import Held
from qsctl.core.queue.lifespan import Lifespans, QueueLifespan
from qsctl.core.queue.limits import Limits
from qsctl.core.queue.outbox import NEVER_NS, Outbox
from qsctl.core.queue.persistence import on_disk_over_bytes
from qsctl.core.queue.redelivery import Redelivery
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.queue.undeliverable import DeadLetterLine, DeadLetterPlace, Undeliverables
from qsctl.core.queue.waiting import WaitingRoom
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds


class QueueState:
    """A queue's parts.

    Args:
        name: the full name, `<domain participant>/<shared subscriber>/<queue>`.
        label: `<topic>@<subscriber>`, how a dead letter names the queue it comes from.
        settings: what was configured.
        outbox: where records, messages and events go.
        journaled: whether records are written.
        dead_letters: where undeliverable samples go (section 2.12); None: nowhere, they are removed.
        routes: whether it is the reply queue of another one (section 2.11).
    """

    __slots__ = (
        "_acknowledges",
        "_availability",
        "_dead_letters",
        "_goes_on_at_ns",
        "_is_limited",
        "_leaving",
        "_lifespan",
        "_marks_last",
        "_on_disk_over_bytes",
        "_outbox",
        "_passed",
        "_put_off",
        "_redelivery",
        "_times_out",
        "_undeliverable",
        "consumers",
        "dead_letter_line",
        "held",
        "is_shut",
        "is_suspended",
        "journaled",
        "label",
        "lanes",
        "lifespans",
        "limits",
        "name",
        "passed_at_ns",
        "refused_count",
        "refuses",
        "settings",
        "stream",
        "waiting_room",
        "wakes_at_ns",
    )

    def __init__(
        self,
        name: str,
        label: str,
        settings: SharedReaderQueueSettings,
        outbox: Outbox,
        *,
        journaled: bool,
        dead_letters: DeadLetterPlace | None = None,
        routes: bool = False,
    ) -> None:
        self.name = name
        self.label = label
        self.settings = settings
        self.journaled = journaled
        self.stream = outbox.open_stream(name)
        self.wakes_at_ns: Nanoseconds = INFINITE_NS
        self.passed_at_ns: Nanoseconds = NEVER_NS
        self._passed = SamplesPassed(NEVER_NS, name)
        self.consumers: dict[Guid, Consumer] = {}
        self.held = Held()
        self.lanes = Lanes()
        self.lanes.routes = routes
        self.limits = Limits(name, settings, outbox)
        self.lifespans = Lifespans()
        self.waiting_room = WaitingRoom(settings.limits.waiting_count_max)
        self.refused_count = 0
        self.is_shut = False
        """Whether it is being deleted: it takes no more samples."""
        self.dead_letter_line = DeadLetterLine()
        """Of a dead-letter queue: who waits for room in it."""
        self.refuses = False
        """Whether it enqueues no new samples for now: they could not be stored."""
        self.is_suspended = False
        """Whether it does nothing by itself either, such as to send: no record of it can be stored."""
        self._outbox = outbox
        self._dead_letters = dead_letters
        self._undeliverable = Undeliverables(dead_letters, outbox)
        self._redelivery = Redelivery(settings.redelivery)
        self._times_out = settings.redelivery.response_timeout_ns < INFINITE_NS
        self._is_limited = self.limits.limited
        self._lifespan = QueueLifespan(settings.lifespan_ns)
        self._acknowledges = settings.app_ack_sample_to_producer
        self._marks_last = settings.distribution.mark_last_undelivered_sample
        self._availability: dict[Guid, ConsumerAvailability] = {}
        self._put_off: dict[Lane, None] = {}
        self._leaving: dict[Guid, Departure] = {}
        self._goes_on_at_ns = INFINITE_NS
        self._on_disk_over_bytes = on_disk_over_bytes(settings)
        if not journaled or (dead_letters is not None and not dead_letters.journaled):
            # A dead letter in memory needs its payload in memory: nobody could read it later.
            self._on_disk_over_bytes = INFINITE_NS

    def next_deadline(self) -> Nanoseconds | None:
        """When `advance` next has something to do."""
        if self.is_suspended:
            return None
        deadline = min(
            self._goes_on_at_ns,
            self._redelivery.next_deadline(),
            self.lifespans.next_deadline(),
            self.waiting_room.next_deadline(),
        )
        return deadline if deadline < INFINITE_NS else None

    def _in_memory_bytes(self, size_bytes: int) -> int:
        return size_bytes if size_bytes <= self._on_disk_over_bytes else 0

    def _begin_passing(self, now: Nanoseconds) -> None:
        """Count the usual steps of this instant in this batch from now on."""
        self.passed_at_ns = now
        self._passed = SamplesPassed(now, self.name)
        self._outbox.events.append(self._passed)
        self._outbox.passing.append(self)

    def _answer(self, identity: SampleIdentity, response: AckResponse) -> None:
        if self._acknowledges:
            self._outbox.send(self.stream, WriteAcknowledgment(self.name, identity, response))

    def _bounce(self, now: Nanoseconds, identity: SampleIdentity, reason: BounceReason) -> None:
        self._outbox.events.append(SampleBounced(now, self.name, identity, reason))
        self._answer(identity, AckResponse.REJECTED)
