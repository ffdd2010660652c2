"""The samples of producers without qsctl: of the queue's own type on its topic, and `Write` on another.

Decides: when their readers exist, how much is read from them, and the message that a sample becomes for the engine.
They are opened when the first such writer is discovered, so that a service with qsctl's clients alone has none of them.
A topic is not read while one of its queues is full and the latest sample waits outside [QS 2.15.4]: the reader fills,
and reliability blocks the writers.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

from cyclonedds.core import ReadCondition
from cyclonedds.sub import DataReader

from qsctl.core.messages import Inbound, Write
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.diagnosis.peer_faults import UNKNOWN_PEER
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import participant_of
from qsctl.transport.dds.plain._octets import read_write
from qsctl.transport.dds.plain._payloads import PayloadOf
from qsctl.transport.dds.plain.flow import FlowDomain, PlainWriter, remaining_ns
from qsctl.transport.dds.qos import plain_reader_qos
from qsctl.transport.dds.wire.raw import RawReader, close_entity

TURN_SAMPLES: Final = 256
TURN_BYTES: Final = 4 * 1024 * 1024
"""Approximate bound on the octets read from a reader in a turn: they are in memory, even if the queue is full."""

TAKEN_AT_ONCE: Final = 16

ORIGINS_MAX: Final = 100_000
"""Number of writers whose process is remembered, for acknowledgments."""

Asks: TypeAlias = Callable[[bytes], bool]
"""Return whether a process, given by the prefix of its GUIDs, requests acknowledgments."""


class Origins:
    """The process of each writer, and the timestamps that identify samples."""

    def __init__(self) -> None:
        self._processes: OrderedDict[Guid, bytes] = OrderedDict()
        self._timestamps: OrderedDict[SampleIdentity, Nanoseconds] = OrderedDict()
        """Source timestamps that differ from the sequence number, or 0 if the number is the producer's own."""

    def note(self, identity: SampleIdentity, process: bytes, timestamp_ns: Nanoseconds) -> None:
        """Remember a sample's process and source timestamp; 0: the sample is identified by its number alone."""
        guid = identity.writer_guid
        if self._processes.get(guid) != process:
            self._processes[guid] = process
            if len(self._processes) > ORIGINS_MAX:
                self._processes.popitem(last=False)
        if timestamp_ns != identity.sequence_number:
            self._timestamps[identity] = timestamp_ns
            if len(self._timestamps) > ORIGINS_MAX:
                self._timestamps.popitem(last=False)

    def process_of(self, guid: Guid) -> bytes | None:
        """Return the process of a writer; None: it is a writer of qsctl."""
        return self._processes.get(guid)

    def pop_timestamp(self, identity: SampleIdentity) -> Nanoseconds:
        """Return and forget the source timestamp that identifies a sample; 0: its number is the producer's own."""
        return self._timestamps.pop(identity, identity.sequence_number)


