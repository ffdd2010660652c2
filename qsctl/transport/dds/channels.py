"""Channels: one writer per peer, to a single consumer or producer, in a partition named after it.

Decides: the packing of samples into frames, how many are packed at once, the backlog when the peer's cache is full, and
when a channel is known to reach its peer. Cyclone DDS has no content filter on the writer's side, so the channel
replaces the filter on `related_reader_guid` [QS 2.7]; a reader in partition `*` receives from every channel [QS 2.8].
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias

from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.topic import Topic

from qsctl.core.messages import Delivery, RunAccepted, RunDelivery, WriteAcknowledgment
from qsctl.identity import NIL_GUID, Guid
from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.qos import partition_qos, writer_qos
from qsctl.transport.dds.wire import frames
from qsctl.transport.dds.wire.raw import RawWriter, close_entity

HANDSHAKE_NS: Final[Nanoseconds] = 200 * MILLISECOND_NS
"""Maximum time of a reader's handshake; afterwards samples are written to it even without."""

RETURN_NS: Final[Nanoseconds] = SECOND_NS
"""Time for which nothing is sent to a reappeared peer.

In this time its reliable channels restart. The peer has not noticed their interruption, so earlier messages from or to
it may be dropped.
"""

MATCHING_NS: Final[Nanoseconds] = SECOND_NS
"""Time for which a discovered producer is polled every millisecond until it is matched."""


PACKED_AT_ONCE_BYTES: Final = 1024 * 1024
"""Octets of payloads that are packed for a peer together: what it has no room for waits unpacked."""

SENT_AT_ONCE_BYTES: Final = 8 * PACKED_AT_ONCE_BYTES
"""Octets of payloads that one flush writes for a peer; other work is done before the next."""

Packed: TypeAlias = tuple[bytes, Sequence[int]]
"""A frame, and the positions of the samples in it."""


class FrameWriter:
    """A writer with a backlog: frames that do not fit into its cache are written first the next time.

    Attributes:
        is_held: whether nothing is written, so that every frame joins the backlog.
    """

    def __init__(
        self,
        participant: Participant,
        topic: Topic[Any],
        *,
        partition: str = "",
        traits: Mapping[str, str] | None = None,
        extra: Sequence[Any] = (),
        in_xcdr2: bool = False,
    ) -> None:
        assert participant.entity is not None
        self._participant = participant
        self._publisher = Publisher(participant.entity, qos=partition_qos(partition) if partition else None)
        try:
            self.writer = RawWriter(
                DataWriter(self._publisher, topic, qos=writer_qos(traits=traits, extra=extra, in_xcdr2=in_xcdr2))
            )
        except BaseException:
            close_entity(self._publisher)
            raise
        self._backlog: deque[Packed] = deque()
        self._is_flushed = True
        self.is_held = False

    @property
    def backlog_count(self) -> int:
        """Return the number of frames that wait for room in the cache."""
        return len(self._backlog)

    def put(self, frame: bytes, positions: Sequence[int] = ()) -> None:
        """Write a frame, or append it to the backlog.

        Args:
            frame: the octets.
            positions: the positions of the samples in it, see `take_back`.
        """
        if self._backlog or self.is_held or not self.writer.write(frame):
            self._backlog.append((frame, positions))
        self._is_flushed = False

    def flush(self) -> bool:
        """Write the backlog and send batched frames; return False if a part of the backlog remains."""
        if self._is_flushed:
            return True
        while self._backlog and not self.is_held and self.writer.write(self._backlog[0][0]):
            self._backlog.popleft()
        self.writer.flush()
        self._is_flushed = not self._backlog
        return self._is_flushed

    def hold_without(self, handle: int) -> None:
        """Stop writing from now on if this reader, which was matched, is gone."""
        self.is_held = self.is_held or self.writer.has_lost(handle)

    def take_back(self) -> tuple[int, ...]:
        """Drop the backlog, and return the positions of its samples, which were never written."""
        positions = tuple(position for _, positions in self._backlog for position in positions)
        self._backlog.clear()
        self.is_held = False
        return positions

    def drain(self, timeout_ns: Nanoseconds) -> bool:
        """Wait until all matched readers have acknowledged what was written; return False after the timeout."""
        writer: Any = self.writer.writer
        # The binding's own method fails where the time is over.
        return writer is None or int(writer._wait_for_acks(self.writer.reference, max(timeout_ns, 0))) == 0

    def close(self) -> None:
        """Delete the writer and drop the backlog."""
        self._backlog.clear()
        self.writer.close()
        close_entity(self._publisher)

    def discard(self) -> None:
        """Delete the writer in the background and drop the backlog, without delaying other peers."""
        self._backlog.clear()
        self._participant.discard(self.writer.release(), self._publisher)


