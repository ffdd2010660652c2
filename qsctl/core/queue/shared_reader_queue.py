"""The shared reader queue: each sample is delivered to one consumer at a time [QS 2.4 to 2.15].

Decides: the parts of a queue, their connections, and the order of their due work. Each part has state of its own and
decides one thing: `_entry` which samples enter, `_delivery` sending and answers, `_membership` the consumers,
`_removal` how samples leave, `_limits` room, `_lifespan` and `_redelivery` deadlines, `_undeliverable` the samples that
wait for the dead-letter queue, `_reader_cache` the samples outside a full queue, `restore` the replay of a store. Their
common state is in `_context`. No clock is read: `now` never runs backwards.
"""

from __future__ import annotations

from qsctl.core.events import BounceReason, ReturnReason
from qsctl.core.messages import ConsumerAvailability, ConsumerJoined, ConsumerLeft, Write, WriteRun
from qsctl.core.queue._context import QueueContext
from qsctl.core.queue._delivery import Deliveries
from qsctl.core.queue._entry import Entry
from qsctl.core.queue._held import Held
from qsctl.core.queue._lifespan import Lifespans
from qsctl.core.queue._limits import Limits
from qsctl.core.queue._membership import ConsumerMembership
from qsctl.core.queue._reader_cache import ReaderCache
from qsctl.core.queue._removal import Removal
from qsctl.core.queue._undeliverable import DeadLetterLine, DeadLetterPlace, Undeliverables, UndeliverableSource
from qsctl.core.queue.consumer import Consumer
from qsctl.core.queue.insertion import Insertion
from qsctl.core.queue.outbox import OpenStream, Outbox
from qsctl.core.queue.sample import Cause, Sample
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.records import DeadLetterReason, MovedFrom, Remembered, RemovalCause, Returned
from qsctl.identity import NIL_GUID, NIL_INCARNATION, Guid, Incarnation
from qsctl.instant import INFINITE_NS, Nanoseconds


