"""The joining, leaving and availability of a queue's consumers [QS 2.10, 2.11.3 and 2.13].

Decides: the threshold of each consumer, and the outcome of the deliveries in progress when it leaves.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.events import ReturnReason
from qsctl.core.messages import ConsumerAvailability, ConsumerJoined, ConsumerLeft
from qsctl.core.queue._context import QueueContext
from qsctl.core.queue._delivery import Deliveries
from qsctl.core.queue._delivery_groups import DeliveryGroup
from qsctl.core.queue._departure import Departure
from qsctl.core.queue.consumer import Consumer
from qsctl.identity import NIL_GUID, Guid
from qsctl.instant import INFINITE_NS, Nanoseconds

EARLY_REPORTS_MAX: Final = 1_024
"""Maximum number of availability reports that are kept for consumers that have not joined yet."""


class ConsumerMembership:
    """The consumers of a queue: joining, leaving, and their reports.

    Args:
        context: the queue.
        deliveries: the deliveries to its consumers.
        early_reports: availability reports of consumers that have not joined yet, by GUID.
    """

    __slots__ = ("_context", "_deliveries", "_departures", "_early_reports")

    def __init__(
        self, context: QueueContext, deliveries: Deliveries, early_reports: dict[Guid, ConsumerAvailability]
    ) -> None:
        self._context = context
        self._deliveries = deliveries
        self._early_reports = early_reports
        self._departures: dict[Guid, Departure] = {}

    def join(self, now: Nanoseconds, joined: ConsumerJoined) -> None:
        """Add a consumer behind the others; if it has joined before, only change its threshold and reception.

        A requester's reader, one with a source GUID, makes the queue route by address [QS 2.11.3].

        Refuses:
            The nil GUID, which identifies no reader.
        """
        context, deliveries = self._context, self._deliveries
        groups = deliveries.groups
        if joined.consumer_guid == NIL_GUID:
            context.refused_count += 1
            return
        known = deliveries.consumers.get(joined.consumer_guid)
        if known is not None:
            if known.source_guid == joined.source_guid:
                self._open_window(known, joined)
                deliveries.serve(now, groups.of_consumer(known))
                return
            self.leave(now, ConsumerLeft(context.name, joined.consumer_guid))
        if joined.consumer_guid in self._departures:
            # First return its former samples: those that it is sent from now on are others.
            deliveries.serve(now, *self._take_back(now, joined.consumer_guid, INFINITE_NS))
        consumer = Consumer(joined.consumer_guid, joined.source_guid, context.settings.distribution.unacked_threshold)
        deliveries.consumers[consumer.guid] = consumer
        if joined.source_guid != NIL_GUID:
            deliveries.serve(now, *groups.start_routing())
        group = groups.of_consumer(consumer)
        group.ring.add(consumer)
        self._open_window(consumer, joined)
        early = self._early_reports.pop(consumer.guid, None)
        if early is not None:
            self._apply(consumer, early)
        deliveries.serve(now, group)

    def leave(self, now: Nanoseconds, left: ConsumerLeft) -> None:
        """Remove a consumer, and return its samples to the queue.

        Each sample held by a consumer that vanished is a failed delivery, since it is unknown whether it was processed:
        a sample that crashes its consumers thus becomes a dead letter. A sample that the consumer hands back, or that
        was not sent to it yet, waits again without counting an attempt.
        """
        consumer_guid = left.consumer_guid
        self._early_reports.pop(consumer_guid, None)
        consumer = self._deliveries.consumers.get(consumer_guid)
        if consumer is None:
            return
        group = self._deliveries.groups.of_consumer(consumer)
        group.ring.remove(consumer)
        del self._deliveries.consumers[consumer_guid]
        self._deliveries.redelivery.single_out(tuple(consumer.sendings))
        self._departures[consumer_guid] = Departure(consumer, left.hands_back, left.unsent)
        groups = self._take_back(now, consumer_guid, self._context.outbox.share_count)
        self._deliveries.serve(now, *(groups | {group: None}))

    def report_availability(self, now: Nanoseconds, availability: ConsumerAvailability) -> None:
        """Apply a consumer's availability report [QS 2.10.2], which may arrive before the consumer joins.

        Refuses:
            Any report if ALLOW_CONSUMER_FEEDBACK is off.
        """
        context, guid = self._context, availability.consumer_guid
        if not context.settings.distribution.allow_consumer_feedback:
            context.refused_count += 1
            return
        consumer = self._deliveries.consumers.get(guid)
        if consumer is not None:
            self._apply(consumer, availability)
            self._deliveries.serve(now, self._deliveries.groups.of_consumer(consumer))
        elif len(self._early_reports) < EARLY_REPORTS_MAX or guid in self._early_reports:
            self._early_reports[guid] = availability
        else:
            context.refused_count += 1

    def change(self) -> None:
        """Apply the queue's changed threshold to the consumers that have not reported their own availability.

        A consumer with more outstanding samples keeps them, and is sent nothing until it has few enough.
        """
        deliveries = self._deliveries
        for consumer in deliveries.consumers.values():
            consumer.bound(self._context.settings.distribution.unacked_threshold)
            deliveries.groups.of_consumer(consumer).ring.review(consumer)

    def go_on(self, now: Nanoseconds, count_max: int) -> dict[DeliveryGroup, None]:
        """Return at most `count_max` samples of each consumer that left to the queue; return their delivery groups."""
        groups: dict[DeliveryGroup, None] = {}
        for guid in tuple(self._departures):
            groups.update(self._take_back(now, guid, count_max))
        return groups

    def _take_back(self, now: Nanoseconds, guid: Guid, count_max: int) -> dict[DeliveryGroup, None]:
        departure, deliveries = self._departures[guid], self._deliveries
        step = deliveries.hand_back if departure.hands_back else deliveries.fail
        groups: dict[DeliveryGroup, None] = {}
        for sample in departure.take(count_max):
            groups[deliveries.groups.of_sample(sample)] = None
            if sample.position in departure.unsent:
                deliveries.hand_back(now, sample, ReturnReason.NOT_SENT)
            else:
                step(now, sample, ReturnReason.CONSUMER_LEFT)
        if departure.is_over:
            del self._departures[guid]
        else:
            self._context.go_on_at_once(now)
        return groups

    def _open_window(self, consumer: Consumer, joined: ConsumerJoined) -> None:
        """Apply the threshold and reception of a joining reader; the smaller threshold applies, -1: no bound."""
        if joined.unacked_threshold is not None:
            consumer.own_threshold = joined.unacked_threshold
            consumer.bound(self._context.settings.distribution.unacked_threshold)
        if joined.reception_enabled is not None:
            consumer.reception_enabled = joined.reception_enabled
        self._deliveries.groups.of_consumer(consumer).ring.review(consumer)

    def _apply(self, consumer: Consumer, availability: ConsumerAvailability) -> None:
        consumer.reception_enabled = availability.reception_enabled
        consumer.unacked_threshold = availability.unacked_threshold
        consumer.own_threshold = None
        self._deliveries.groups.of_consumer(consumer).ring.review(consumer)