class DeliveryWriter:
    """The deliveries to one consumer, which are packed once there is room for them.

    Until then they are in memory once, as the samples that the queue holds, however many the consumer may have
    unacknowledged.

    Args:
        writer: the consumer's.
        handle: of its reader.
        pack: returns the frames of deliveries.
    """

    def __init__(
        self, writer: FrameWriter, handle: int, pack: Callable[[Sequence[Delivery | RunDelivery]], Iterable[Packed]]
    ) -> None:
        self._writer = writer
        self._handle = handle
        self._pack = pack
        self._pending: deque[Delivery | RunDelivery] = deque()

    def put(self, deliveries: Sequence[Delivery | RunDelivery]) -> None:
        """Add deliveries to those that `flush` writes."""
        self._pending += deliveries

    def flush(self) -> bool:
        """Write what there is room for, up to `SENT_AT_ONCE_BYTES`; return False if a part remains."""
        writer, pending, sent_bytes = self._writer, self._pending, 0
        if pending or writer.backlog_count:
            writer.hold_without(self._handle)
        while writer.flush() and pending and sent_bytes < SENT_AT_ONCE_BYTES:
            share: list[Delivery | RunDelivery] = []
            share_bytes = 0
            while pending and share_bytes < PACKED_AT_ONCE_BYTES:
                each = pending.popleft()
                share.append(each)
                share_bytes += each.size_bytes if isinstance(each, RunDelivery) else len(each.payload or b"")
            for frame, positions in self._pack(share):
                writer.put(frame, positions)
            sent_bytes += share_bytes
        return not (pending or writer.backlog_count)

    def take_back(self) -> tuple[int, ...]:
        """Drop the samples that were never written, and return their positions."""
        pending, self._pending = self._pending, deque()
        return (*self._writer.take_back(), *(position for each in pending for position in each.positions()))


class Handshake:
    """The synchronization of a writer with a new reader before the first sample is written.

    A reader drops data that arrives before the writer's first heartbeat, and requests it again tens of milliseconds
    later. An empty frame spares the first sample this delay.

    Args:
        writer: the writer.
        frame: an empty frame of its topic.
    """

    def __init__(self, writer: FrameWriter, frame: bytes) -> None:
        self._writer = writer
        self._frame = frame
        self._contacted: frozenset[int] = frozenset()
        self._patient_until_ns: Nanoseconds = 0

    @property
    def is_in_progress(self) -> bool:
        """Return whether a new reader was contacted and may not be synchronized yet."""
        return time.monotonic_ns() < self._patient_until_ns

    def ready_readers(self, readers: AbstractSet[int]) -> frozenset[int]:
        """Return the matched ones of the readers, once all are ready or the time is over; contact the new ones."""
        matched = self._writer.writer.matched_handles() & readers
        if not matched <= self._contacted:
            self._patient_until_ns = time.monotonic_ns() + HANDSHAKE_NS
            self._writer.put(self._frame)
            self._writer.flush()
        self._contacted = matched
        if self.is_in_progress and self._writer.drain(0):
            self._patient_until_ns = 0
        return frozenset() if self.is_in_progress else matched


