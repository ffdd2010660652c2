"""The state that the parts of a queue share: its name, settings, samples, and the outbox of its steps.

Decides: nothing. Parts keep references to members that never change, and read the others here.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.events import BounceReason, SampleBounced, SamplesPassed
from qsctl.core.messages import AckResponse, WriteAcknowledgment
from qsctl.core.queue._agenda import Sleeper
from qsctl.core.queue._held import Held
from qsctl.core.queue._persistence import on_disk_over_bytes
from qsctl.core.queue.outbox import OpenStream, Outbox
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.identity import NIL_INCARNATION, Incarnation, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

_REJECTED: Final = AckResponse.REJECTED
_NO_INSTANT: Final[Nanoseconds] = -1


class QueueContext:
    """The shared state of one queue's parts.

    Args:
        name: the full name, `<domain participant>/<shared subscriber>/<queue>`.
        label: `<topic>@<subscriber>`, by which a dead letter names the queue that it comes from.
        settings: the configuration.
        outbox: receives records, messages and events.
        sleeper: woken by the agenda at the queue's deadlines.
        journaled: whether records are written.
        keeps_payloads: whether every payload stays in memory, whatever the settings.
        stream: receives the records; None: a stream of the queue's own.
    """

    __slots__ = (
        "_is_shut",
        "_refuses",
        "accepts_nothing",
        "acknowledges",
        "freely_accepted_size_bytes",
        "goes_on_at_ns",
        "held",
        "incarnation",
        "is_limited",
        "is_suspended",
        "journaled",
        "label",
        "name",
        "on_disk_over_bytes",
        "outbox",
        "passed",
        "refused_count",
        "settings",
        "size_bytes_max",
        "sleeper",
        "stream",
    )

    def __init__(
        self,
        name: str,
        label: str,
        settings: SharedReaderQueueSettings,
        outbox: Outbox,
        sleeper: Sleeper,
        *,
        journaled: bool,
        keeps_payloads: bool,
        stream: OpenStream | None = None,
    ) -> None:
        self.name = name
        self.label = label
        self.incarnation: Incarnation = NIL_INCARNATION
        """The creation of the queue; set by `SharedReaderQueue.be`."""
        self.settings = settings
        self.outbox = outbox
        self.sleeper = sleeper
        self.journaled = journaled
        self.stream = outbox.open_stream(name) if stream is None else stream
        self.held = Held()
        self.acknowledges = settings.app_ack_sample_to_producer
        self.on_disk_over_bytes = INFINITE_NS if keeps_payloads else on_disk_over_bytes(settings)
        self.passed = SamplesPassed(_NO_INSTANT, name)
        """Counter of the usual steps at one instant, if they are counted, not reported one by one: see `count_at`."""
        self.refused_count = 0
        """Number of messages of clients that were ignored as invalid."""
        self._is_shut = self._refuses = self.is_limited = False
        self.is_suspended = False
        """Whether the queue also sends nothing and performs no deadline, because its records cannot be stored."""
        self.goes_on_at_ns: Nanoseconds = INFINITE_NS
        """Instant at which the work that exceeded one turn continues; `INFINITE_NS`: there is none."""
        self.size_bytes_max = self.freely_accepted_size_bytes = -1
        """The largest payload accepted from outside at all, and the largest accepted without any rule, in octets.

        -1 as the second: every sample is judged. See `find_bound`.
        """
        self.accepts_nothing = False
        """Whether no new sample is enqueued, except possibly one whose producer waits when the queue is full."""
        self.find_bound()

    @property
    def is_shut(self) -> bool:
        """Return whether the queue is being deleted: it accepts no more samples."""
        return self._is_shut

    @is_shut.setter
    def is_shut(self, is_shut: bool) -> None:
        self._is_shut = is_shut
        self.find_bound()

    @property
    def refuses(self) -> bool:
        """Return whether the queue enqueues no new samples for now, because they could not be stored."""
        return self._refuses

    @refuses.setter
    def refuses(self, refuses: bool) -> None:
        self._refuses = refuses
        self.find_bound()

    def find_bound(self) -> None:
        """Recompute the payload size up to which samples are enqueued unjudged: one comparison replaces ten rules."""
        outbox = self.outbox
        self.size_bytes_max = min(self.settings.limits.sample_size_bytes_max, outbox.payload_size_bytes_max)
        self.accepts_nothing = self._refuses or self._is_shut or outbox.holds_back
        is_judged = self.is_limited or self.accepts_nothing
        self.freely_accepted_size_bytes = -1 if is_judged else self.size_bytes_max

    def in_memory_bytes(self, size_bytes: int) -> int:
        """Return the number of octets that a payload of this size occupies in memory: 0 if it is on disk only."""
        return size_bytes if size_bytes <= self.on_disk_over_bytes else 0

    def answer(self, identity: SampleIdentity, response: AckResponse) -> None:
        """Send a producer the answer for its sample, if this queue acknowledges samples."""
        if self.acknowledges:
            rests_on = self.stream.last_index
            self.outbox.messages.append(WriteAcknowledgment(self.name, identity, response, rests_on))

    def count_at(self, now: Nanoseconds) -> SamplesPassed:
        """Return the counter of the usual steps of this instant: one object until it is read.

        On a hot path call it only if `passed.at_ns` is another instant.
        """
        if self.passed.at_ns != now:
            self.passed = SamplesPassed(now, self.name)
            self.outbox.events.append(self.passed)
            self.outbox.counting.append(self)
        return self.passed

    def end_count(self) -> None:
        """Detach the current counter, which is being read; the next step begins a new one."""
        self.passed = SamplesPassed(_NO_INSTANT, self.name)

    def bounce(self, now: Nanoseconds, identity: SampleIdentity, reason: BounceReason) -> None:
        """Refuse a sample: report the event and answer its producer."""
        self.outbox.events.append(SampleBounced(now, self.name, identity, reason))
        self.answer(identity, _REJECTED)

    def go_on_at_once(self, now: Nanoseconds) -> None:
        """Schedule the rest of the work, which exceeds one turn, for the next turn."""
        self.goes_on_at_ns = now
        self.outbox.agenda.wake(self.sleeper, now)
