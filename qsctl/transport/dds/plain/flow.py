"""Domain instances in which plain samples are read, separate from all other traffic of the service.

Decides: which traffic a full reader can block. Cyclone DDS has one thread per domain instance that delivers samples to
readers, and it waits while a reader is full: that is the flow control which blocks reliable writers. In the main
instance it would wait for ever, with the acknowledgments that make room queued behind it. So plain samples are read in
instances of their own, which appear as one domain to peers, and the topics of a service are distributed over them: a
full queue blocks its own producers and few others.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import InstanceState

from qsctl.identity import Guid
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.diagnosis.incompatible_peers import IncompatiblePeers
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.announcements import EndpointSample, take_endpoints
from qsctl.transport.dds.peers.discovery import TAKE_COUNT
from qsctl.transport.dds.serving.loop_time import TimeShare
from qsctl.transport.dds.wire.raw import close_entity

INSTANCES_MAX: Final = 8
"""Maximum number of domain instances per participant for plain samples; topics share them. Each has five threads."""

DEPARTED_WRITERS_MAX: Final = 10_000
"""Number of remembered writers that are gone and may have left unread samples."""

TAKES_MAX: Final = 20

COPY: Final = b"qsctl;role=copy"
"""User data of a writer that repeats a queue's samples for observers: its samples are not enqueued."""

TIMESTAMP_END_NS: Final[Nanoseconds] = 2**62
"""First source timestamp that is treated as missing."""


class PlainWriter:
    """A writer without qsctl: its process, and the numbering of its samples.

    Cyclone DDS does not expose the sequence number of a sample. The source timestamp replaces it: the writer assigns
    it, it increases, even across restarts of the service or of the writer's process, and it is the same for every
    replica.
    """

    __slots__ = ("_last_number", "guid", "is_copy", "is_described", "lifespan_ns")

    def __init__(self, said: EndpointSample) -> None:
        self.guid = Guid(said.key)
        self.lifespan_ns = said.policies.lifespan_ns
        self.is_copy = said.policies.user_data == COPY
        self.is_described = said.is_described
        self._last_number = 0

    def number(self, source_timestamp_ns: Nanoseconds, now: Nanoseconds) -> int:
        """Return the sequence number of its next sample: the timestamp, or the next free number above it."""
        if not 0 < source_timestamp_ns < TIMESTAMP_END_NS:
            source_timestamp_ns = now
        self._last_number = max(source_timestamp_ns, self._last_number + 1)
        return self._last_number


class FlowDomain:
    """A domain instance for plain samples: a participant and its writers; `of_names` as in `IncompatiblePeers`.

    It tracks writers itself instead of through `Discovery`, which would miss a writer that appeared, wrote and vanished
    between two checks.
    """

    def __init__(self, participant: Participant, *, of_names: bool = False) -> None:
        self.participant = participant
        self._incompatible = IncompatiblePeers(participant, of_names=of_names)
        assert participant.entity is not None
        self._announcements: BuiltinDataReader | None = BuiltinDataReader(
            participant.entity, BuiltinTopicDcpsPublication
        )
        self._writers: dict[int, PlainWriter] = {}
        self._departed: OrderedDict[int, PlainWriter] = OrderedDict()

    def look(self) -> None:
        """Process appeared and vanished writers within the time share; cheap if there are none."""
        self._incompatible.turn()
        time = self.participant.boundary.time
        share = time.noticing(self)
        if not share.begins(self, wakes=False):
            return
        time.note_left(self, is_left=self._take_notice(share))
        share.end()

    def _take_notice(self, share: TimeShare | None = None) -> bool:
        """Process all announcements, or those within the share; return whether more are left."""
        boundary = self.participant.boundary
        for _ in range(TAKES_MAX):
            if self._announcements is None:
                return False
            if share is not None and share.is_over:
                return True
            taken = take_endpoints(self._announcements, TAKE_COUNT)
            boundary.each(
                "the discovery of writers",
                taken,
                self._note,
                lambda at, taken=taken: taken[at].key.hex(),  # type: ignore[misc]
            )
            if len(taken) < TAKE_COUNT:
                return False
        return True

    def _note(self, said: EndpointSample) -> None:
        handle = said.info.instance_handle
        writer = self._writers.get(handle) or self._departed.pop(handle, None)
        if writer is None and said.info.valid_data:
            writer = PlainWriter(said)
        if writer is None:
            return
        if said.info.instance_state == InstanceState.Alive:
            self._writers[handle] = writer
            return
        self._writers.pop(handle, None)
        self._departed[handle] = writer
        if len(self._departed) > DEPARTED_WRITERS_MAX:
            self._departed.popitem(last=False)

    def writer(self, handle: int) -> PlainWriter | None:
        """Return the writer with a sample's handle, even one that has left; None: it is unknown."""
        found = self._writers.get(handle) or self._departed.get(handle)
        if found is None:
            self._take_notice()  # a writer is announced before its samples arrive
            found = self._writers.get(handle) or self._departed.get(handle)
        return found

    def close(self) -> None:
        """Leave the domain."""
        self._incompatible.close()
        self.participant.boundary.time.leave(self)
        close_entity(self._announcements)
        self._announcements = None
        self.participant.close()