class SharedReaderQueue:
    """One queue of a service.

    After every public method all samples that can be sent have been sent, and all that can be admitted from the reader
    cache are enqueued. Work beyond the outbox's quantum is due at once: see `next_deadline`.

    Args:
        name: the full name, `<domain participant>/<shared subscriber>/<queue>`.
        label: `<topic>@<subscriber>`, by which a dead letter names the queue that it comes from.
        settings: the configuration.
        outbox: collects records, messages and events.
        incarnation: the creation of the queue; a replicated one has the nil incarnation until its group calls `be`,
            because its members must agree.
        journaled: whether records are written.
        dead_letters: the queue for undeliverable samples [QS 2.12]; None: they are removed.
        routes: whether it is the reply queue of another one [QS 2.11].
        is_replicated: whether its records are those of a replication group, which has one stream with its dead-letter
            queue.
    """

    __slots__ = (
        "_dead_letters",
        "_early_reports",
        "_entry",
        "_membership",
        "acknowledge",
        "acknowledge_run",
        "context",
        "dead_letter_line",
        "deliveries",
        "flush",
        "insert",
        "is_replicated",
        "journaled",
        "label",
        "lifespans",
        "limits",
        "name",
        "reader_cache",
        "receive",
        "receive_run",
        "removal",
        "settings",
        "undeliverables",
        "unread_count",
        "wakes_at_ns",
    )

    def __init__(
        self,
        name: str,
        label: str,
        settings: SharedReaderQueueSettings,
        outbox: Outbox,
        *,
        incarnation: Incarnation,
        journaled: bool,
        dead_letters: DeadLetterPlace | None = None,
        routes: bool = False,
        is_replicated: bool = False,
    ) -> None:
        self.name = name
        self.label = label
        self.settings = settings
        self.journaled = journaled
        self.is_replicated = is_replicated
        self.wakes_at_ns: Nanoseconds = INFINITE_NS
        self.dead_letter_line = DeadLetterLine()
        """The queues that wait for room in this one, if it is a dead-letter queue."""
        self.reader_cache = ReaderCache(settings.limits.waiting_count_max)
        self.unread_count: int | None = None
        """The number of samples that it held before its store could not be read; None: the store can be read."""
        self._early_reports: dict[Guid, ConsumerAvailability] = {}
        self._dead_letters = dead_letters
        # A dead letter in memory needs its payload in memory: it could not be read later. A replica is sent it, too.
        keeps_payloads = not journaled or is_replicated or (dead_letters is not None and not dead_letters.journaled)
        self.context = QueueContext(
            name,
            label,
            settings,
            outbox,
            self,
            journaled=journaled,
            keeps_payloads=keeps_payloads,
            stream=dead_letters.stream if is_replicated and dead_letters is not None else None,
        )
        self.be(NIL_INCARNATION if is_replicated else incarnation)
        self._put_together({}, routes=routes)

    def _put_together(self, consumers: dict[Guid, Consumer], *, routes: bool) -> None:
        """Create the parts of an empty queue, and connect them."""
        context = self.context
        self.lifespans = Lifespans()
        self.limits = Limits(self.name, self.settings, context.outbox)
        self.undeliverables = Undeliverables(self._dead_letters, context.outbox)
        self.undeliverables.are_moves_one_record = self.is_replicated and self._dead_letters is not None
        self.deliveries = deliveries = Deliveries(context, consumers, self.reader_cache, routes=routes)
        self._membership = ConsumerMembership(context, deliveries, self._early_reports)
        self._entry = Entry(
            context, self.limits, self.lifespans, self.reader_cache, deliveries.offer, deliveries.offer_run
        )
        self.removal = Removal(
            context, deliveries, self.limits, self.lifespans, self.undeliverables, self.dead_letter_line
        )
        deliveries.connect(self._entry.let_in, self.removal.end, self.removal.end_range)
        # The most frequent calls of a service, without another call in between.
        self.receive = self._entry.receive
        self.receive_run = self._entry.receive_run
        self.insert = self._entry.insert
        self.acknowledge = deliveries.acknowledge
        self.acknowledge_run = deliveries.acknowledge_run
        self.flush = self.removal.flush

    def be(self, incarnation: Incarnation) -> None:
        """Set the incarnation to which its samples belong: samples on disk may be older than this object."""
        self.context.incarnation = incarnation
        if self.journaled and not self.is_replicated and incarnation != NIL_INCARNATION:
            self.stream.opening = Remembered(self.name, 1, (), incarnation)
        elif not self.is_replicated:
            self.stream.opening = None

    @property
    def incarnation(self) -> Incarnation:
        """Return the incarnation: it identifies this creation among all queues of this name."""
        return self.context.incarnation

    @property
    def held(self) -> Held:
        """Return the held samples."""
        return self.context.held

    @property
    def stream(self) -> OpenStream:
        """Return the stream of its records."""
        return self.context.stream

    @property
    def is_following(self) -> bool:
        """Return whether it is a replica that follows its master's log, and decides nothing itself."""
        return self.is_replicated and self.context.is_suspended

    @property
    def is_shut(self) -> bool:
        """Return whether it is being deleted: it accepts no more samples."""
        return self.context.is_shut

    # Actions of clients. `receive`, `acknowledge` and `flush` are methods of its parts.

    def refuse(self, now: Nanoseconds, write: Write, reason: BounceReason) -> None:
        """Refuse a sample for a reason outside the queue [QS 2.4]."""
        self._entry.refuse(now, write, reason)

    def bar(self, write: Write) -> BounceReason | None:
        """Return why no replica could enqueue a sample, or None; see `Entry.bar`."""
        return self._entry.bar(write)

    def may_bar(self, writes: WriteRun) -> bool:
        """Return whether no replica could enqueue one of these samples, see `Entry.may_bar`."""
        return self._entry.may_bar(writes)

    def join(self, now: Nanoseconds, joined: ConsumerJoined) -> None:
        """Add a consumer behind the others; if it has joined before, only change its threshold and reception."""
        self._membership.join(now, joined)

    def leave(self, now: Nanoseconds, left: ConsumerLeft) -> None:
        """Remove a consumer, and return its samples to the queue."""
        self._membership.leave(now, left)

    def report_availability(self, now: Nanoseconds, availability: ConsumerAvailability) -> None:
        """Apply a consumer's availability report [QS 2.10.2], which may arrive before the consumer joins."""
        self._membership.report_availability(now, availability)

    def lose_producer(self, now: Nanoseconds, writer_guid: Guid) -> None:
        """Drop a vanished producer's samples from the reader cache; enqueued ones remain [QS 2.15.4]."""
        self._entry.lose_producer(now, writer_guid)

    def accept_dead_letter(
        self, now: Nanoseconds, source: UndeliverableSource, sample: Sample, reason: DeadLetterReason
    ) -> BounceReason | None:
        """Enqueue a sample that another queue could not deliver [QS 2.12]; return the reason of a refusal, or None."""
        return self._entry.accept_dead_letter(now, source, sample, reason, self.dead_letter_line)

    def flag(self, sample: Sample) -> bool:
        """Flag a held sample as redelivered; return False if a consumer has it, which was sent it without the flag."""
        if sample.holder != NIL_GUID:
            return False
        if not sample.redelivered:
            sample = self.held.current(sample)
            sample.redelivered = True
            if self.journaled:
                self.stream.record(Returned(self.name, sample.position, sample.attempts, redelivered=True))
        return True

    def receive_moved(
        self, now: Nanoseconds, source: SharedReaderQueue, sample: Sample, payload: bytes | None, *, begins_anew: bool
    ) -> tuple[Insertion, Sample | None]:
        """Move a sample of another queue to this one, see `Entry.receive_moved`; the next turn sends it."""
        place = MovedFrom(source.name, sample.position, source.incarnation)
        became, held = self._entry.receive_moved(now, sample, place, payload, begins_anew=begins_anew)
        if held is not None:
            self.deliveries.groups.of_sample(held).append(held)
        if became.is_done:
            source.removal.end_moved(now, sample)
        return became, held

    def hold_again(self, now: Nanoseconds, sample: Sample) -> None:
        """Enqueue again, behind the others, a sample that left for another queue which could not store it."""
        self._entry.hold_again(now, sample)

    def serve_next(self, now: Nanoseconds) -> None:
        """Defer the sending of waiting samples to the next turn."""
        self.deliveries.defer_all()
        self.context.go_on_at_once(now)

    def is_waiting(self, sample: Sample) -> bool:
        """Return whether the queue holds this sample, and no consumer has it."""
        return self.held.is_held(sample) and sample.holder == NIL_GUID

    # Deadlines.

    def next_deadline(self) -> Nanoseconds | None:
        """Return the instant at which `advance` has work to do; None: there is none."""
        if self.context.is_suspended:
            return None
        deadline = min(
            self.context.goes_on_at_ns,
            self.deliveries.redelivery.next_deadline(),
            self.lifespans.next_deadline(),
            self.reader_cache.next_deadline(),
        )
        return deadline if deadline < INFINITE_NS else None

    def advance(self, now: Nanoseconds) -> None:
        """Do the due work: expire first, then time out, then dispatch, so that retries leave in queue order.

        Each step processes at most the outbox's quantum; the rest is due at once.
        """
        context, deliveries = self.context, self.deliveries
        if context.is_suspended:
            return
        share_count = context.outbox.share_count
        deferred = deliveries.take_deferred()
        context.goes_on_at_ns = INFINITE_NS
        expired = self.lifespans.overdue(now, share_count)
        groups = deliveries.groups_of(expired)
        for sample in expired:
            self.removal.end(now, sample, Cause.EXPIRE, RemovalCause.EXPIRED)
        unanswered = deliveries.redelivery.overdue(now, share_count)
        groups.update(deliveries.groups_of(unanswered))
        for sample in unanswered:
            deliveries.fail(now, sample, ReturnReason.TIMED_OUT)
        groups.update(self._membership.go_on(now, share_count))
        groups.update(deferred)
        self._entry.expire_outside(now)
        if len(self.undeliverables):
            self.removal.retry_dead_letters(now, share_count)
        deliveries.serve(now, *groups)

    # Changes of the whole queue.

    def change(self, now: Nanoseconds, settings: SharedReaderQueueSettings) -> None:
        """Apply changed settings from now on; only the fields that `change` allows in place may differ.

        No sample is dropped. If a limit is below the present length, new samples are refused until there is room. A
        changed lifespan applies to samples enqueued later; thresholds, time-outs and retries apply to deliveries in
        progress too. Samples in the reader cache remain there, whatever the new policy, and are admitted before others.
        """
        context, deliveries = self.context, self.deliveries
        self.settings = context.settings = settings
        self.limits.change(settings, map(context.in_memory_bytes, context.held.sizes_bytes()))
        self.reader_cache.change(settings.limits.waiting_count_max)
        self._entry.change()
        self.removal.change()
        deliveries.change()
        self._membership.change()
        deliveries.serve(now, *deliveries.groups.all())
        if not context.is_shut:
            self.dead_letter_line.call_all(now)

    def shut(self, now: Nanoseconds) -> None:
        """Refuse the samples in the reader cache and accept no more: the queue will be deleted [QS 5.4.2]."""
        self.context.is_shut = True
        self._entry.shut(now)

    def close(self, now: Nanoseconds) -> None:
        """Shut a queue that is deleted, and flush its samples; a following replica only forgets them."""
        self.shut(now)
        if self.is_following:
            self.forget(now)
        else:
            self.flush(now, list(self.held))

    def refuse_samples(self) -> None:
        """Refuse new samples, answering 0, because they could not be stored."""
        self.context.refuses = True

    def suspend(self) -> None:
        """Stop sending and enqueueing, because no record can be stored. Acknowledgments still have their effect."""
        self.context.refuses = self.context.is_suspended = True

    def go_on(self, now: Nanoseconds) -> None:
        """Resume after `suspend` or `refuse_samples`: send waiting samples and admit those outside, in quanta."""
        self.context.refuses = self.context.is_suspended = False
        self.deliveries.defer_all()
        self.context.go_on_at_once(now)
        self.dead_letter_line.call(now)

    def forget(self, now: Nanoseconds) -> None:
        """Forget every sample and every record that was not handed over, before a store's records are replayed.

        Consumers remain joined, and samples in the reader cache remain there.
        """
        context, former = self.context, self.deliveries
        context.outbox.forget(context.stream)
        context.held = Held()
        context.goes_on_at_ns = INFINITE_NS
        self.undeliverables.forget(now, context)
        self._put_together(former.consumers, routes=former.groups.routes)
        for consumer in former.consumers.values():
            consumer.outstanding.clear()
            consumer.sendings.clear()
            consumer.in_runs_count = 0
            self.deliveries.groups.of_consumer(consumer).ring.add(consumer)

    # Counts.

    @property
    def refused_count(self) -> int:
        """Return the number of messages of clients that were ignored as invalid."""
        return self.context.refused_count

    def sent_count(self) -> int:
        """Return the number of samples that consumers hold."""
        return sum(consumer.outstanding_count for consumer in self.deliveries.consumers.values())

    def undeliverable_count(self) -> int:
        """Return the number of undeliverable samples that wait for the dead-letter queue."""
        return len(self.undeliverables)
