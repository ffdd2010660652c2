"""The exchange between replicas, over DDS [QS 7.1]: two readers a member, and two writers to each of the others.

Frames of samples may be large and wait long, for the network or the receiver; those that may pass them (`passes`) have
a reader and writers of their own, so that neither end keeps them waiting. A member of an earlier version has one
reader, for all frames.

Decides: which processes form a cluster. Members of one cluster announce its name; each reads a partition of its own, so
that a message reaches its addressee alone. Messages may be lost: they do not accumulate for a peer that does not read
them, since replicas repeat what matters. `letter_box` decodes received data to messages.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cyclonedds.core import DDSException
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic

from qsctl.core.high_availability.frames import Frame, has_samples, passes
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.instant import Nanoseconds
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.qos import map_qos, partition_qos, reader_qos
from qsctl.transport.dds.replicas._replica_wire import REPLICATION_TOPIC, WireReplicaPiece
from qsctl.transport.dds.replicas.letter_box import (
    PEERS_MAX,
    SILENCE_NS,
    FragmentNumbers,
    LetterBox,
    ReceivedLetter,
    Seen,
)
from qsctl.transport.dds.replicas.letter_signatures import LetterDenial, LetterSigner
from qsctl.transport.dds.replicas.replica_letters import Piece, piece_from_octets
from qsctl.transport.dds.serialized_reader import SerializedReader
from qsctl.transport.dds.wire.raw import close_entity

WAITING_PIECES_MAX: Final = 256
"""Bound of the fragments waiting for a peer: above it frames of samples to the peer are dropped. A master sends them
again, from the log, once the peer reports what it lacks."""

WAITING_PIECES_WITHOUT_SAMPLES_MAX: Final = 4096
"""The same for heartbeats, votes and confirmations, which are small and follow what waits: a peer that reads slowly
of an earlier version does not consider its master lost. Above it the peer is sent nothing."""

_ROLE: Final = "replica"
_PASSING_ROLE: Final = "replica passing"
"""The role of the reader of messages that pass those with samples."""

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


class _Route:
    """A reader of this member, and a writer to the same reader of each other member.

    Args:
        participant: a participant in the domain of the messages.
        topic: of all messages.
        partition: returns the partition that a member's reader is in, by its name.
        name: application name of this member.
        traits: what the reader announces.
        qos: configured quality of service of the reader and the writers, in addition to the default.
    """

    def __init__(
        self,
        participant: Participant,
        topic: Topic[Any],
        partition: Callable[[str], str],
        name: str,
        traits: Mapping[str, str],
        qos: LinkQos,
    ) -> None:
        assert participant.entity is not None
        self._participant = participant
        self._topic = topic
        self._partition = partition
        self._role = traits["role"]
        self._extra = qos.of_writers
        self.writers: dict[str, FrameWriter] = {}
        """By the name of the member."""
        self._subscriber = Subscriber(participant.entity, qos=partition_qos(partition(name)))
        self._reader = SerializedReader(
            participant,
            DataReader(self._subscriber, topic, qos=reader_qos(traits=traits, extra=qos.of_reader)),
            piece_from_octets,
        )

    def open(self, name: str) -> None:
        """Have a writer to a member."""
        if name not in self.writers:
            self.writers[name] = FrameWriter(
                self._participant,
                self._topic,
                partition=self._partition(name),
                traits={"role": self._role},
                extra=self._extra,
            )

    def discard(self, name: str) -> None:
        """Delete the writer to a member, if there is one."""
        writer = self.writers.pop(name, None)
        if writer is not None:
            writer.discard()

    def poll(self) -> Iterator[Piece]:
        """Yield the next received fragments, a bounded number a call, without waiting."""
        for _ in range(_TAKES_MAX):
            pieces = self._reader.take(_TAKE_COUNT)
            if pieces is None:
                break
            yield from pieces

    def flush(self) -> bool:
        """Send waiting fragments; return False while some wait for space in a peer's cache."""
        done = True
        for writer in self.writers.values():
            done = writer.flush() and done
        return done

    def close(self) -> None:
        """Delete the reader and the writers."""
        for writer in self.writers.values():
            writer.close()
        self.writers.clear()
        self._reader.close()
        close_entity(self._subscriber)