class PlainReader:
    """One reader in a flow domain.

    Args:
        flow: its domain instance.
        topic_name, data_type: its topic.
        samples_max: maximum number of samples that wait in it.
        extra: policies of the queue's `<datareader_qos>`.
        read: converts a sample, from its octets, writer and source timestamp; raises `Malformed`.
        owner: the object that `Waiter.ready` returns while there is data.
        passes_over: whether a writer's samples must be skipped, because another reader reads them too.

    Raises:
        Refused: the topic cannot be created.
    """

    def __init__(
        self,
        flow: FlowDomain,
        topic_name: str,
        data_type: type[Any],
        samples_max: int,
        extra: Collection[Any],
        read: Callable[[bytes, PlainWriter, Nanoseconds], Write | None],
        owner: object | None = None,
        passes_over: Callable[[PlainWriter], bool] | None = None,
    ) -> None:
        self._flow = flow
        self._participant: Participant = flow.participant
        self._source = topic_name
        self._read = read
        self._owner = owner
        self._passes_over = passes_over
        assert self._participant.entity is not None
        self._topic = self._participant.own_topic(topic_name, data_type)
        qos = plain_reader_qos(samples_max=samples_max, extra=tuple(extra), traits={"role": "service"})
        self._data_reader: DataReader[Any] = DataReader(self._participant.entity, self._topic, qos=qos)
        self._reader = RawReader(self._data_reader)
        self._condition: ReadCondition | None = None
        """The condition on the waitset; None: the reader is not being read."""

    def poll(self, inbox: list[Inbound], *, reads_on: bool) -> bool:
        """Move up to a turn's share of samples into the inbox; return False if none is left or reading is suspended."""
        if not reads_on:
            self._unwatch()
            return False
        if self._condition is None:
            self._condition = self._participant.waiter.watch(self._data_reader, self._owner)
        count = size = 0
        while count < TURN_SAMPLES and size < TURN_BYTES:
            taken = self._reader.take_with_info(TAKEN_AT_ONCE)
            if not taken:
                return False
            count += len(taken)
            size += sum(len(data) for data, _ in taken)
            # Data that are not a sample cost the turn as much, and are not enqueued.
            writes = self._participant.boundary.each(
                self._source,
                taken,
                self._read_one,
                lambda index, taken=taken: self._peer_of(taken[index]),  # type: ignore[misc]
            )
            inbox += [each for each in writes if each is not None]
        return True

    @property
    def is_watched(self) -> bool:
        """Return whether data in the reader wakes the service."""
        return self._condition is not None

    def close(self) -> None:
        """Delete the reader and its topic: a queue that is created again may have another type."""
        self._unwatch()
        self._reader.close()
        close_entity(self._topic)

    def _read_one(self, taken: tuple[bytes, Any]) -> Write | None:
        data, info = taken
        writer = self._flow.writer(info.publication_handle)
        if writer is None:
            raise Malformed("its writer left before it could be looked up")
        if writer.is_copy or (self._passes_over is not None and self._passes_over(writer)):
            return None
        return self._read(data, writer, info.source_timestamp)

    def _peer_of(self, taken: tuple[bytes, Any]) -> str:
        writer = self._flow.writer(taken[1].publication_handle)
        return UNKNOWN_PEER if writer is None else writer.guid.hex()

    def _unwatch(self) -> None:
        """Stop waking the service for data that it does not read."""
        if self._condition is not None:
            self._participant.waiter.unwatch(self._condition)
            self._condition = None


class Intake:
    """The conversion of one topic's samples to messages of the engine.

    Args:
        participant_name: the name of the domain participant in the configuration.
        topic_name: the topic.
        payload_of: returns the payload of a sample.
        origins: records the writer of each sample.
        asks: whether its producer requests acknowledgments. One that does not waits while a queue is full, whatever the
            queue's replacement policy, because it would not be notified of a refusal.
    """

    def __init__(
        self, participant_name: str, topic_name: str, payload_of: PayloadOf, origins: Origins, asks: Asks
    ) -> None:
        self._name = participant_name
        self._topic_name = topic_name
        self._payload_of = payload_of
        self._origins = origins
        self._asks = asks

    def plain(self, data: bytes, writer: PlainWriter, timestamp_ns: Nanoseconds) -> Write:
        """Convert a sample of the queue's own type.

        Raises:
            Malformed: the octets are not such a sample.
        """
        now = time.time_ns()
        payload = self._payload_of(data)
        identity = SampleIdentity(writer.guid, writer.number(timestamp_ns, now))
        process = participant_of(writer.guid)
        self._origins.note(identity, process, timestamp_ns)
        return Write(
            self._name,
            self._topic_name,
            identity,
            payload,
            lifespan_ns=remaining_ns(writer.lifespan_ns, timestamp_ns, now),
            waits_when_full=not self._asks(process),
        )

    def numbered(self, data: bytes, writer: PlainWriter, timestamp_ns: Nanoseconds) -> Write:
        """Convert a `Write`.

        Raises:
            Malformed: the octets are not a valid `Write`.
        """
        read = read_write(data)
        guid = read.identity.writer_guid
        identity = SampleIdentity(writer.guid, read.identity.sequence_number) if guid == NIL_GUID else read.identity
        process = participant_of(writer.guid)
        self._origins.note(identity, process, 0)
        return Write(
            self._name,
            self._topic_name,
            identity,
            read.payload,
            read.source_guid,
            read.related_source_guid,
            read.related_identity,
            flags=read.flags,
            lifespan_ns=remaining_ns(min(read.lifespan_ns, writer.lifespan_ns), timestamp_ns, time.time_ns()),
            waits_when_full=not self._asks(process),
        )
