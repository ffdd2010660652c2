"""The consumers of a queue without qsctl: `Delivery` to each, `Acknowledgment` and `Availability` from them.

Decides: when a consumer has joined and left, and whose acknowledgments count. It has joined when its reader is matched
and a writer of acknowledgments in the same process is too; a process can answer for its own consumers only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from qsctl.core.messages import (
    Acknowledgment,
    ConsumerAvailability,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Inbound,
    RunDelivery,
)
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.identity import NIL_GUID, Guid
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.channels import RETURN_NS, DeliveryWriter, FrameWriter, Packed
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint, participant_of
from qsctl.transport.dds.plain._idl import (
    acknowledgment_topic,
    availability_topic,
    delivery_topic,
    plain_class,
)
from qsctl.transport.dds.plain._octets import (
    XCDR1,
    XCDR2,
    ReadAvailability,
    pack_delivery,
    read_acknowledgment,
    read_availability,
)
from qsctl.transport.dds.plain._partitions import is_alone, reads_xcdr2_only
from qsctl.transport.dds.plain._sender_reader import SenderReader
from qsctl.transport.dds.serving.turns import Inbox, read_all, read_share

AVAILABILITIES_MAX: Final = 10_000
"""Number of consumers and processes whose latest availability is kept."""


class DeliveryChannel:
    """The samples to one consumer.

    Args:
        participant: of the service.
        topic_name: the topic of deliveries.
        endpoint: the consumer's reader, in a partition of its own.
        extra: policies of the queue's `<datawriter_qos>`.
    """

    def __init__(
        self, participant: Participant, topic_name: str, endpoint: RemoteEndpoint, extra: Sequence[Any]
    ) -> None:
        self.endpoint = endpoint
        self.guid = Guid(endpoint.key)
        self.not_before = time.monotonic_ns() + (RETURN_NS if endpoint.returned else 0)
        in_xcdr2 = reads_xcdr2_only(endpoint)
        self._header = XCDR2 if in_xcdr2 else XCDR1
        self._writer = FrameWriter(
            participant,
            participant.topic(topic_name, plain_class("Delivery")),
            partition=endpoint.partitions[0],
            traits={"role": "lane"},
            extra=extra,
            in_xcdr2=in_xcdr2,
        )
        self._deliveries = DeliveryWriter(self._writer, endpoint.handle, self._packed)

    def reaches_peer(self) -> bool:
        """Return whether the consumer's own reader, not only an observer, is matched."""
        return time.monotonic_ns() >= self.not_before and self.endpoint.handle in self._writer.writer.matched_handles()

    @property
    def is_lost(self) -> bool:
        """Return whether the consumer's reader is gone; samples since then are kept, see `take_back`."""
        return self._writer.is_held

    def put(self, deliveries: Sequence[Delivery | RunDelivery]) -> None:
        """Add samples to those that `flush` sends."""
        self._deliveries.put(deliveries)

    def flush(self) -> bool:
        """Send what the consumer has room for; return False if some samples wait."""
        return self._deliveries.flush()

    def take_back(self) -> tuple[int, ...]:
        """Drop the samples that were never written, and return their positions."""
        return self._deliveries.take_back()

    def _packed(self, deliveries: Sequence[Delivery | RunDelivery]) -> Iterator[Packed]:
        singles = (each for several in deliveries for each in several.singles())
        return ((pack_delivery(each, self._header), (each.position,)) for each in singles)

    def close(self) -> None:
        """Delete the writer in the background, without delaying other peers."""
        self._writer.discard()