class FlowDomains:
    """The domain instances of one participant of a service, opened when a plain producer exists.

    Args:
        beside: the service's participant, whose domain, settings, waiter and boundary they share.
    """

    def __init__(self, beside: Participant) -> None:
        self._beside = beside
        self._open: dict[tuple[int, str], FlowDomain] = {}
        self._topics: list[str] = []
        self._outgoing: Participant | None = None

    def of_topic(self, topic_name: str, kind: str = "") -> FlowDomain:
        """Return the instance in which a topic is read.

        Args:
            topic_name: the topic.
            kind: of types matched by name, empty for types matched by definition: a participant accepts one type per
                topic, so each kind has a participant of its own in the instance.

        Raises:
            Refused, Unavailable: the instance cannot be created.
        """
        if topic_name not in self._topics:
            self._topics.append(topic_name)
        place = self._topics.index(topic_name) % INSTANCES_MAX, kind
        if place not in self._open:
            self._open[place] = FlowDomain(self._participant(place[0] + 1), of_names=bool(kind))
        return self._open[place]

    def outgoing(self) -> Participant:
        """Return the participant of an instance without readers, in which nothing is ever blocked."""
        if self._outgoing is None:
            self._outgoing = self._participant(INSTANCES_MAX + 1)
        return self._outgoing

    def _participant(self, instance: int) -> Participant:
        beside = self._beside
        return Participant(
            beside.domain_id,
            beside.settings,
            name=f"{beside.name}: plain samples",
            waiter=beside.waiter,
            boundary=beside.boundary,
            instance=instance,
        )

    def look(self) -> None:
        """Process appeared and vanished writers in each instance."""
        for each in self._open.values():
            each.look()

    def close(self) -> None:
        """Leave the domain with all instances."""
        for each in self._open.values():
            each.close()
        if self._outgoing is not None:
            self._outgoing.close()
            self._outgoing = None
        self._open.clear()
        self._topics.clear()


def remaining_ns(lifespan_ns: Nanoseconds, source_timestamp_ns: Nanoseconds, now: Nanoseconds) -> Nanoseconds:
    """Return the rest of a lifespan that began at a source timestamp; at least 0.

    A timestamp in the future, of a clock that is ahead, leaves the whole lifespan.
    """
    if lifespan_ns >= INFINITE_NS:
        return INFINITE_NS
    age_ns = max(0, now - source_timestamp_ns) if 0 < source_timestamp_ns < TIMESTAMP_END_NS else 0
    return max(0, lifespan_ns - age_ns)