class SampleChannel:
    """The samples to one consumer. It is used only after its writer has matched the consumer's reader.

    Args:
        participant, topic: of its writer.
        endpoint: the consumer's reader.
        traits: key-value pairs that the writer announces.
        extra: policies of the queue's `<datawriter_qos>`.
    """

    def __init__(
        self,
        participant: Participant,
        topic: Topic[Any],
        endpoint: RemoteEndpoint,
        *,
        traits: Mapping[str, str],
        extra: Sequence[Any] = (),
    ) -> None:
        self.endpoint = endpoint
        self.guid = endpoint.guid
        self.handle = endpoint.handle
        # A reappeared peer does not discover its new writer and reader at once.
        self._not_before = time.monotonic_ns() + (RETURN_NS if endpoint.returned else 0)
        self._frames = FrameWriter(participant, topic, partition=self.guid.hex(), traits=traits, extra=extra)
        self._handshake = Handshake(self._frames, frames.frame_of([]))
        self._deliveries = DeliveryWriter(self._frames, endpoint.handle, frames.delivery_frames)

    def reaches_peer(self) -> bool:
        """Return whether the consumer's own reader, not only an observer, is matched and ready after the handshake."""
        return time.monotonic_ns() >= self._not_before and bool(self._handshake.ready_readers({self.handle}))

    @property
    def is_lost(self) -> bool:
        """Return whether the consumer's reader is gone; samples since then are kept, see `take_back`."""
        return self._frames.is_held

    def put(self, deliveries: Sequence[Delivery | RunDelivery]) -> None:
        """Add samples to those that `flush` sends."""
        self._deliveries.put(deliveries)

    def flush(self) -> bool:
        """Send what the consumer has room for; return False if some samples wait."""
        return self._deliveries.flush()

    def take_back(self) -> tuple[int, ...]:
        """Drop the samples that were never written, and return their positions."""
        return self._deliveries.take_back()

    def close(self) -> None:
        """Delete the writer in the background, without delaying other peers."""
        self._frames.discard()


class AnswerChannel:
    """The acknowledgments to one producer. They wait until its reader is matched; its window bounds their number.

    Args:
        participant, topic: of its writer.
        guid: the producer's.
        handle: of its reader.
        replicas: the identifier of this service's replica for each replicated queue, by `<topic>@<subscriber>`; answers
            carry it.
    """

    def __init__(
        self,
        participant: Participant,
        topic: Topic[Any],
        guid: Guid,
        handle: int,
        replicas: Mapping[str, Guid] | None = None,
    ) -> None:
        self.guid = guid
        self.handle = handle
        self._replicas = {} if replicas is None else replicas
        self._frames = FrameWriter(participant, topic, partition=guid.hex(), traits={"role": "answers"})
        self._handshake = Handshake(self._frames, frames.answers_of(NIL_GUID, "", []))
        self._gives_up_at_ns = time.monotonic_ns() + MATCHING_NS
        self._pending: dict[str, list[WriteAcknowledgment | RunAccepted]] = {}
        self._reaches_peer = False

    def put(self, queue_name: str, answers: Sequence[WriteAcknowledgment | RunAccepted]) -> None:
        """Add answers of the queue `<topic>@<subscriber>` to this turn's frames."""
        self._pending.setdefault(queue_name, []).extend(answers)

    def flush(self) -> bool:
        """Send this turn's answers; return False if some wait, or the handshake with the producer is in progress."""
        if not self._reaches_peer:
            self._reaches_peer = bool(self._handshake.ready_readers({self.handle}))
            if not self._reaches_peer:
                return not self._pending and time.monotonic_ns() > self._gives_up_at_ns
        if self._pending:
            for queue_name, answers in self._pending.items():
                replica = self._replicas.get(queue_name, NIL_GUID)
                pack = frames.pack_answers if replica == NIL_GUID else frames.pack_replica_answers
                packed = pack(answers)
                for at in range(0, len(packed), frames.ANSWERS_MAX):
                    part = packed[at : at + frames.ANSWERS_MAX]
                    self._frames.put(frames.answers_of(replica, queue_name, part))
            self._pending = {}
        return self._frames.flush()

    def end(self, queue_name: str) -> None:
        """Send, after all answers, a notice that the queue was deleted and will answer no more samples.

        The notice is a frame without answers, like a consumer's when it leaves; a producer of an older version ignores
        it.
        """
        self.flush()
        if self._reaches_peer:
            self._frames.put(frames.answers_of(NIL_GUID, queue_name, []))
            self._frames.flush()

    def close(self) -> None:
        """Delete the writer in the background, without delaying other peers."""
        self._frames.discard()