class PlainConsumers:
    """The consumers without qsctl of one queue. It has no DDS entity until an endpoint of one is discovered.

    Args:
        participant: of the service.
        name: the queue's full name.
        subscriber: the name of its shared subscriber.
        settings: the queue's.
        extra: policies of its `<datawriter_qos>`.
        owner: the object that `Waiter.ready` returns while there is data.
    """

    def __init__(
        self,
        participant: Participant,
        name: str,
        subscriber: str,
        settings: SharedReaderQueueSettings,
        extra: Sequence[Any],
        owner: object | None = None,
    ) -> None:
        self._owner = owner
        self._participant = participant
        self._name = name
        self._allows_feedback = settings.distribution.allow_consumer_feedback
        self._extra = extra
        topic = settings.topic_name
        self.delivery_topic = delivery_topic(topic, subscriber)
        self.acknowledgment_topic = acknowledgment_topic(topic, subscriber)
        self.availability_topic = availability_topic(topic, subscriber)
        self._acknowledgments: SenderReader[Acknowledgment] | None = None
        self._availability: SenderReader[list[ConsumerAvailability]] | None = None
        self._joining: list[DeliveryChannel] = []
        self._channels: dict[Guid, DeliveryChannel] = {}
        self._busy: dict[Guid, DeliveryChannel] = {}
        self._answering: dict[int, bytes] = {}
        """Processes that write acknowledgments, by the handles of their writers."""
        self._said: dict[bytes, ReadAvailability] = {}
        """Latest availability of consumers by GUID, and of whole processes by GUID prefix."""

    @property
    def concerned(self) -> tuple[str, ...]:
        """Return the names of the DDS topics whose endpoints of peers may concern these consumers."""
        return (self.delivery_topic, self.acknowledgment_topic, self.availability_topic)

    @property
    def waits(self) -> bool:
        """Return whether a consumer has not joined yet, or was found to be gone."""
        return bool(self._joining) or any(channel.is_lost for channel in self._busy.values())

    @property
    def is_joining(self) -> bool:
        """Return whether a consumer with a writer of acknowledgments is about to join."""
        return any(channel.endpoint.participant in self._answering.values() for channel in self._joining)

    def appeared(self, endpoint: RemoteEndpoint) -> None:
        """Process an endpoint that appeared on any topic.

        Raises:
            Malformed: a reader of deliveries has no partition of its own.
        """
        if endpoint.is_writer:
            if endpoint.topic_name == self.acknowledgment_topic:
                self._open_acknowledgments().note(endpoint)
                self._answering[endpoint.handle] = endpoint.participant
            elif endpoint.topic_name == self.availability_topic and self._allows_feedback:
                self._open_availability().note(endpoint)
        elif endpoint.topic_name == self.delivery_topic:
            others = [each.endpoint for each in (*self._channels.values(), *self._joining)]
            if is_alone(endpoint, others):
                self._open_acknowledgments()
                self._joining.append(DeliveryChannel(self._participant, self.delivery_topic, endpoint, self._extra))

    def vanished(self, endpoint: RemoteEndpoint, inbox: Inbox) -> None:
        """Remove a consumer whose reader is gone or that cannot acknowledge; its earlier messages stay valid."""
        if endpoint.topic_name == self.acknowledgment_topic and endpoint.is_writer:
            read_all(self.poll, inbox)
            self._answering.pop(endpoint.handle, None)
            if endpoint.participant not in self._answering.values():
                for channel in [
                    each for each in self._channels.values() if each.endpoint.participant == endpoint.participant
                ]:
                    self._leave(channel, inbox)
                    channel.close()
                    self._joining.append(
                        DeliveryChannel(self._participant, self.delivery_topic, channel.endpoint, self._extra)
                    )
        elif endpoint.topic_name == self.delivery_topic and not endpoint.is_writer:
            read_all(self.poll, inbox)
            for channel in self._joining:
                if channel.endpoint.handle == endpoint.handle:
                    self._joining.remove(channel)
                    channel.close()
                    break
            joined = self._channels.get(Guid(endpoint.key))
            if joined is not None and joined.endpoint.handle == endpoint.handle:
                self._leave(joined, inbox)
                joined.close()
            self._said.pop(endpoint.key, None)

    def poll(self, inbox: Inbox) -> bool:
        """Move up to a turn's share of messages into the inbox; return False if no acknowledgment is left."""
        if self._busy:
            self._let_go(inbox)
        if self._joining:
            self._let_join(inbox)
        if self._availability is not None:
            for each in self._availability.take() or ():
                inbox += each
        return self._read_acknowledgments(inbox)

    def _read_acknowledgments(self, inbox: Inbox) -> bool:
        if self._acknowledgments is None:
            return False
        return read_share(self._acknowledgments.take, _put, inbox)

    def deliver(self, guid: Guid, deliveries: Sequence[Delivery | RunDelivery]) -> None:
        """Put samples into their consumer's channel; without one the consumer is leaving, and they are redelivered."""
        channel = self._channels.get(guid)
        if channel is not None:
            channel.put(deliveries)
            self._busy[guid] = channel

    def flush(self) -> bool:
        """Send this turn's samples; return False if some wait for room."""
        if self._busy:
            self._busy = {guid: channel for guid, channel in self._busy.items() if not channel.flush()}
        return not self._busy

    def close(self) -> None:
        """Delete all entities; the consumers see the queue vanish."""
        for channel in (*self._channels.values(), *self._joining):
            channel.close()
        self._channels.clear()
        self._joining.clear()
        self._busy.clear()
        if self._acknowledgments is not None:
            self._acknowledgments.close()
        if self._availability is not None:
            self._availability.close()

    def _open_acknowledgments(self) -> SenderReader[Acknowledgment]:
        if self._acknowledgments is None:
            self._acknowledgments = SenderReader(
                self._participant,
                self.acknowledgment_topic,
                plain_class("Acknowledgment"),
                self._acknowledged,
                self._owner,
            )
        return self._acknowledgments

    def _open_availability(self) -> SenderReader[list[ConsumerAvailability]]:
        if self._availability is None:
            self._availability = SenderReader(
                self._participant, self.availability_topic, plain_class("Availability"), self._available, self._owner
            )
        return self._availability

    def _acknowledged(self, data: bytes, process: bytes) -> Acknowledgment:
        consumer, identity, response = read_acknowledgment(data)
        self._require_own(consumer, process)
        return Acknowledgment(self._name, consumer, identity, response)

    def _available(self, data: bytes, process: bytes) -> list[ConsumerAvailability]:
        read = read_availability(data)
        if read.consumer == NIL_GUID:
            consumers = [guid for guid in self._channels if participant_of(guid) == process]
            self._keep(process, read)
        else:
            self._require_own(read.consumer, process)
            consumers = [read.consumer]
            self._keep(read.consumer, read)
        return [
            ConsumerAvailability(self._name, consumer, read.reception_enabled, read.unacked_threshold)
            for consumer in consumers
        ]

    def _require_own(self, consumer: Guid, process: bytes) -> None:
        if participant_of(consumer) != process:
            raise Malformed(f"a process acknowledges for a consumer of another process, {consumer.hex()}")

    def _keep(self, key: bytes, said: ReadAvailability) -> None:
        self._said.pop(key, None)
        self._said[key] = said
        if len(self._said) > AVAILABILITIES_MAX:
            del self._said[next(iter(self._said))]

    def _let_join(self, inbox: list[Inbound]) -> None:
        processes = set(self._answering.values())
        still: list[DeliveryChannel] = []
        for channel in self._joining:
            endpoint = channel.endpoint
            if endpoint.participant not in processes or not self._hears(endpoint) or not channel.reaches_peer():
                still.append(channel)
                continue
            self._channels[channel.guid] = channel
            inbox.append(
                ConsumerJoined(
                    self._name, channel.guid, endpoint.source_guid, unacked_threshold=endpoint.unacked_threshold
                )
            )
            said = self._said.get(channel.guid) or self._said.get(endpoint.participant)
            if said is not None:
                inbox.append(
                    ConsumerAvailability(self._name, channel.guid, said.reception_enabled, said.unacked_threshold)
                )
        self._joining = still

    def _hears(self, endpoint: RemoteEndpoint) -> bool:
        """Return whether a writer of acknowledgments in the endpoint's process is matched here."""
        reader = self._acknowledgments
        return reader is not None and any(
            reader.is_matched(handle) for handle, process in self._answering.items() if process == endpoint.participant
        )

    def _leave(self, channel: DeliveryChannel, inbox: list[Inbound]) -> None:
        """Report that a consumer vanished, with the positions of samples that were never written."""
        del self._channels[channel.guid]
        self._busy.pop(channel.guid, None)
        inbox.append(ConsumerLeft(self._name, channel.guid, unsent=channel.take_back()))

    def _let_go(self, inbox: Inbox) -> None:
        """Remove consumers whose reader was found to be gone while sending, before discovery reports it.

        Their channels are kept until discovery reports the reader, as gone or as appeared again.
        """
        lost = [channel for channel in self._busy.values() if channel.is_lost]
        if lost:
            read_all(self._read_acknowledgments, inbox)
        for channel in lost:
            self._leave(channel, inbox)
            self._joining.append(channel)


def _put(taken: list[Acknowledgment], inbox: list[Inbound]) -> None:
    inbox += taken
