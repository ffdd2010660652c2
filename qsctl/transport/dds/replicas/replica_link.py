"""The exchange between replicas, over DDS [QS 7.1]: one reader a member, and a writer to each of the others.

Decides: which processes form a cluster. Members of one cluster announce its name; each reads a partition of its own, so
that a message reaches its addressee alone. Messages may be lost: they do not accumulate for a peer that does not read
them, since replicas repeat what matters. `letter_box` decodes received data to messages.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from cyclonedds.core import DDSException
from cyclonedds.sub import DataReader, Subscriber

from qsctl.core.high_availability.frames import Frame, has_samples
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.instant import Nanoseconds
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.qos import map_qos, partition_qos, reader_qos
from qsctl.transport.dds.replicas._replica_wire import REPLICATION_TOPIC, WireReplicaPiece
from qsctl.transport.dds.replicas.letter_box import SILENCE_NS, LetterBox, ReceivedLetter, Seen
from qsctl.transport.dds.replicas.replica_letters import piece_from_octets
from qsctl.transport.dds.serialized_reader import SerializedReader
from qsctl.transport.dds.wire.raw import close_entity

WAITING_PIECES_MAX: Final = 256
"""Bound of the fragments waiting for a peer: above it frames of samples to the peer are dropped. A master sends them
again, from the log, once the peer reports what it lacks."""

WAITING_PIECES_WITHOUT_SAMPLES_MAX: Final = 4096
"""The same for heartbeats, votes and confirmations, which are small and follow what waits: a peer that reads slowly
does not consider its master lost. Above it the peer is sent nothing."""

_ROLE: Final = "replica"
_TAKES_MAX: Final = 16
_TAKE_COUNT: Final = 16


class LinkQos(NamedTuple):
    """The configured quality of service of the reader and the writers between replicas [QS Table 3.14]."""

    of_reader: tuple[Any, ...] = ()
    of_writers: tuple[Any, ...] = ()


AS_BY_DEFAULT: Final = LinkQos()


def link_qos(replicated: Sequence[SharedReaderQueueSettings]) -> LinkQos:
    """Return the quality of service of the first replicated queue, which is used for the messages of all."""
    if not replicated:
        return AS_BY_DEFAULT
    reader, writer = (replicated[0].qos.get(f"update_{kind}_qos", "") for kind in ("datareader", "datawriter"))
    return LinkQos(map_qos(reader).policies, map_qos(writer).policies)


class ReplicaLink:
    """The `Link` over DDS: exchanges the messages of one process with the other members of its cluster.

    Args:
        participant: a participant in the domain of the messages.
        cluster: name of the cluster, common to all members; messages of other clusters are not received.
        name: application name of this member.
        run: distinguishes this process from others with the same name.
        started_at_ns: start time of this process.
        qos: configured quality of service of the reader and the writers, in addition to the default.
        silence_ns: duration of a member's silence after which another process of its name is accepted.
        clock: monotonic time in nanoseconds.
    """

    def __init__(
        self,
        participant: Participant,
        cluster: str,
        name: str,
        run: str,
        started_at_ns: Nanoseconds,
        qos: LinkQos = AS_BY_DEFAULT,
        *,
        silence_ns: Nanoseconds = SILENCE_NS,
        clock: Callable[[], Nanoseconds] = time.monotonic_ns,
    ) -> None:
        assert participant.entity is not None
        self._participant = participant
        self._cluster = cluster
        self.box = LetterBox(Seen(name, run, started_at_ns), REPLICATION_TOPIC, participant.boundary, silence_ns, clock)
        self._topic = participant.topic(REPLICATION_TOPIC, WireReplicaPiece)
        self._writers: dict[str, FrameWriter] = {}
        self.dropped_count = 0
        """Number of messages dropped: the member was unknown or did not read, or sending failed."""
        traits = {
            "role": _ROLE,
            "cluster": cluster.encode().hex(),
            "name": name.encode().hex(),
            "run": run,
            "since": str(started_at_ns),
        }
        self._subscriber = Subscriber(participant.entity, qos=partition_qos(self._partition(name)))
        self._reader = SerializedReader(
            participant,
            DataReader(self._subscriber, self._topic, qos=reader_qos(traits=traits, extra=qos.of_reader)),
            piece_from_octets,
        )
        self._qos = qos

    # Members.

    def appeared(self, endpoint: RemoteEndpoint) -> None:
        """Register another process's reader of replica messages, if it is of this cluster.

        Raises:
            Malformed: its announcement cannot be decoded.
        """
        traits = endpoint.traits
        if endpoint.is_writer or endpoint.topic_name != REPLICATION_TOPIC or traits.get("role") != _ROLE:
            return
        try:
            cluster, name = (bytes.fromhex(traits.get(key, "")).decode() for key in ("cluster", "name"))
            seen = Seen(name, traits.get("run", ""), int(traits.get("since", "")))
        except ValueError as error:
            raise Malformed(f"the announcement of a replica cannot be read: {error}") from error
        if cluster == self._cluster and self.box.appeared(endpoint.handle, seen) and seen.name not in self._writers:
            self._writers[seen.name] = FrameWriter(
                self._participant,
                self._topic,
                partition=self._partition(seen.name),
                traits={"role": _ROLE},
                extra=self._qos.of_writers,
            )

    def vanished(self, endpoint: RemoteEndpoint) -> None:
        """Remove a reader, and delete the writer to its member if it was the last of that name."""
        writer = self._writers.pop(self.box.vanished(endpoint.handle), None)
        if writer is not None:
            writer.discard()

    @property
    def peers(self) -> frozenset[str]:
        """The names of the other members that are discovered now."""
        return self.box.peers

    @property
    def namesake(self) -> Seen | None:
        """Another process that announces this member's name, or None."""
        return self.box.namesake

    def pop_is_changed(self) -> bool:
        """Return whether a process of the cluster appeared or vanished since the last call."""
        return self.box.pop_is_changed()

    # Messages.

    def poll(self) -> list[ReceivedLetter]:
        """Return the messages completed by the next received fragments, a bounded number a call, without waiting."""
        received: list[ReceivedLetter] = []
        for _ in range(_TAKES_MAX):
            pieces = self._reader.take(_TAKE_COUNT)
            if pieces is None:
                break
            for piece in pieces:
                received += self.box.receive(piece)
        return received

    def send(self, recipients: Sequence[str], members: Sequence[str], frames: Sequence[Frame]) -> None:
        """Send a message to members; it is lost for those that are not discovered or do not read."""
        reading: list[FrameWriter] = []
        slow: list[FrameWriter] = []
        for recipient in recipients:
            writer = self._writers.get(recipient)
            if writer is None or writer.backlog_count > WAITING_PIECES_WITHOUT_SAMPLES_MAX:
                self.dropped_count += 1
            elif writer.backlog_count > WAITING_PIECES_MAX:
                slow.append(writer)
            else:
                reading.append(writer)
        self._put(reading, members, frames)
        if slow:
            without_samples = [frame for frame in frames if not has_samples(frame)]
            if without_samples:  # a message without frames would only add to what waits
                self._put(slow, members, without_samples)
            else:
                self.dropped_count += len(slow)

    def _put(self, writers: Sequence[FrameWriter], members: Sequence[str], frames: Sequence[Frame]) -> None:
        if not writers:
            return
        try:
            pieces = self.box.pieces(members, frames)
        except OverflowError:
            self.dropped_count += len(writers)
            return
        for writer in writers:
            try:
                for piece in pieces:
                    writer.put(piece)
            except DDSException:
                self.dropped_count += 1

    def flush(self) -> bool:
        """Send waiting fragments; return False while some wait for space in a peer's cache: call it again soon."""
        done = True
        for writer in self._writers.values():
            done = writer.flush() and done
        return done

    def close(self) -> None:
        """Delete the reader and the writers, which the peers notice at once."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._reader.close()
        close_entity(self._subscriber)

    def _partition(self, name: str) -> str:
        return hashlib.sha256(f"{self._cluster}\0{name}".encode()).hexdigest()[:32]