class ReplicaLink:
    """The `Link` over DDS: exchanges the messages of one process with the other members of its cluster.

    Args:
        participant: a participant in the domain of the messages.
        cluster: name of the cluster, common to all members; messages of other clusters are not received.
        own: the announcement of this process: application name, run and start time.
        qos: configured quality of service of the readers and the writers, in addition to the default.
        silence_ns: duration of a member's silence after which another process of its name is accepted.
        clock: monotonic time in nanoseconds.
        signer: signs messages and checks those of others; None: the cluster has no key.
        numbers: of this process's fragments; None: this is its only link.
    """

    def __init__(
        self,
        participant: Participant,
        cluster: str,
        own: Seen,
        qos: LinkQos = AS_BY_DEFAULT,
        *,
        silence_ns: Nanoseconds = SILENCE_NS,
        clock: Callable[[], Nanoseconds] = time.monotonic_ns,
        signer: LetterSigner | None = None,
        numbers: FragmentNumbers | None = None,
    ) -> None:
        self._cluster = cluster
        self._name = name = own.name
        self.box = LetterBox(own, REPLICATION_TOPIC, participant.boundary, silence_ns, clock, signer, numbers)
        self.dropped_count = 0
        """Number of messages dropped: the member was unknown or did not read, or sending failed."""
        traits = {
            "role": _ROLE,
            "cluster": cluster.encode().hex(),
            "name": name.encode().hex(),
            "run": own.run,
            "since": str(own.started_at_ns),
        } | ({"joins": "yes"} if own.joins else {})
        topic = participant.topic(REPLICATION_TOPIC, WireReplicaPiece)
        # First, so that a member that has discovered the other reader has mostly discovered this one.
        self._passing = _Route(
            participant, topic, lambda each: self._partition(each, _PASSING_ROLE), name,
            traits | {"role": _PASSING_ROLE}, qos,
        )  # fmt: skip
        self._ordered = _Route(participant, topic, self._partition, name, traits, qos)
        self._passing_peers: dict[int, str] = {}
        """The members by the handle of their reader of messages that pass others."""

    # Members.

    def appeared(self, endpoint: RemoteEndpoint) -> None:
        """Register another process's reader of replica messages, if it is of this cluster.

        Raises:
            Malformed: its announcement cannot be decoded.
        """
        traits = endpoint.traits
        role = traits.get("role")
        if endpoint.is_writer or endpoint.topic_name != REPLICATION_TOPIC or role not in (_ROLE, _PASSING_ROLE):
            return
        try:
            cluster, name = (bytes.fromhex(traits.get(key, "")).decode() for key in ("cluster", "name"))
            seen = Seen(name, traits.get("run", ""), int(traits.get("since", "")), "joins" in traits)
        except ValueError as error:
            raise Malformed(f"the announcement of a replica cannot be read: {error}") from error
        if cluster != self._cluster:
            return
        if role == _PASSING_ROLE:
            if name != self._name and len(self._passing_peers) < PEERS_MAX:
                self._passing_peers[endpoint.handle] = name
                self._passing.open(name)
        elif self.box.appeared(endpoint.handle, seen):
            self._ordered.open(name)

    def vanished(self, endpoint: RemoteEndpoint) -> None:
        """Remove a reader, and delete the writer to its member if it was the last of that name."""
        passing = self._passing_peers.pop(endpoint.handle, "")
        if passing and passing not in self._passing_peers.values():
            self._passing.discard(passing)
        self._ordered.discard(self.box.vanished(endpoint.handle))

    @property
    def peers(self) -> frozenset[str]:
        """The names of the other members that are discovered now."""
        return self.box.peers

    @property
    def joining(self) -> frozenset[str]:
        """Those of them that join a cluster which was formed."""
        return self.box.joining

    @property
    def namesake(self) -> Seen | None:
        """Another process that announces this member's name, or None."""
        return self.box.namesake

    @property
    def unproven(self) -> Mapping[str, LetterDenial]:
        """The members of which no message is accepted, by name, with the reason for which the last one was refused."""
        return self.box.unproven

    def pop_is_changed(self) -> bool:
        """Return whether a process of the cluster appeared or vanished since the last call."""
        return self.box.pop_is_changed()

    # Messages.

    def poll(self) -> list[ReceivedLetter]:
        """Return the messages completed by the next received fragments, a bounded number a call, without waiting.

        Those that pass others are first.
        """
        received: list[ReceivedLetter] = []
        for route in (self._passing, self._ordered):
            for piece in route.poll():
                received += self.box.receive(piece, passes=route is self._passing)
        return received

    def send(self, recipients: Sequence[str], members: Sequence[str], frames: Sequence[Frame]) -> None:
        """Send a message to members; it is lost for those that are not discovered or do not read."""
        passing = [frame for frame in frames if passes(frame)]
        if not passing:
            self._send_ordered(recipients, members, frames)
            return
        able = [each for each in recipients if each in self._passing.writers]
        self._put(self._passing, self._reading(self._passing, able), members, passing)
        if ordered := [frame for frame in frames if not passes(frame)]:
            self._send_ordered(able, members, ordered)
        self._send_ordered([each for each in recipients if each not in able], members, frames)

    def _send_ordered(self, recipients: Sequence[str], members: Sequence[str], frames: Sequence[Frame]) -> None:
        reading, writers = self._reading(self._ordered, recipients), self._ordered.writers
        slow = [each for each in reading if writers[each].backlog_count > WAITING_PIECES_MAX]
        self._put(self._ordered, [each for each in reading if each not in slow], members, frames)
        if slow:
            without_samples = [frame for frame in frames if not has_samples(frame)]
            if without_samples:  # a message without frames would only add to what waits
                self._put(self._ordered, slow, members, without_samples)
            else:
                self.dropped_count += len(slow)

    def _reading(self, route: _Route, recipients: Sequence[str]) -> list[str]:
        """Return the members that are discovered and read at all."""
        writers = route.writers
        reading = [
            each
            for each in recipients
            if each in writers and writers[each].backlog_count <= WAITING_PIECES_WITHOUT_SAMPLES_MAX
        ]
        self.dropped_count += len(recipients) - len(reading)
        return reading

    def _put(self, route: _Route, recipients: Sequence[str], members: Sequence[str], frames: Sequence[Frame]) -> None:
        if not recipients:
            return
        try:
            messages = list(self.box.messages(recipients, members, frames, passes=route is self._passing))
        except OverflowError:
            self.dropped_count += len(recipients)
            return
        for recipient in recipients:
            try:
                for piece in itertools.chain.from_iterable(messages):
                    route.writers[recipient].put(piece)
            except DDSException:
                self.dropped_count += 1

    def flush(self) -> bool:
        """Send waiting fragments; return False while some wait for space in a peer's cache: call it again soon."""
        is_passing_done = self._passing.flush()
        return self._ordered.flush() and is_passing_done

    def close(self) -> None:
        """Delete the readers and the writers, which the peers notice at once."""
        self._passing.close()
        self._ordered.close()

    def _partition(self, name: str, *of: str) -> str:
        return hashlib.sha256("\0".join((self._cluster, name, *of)).encode()).hexdigest()[:32]
