"""The readers and writers of a domain, with the traits that they announce [QS 2.5 and 2.13].

Decides: how an endpoint announces its role. The property `dds.data_reader.shared_subscriber_name` [QS 2.5] makes a
reader a queue consumer. Our endpoints add traits, `qsctl;key=value;…`, as user data, which every DDS implementation can
set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription
from cyclonedds.core import InstanceState, ReadCondition
from cyclonedds.qos import Policy

from qsctl.core.client.consumer import UNACKED_THRESHOLD_MAX
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, decimal_from_text, guid_from_hex
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.announcements import (
    SHARED_SUBSCRIBER_PROPERTY,
    Announcement,
    announcement_of,
    take_endpoints,
)
from qsctl.transport.dds.serving.loop_time import TimeShare
from qsctl.transport.dds.wire.raw import close_entity

QUEUING_SERVICE: Final = "QUEUING_SERVICE_QOS"
"""The `service` field of a queuing service's endpoints [QS 2.13]."""

DEPARTED_MAX: Final = 10_000
"""Number of remembered vanished endpoints, by which one that reappears is recognized."""

_PREFIX: Final = "qsctl"
_PREFIX_OCTETS: Final = _PREFIX.encode()
TAKE_COUNT: Final = 25
"""Number of endpoints taken in one call: a fraction of a slice of the loop's time."""

_TAKES_MAX: Final = 20
_PREFIX_BYTES: Final = 12
"""Length of the prefix of an endpoint's 16-octet key that all endpoints of a participant share."""


class RemoteEndpoint(msgspec.Struct, frozen=True):
    """A reader or writer in the domain. `traits` are decoded from its user data.

    `returned` marks an endpoint that reappeared with the same key: its process was unreachable for longer than its
    lease, but never left. Samples sent to it meanwhile are lost, and it may not have noticed.
    """

    handle: int
    is_writer: bool
    topic_name: str
    partitions: tuple[str, ...] = ()
    traits: dict[str, str] = {}
    key: bytes = b""
    returned: bool = False
    guid: Guid = NIL_GUID
    """The virtual GUID that it announces; nil: none."""
    source_guid: Guid = NIL_GUID
    """The source GUID that a requester's reader announces; nil: none."""
    unacked_threshold: int | None = None
    """The threshold that a consumer's reader announces; None: the queue's applies."""
    type_name: str = ""
    lifespan_ns: Nanoseconds = INFINITE_NS
    representations: tuple[int, ...] = ()
    is_described: bool = False
    """`representations` and `is_described` as in `Announcement`."""

    @property
    def participant(self) -> bytes:
        """Return the participant that it belongs to, as the prefix of its key."""
        return participant_of(self.key)


@dataclass(frozen=True, slots=True)
class Changes:
    """Endpoints that appeared and vanished since the last check; one that vanished and reappeared is in both."""

    appeared: tuple[RemoteEndpoint, ...] = ()
    vanished: tuple[RemoteEndpoint, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.appeared or self.vanished)


def participant_of(key: bytes) -> bytes:
    """Return the participant that an endpoint belongs to, from the endpoint's key."""
    return key[:_PREFIX_BYTES]


def traits_policy(**traits: str) -> Any:
    """Return the USER_DATA policy that announces these traits."""
    return Policy.Userdata(";".join([_PREFIX, *(f"{key}={value}" for key, value in traits.items())]).encode())


class Discovery:
    """A monitor of the built-in topics of one participant."""

    def __init__(self, participant: Participant) -> None:
        self._participant = participant
        assert participant.entity is not None
        self._rests = False
        """Whether announcements are left unread for a while, so that `Waiter.ready` does not return this object."""
        self._known: dict[int, RemoteEndpoint] = {}
        self._generations: dict[int, int] = {}
        self._departed: dict[bytes, None] = {}
        self._endpoint_counts: Counter[bytes] = Counter()
        """The numbers of known endpoints of each participant; `_consumer_counts` of its consumers."""
        self._consumer_counts: Counter[bytes] = Counter()
        self._readers: list[tuple[BuiltinDataReader, bool, ReadCondition]] = []
        for topic, is_writer in ((BuiltinTopicDcpsPublication, True), (BuiltinTopicDcpsSubscription, False)):
            reader = BuiltinDataReader(participant.entity, topic)
            self._readers.append((reader, is_writer, participant.waiter.watch(reader, self)))

    def endpoints(self) -> tuple[RemoteEndpoint, ...]:
        """Return the endpoints that exist now."""
        return tuple(self._known.values())

    def look(self, ready: Collection[object] | None = None) -> Changes:
        """Return the changes since the last call; cheap if there are none.

        Args:
            ready: the result of `Waiter.ready`; None: it was not called.
        """
        if ready is not None and not self._rests and self not in ready:
            return _NO_CHANGES
        changed: dict[int, RemoteEndpoint | None] = {}
        triggered = [each for each in self._readers if each[2].triggered]
        if not triggered:
            return _NO_CHANGES
        time = self._participant.boundary.time
        share = time.noticing(self)
        begins = share.begins(self)
        self._rests = not begins
        for _, _, condition in triggered:
            self._participant.waiter.mute(condition, is_muted=not begins)
        if not begins:
            return _NO_CHANGES
        # Both readers are read, however much the first has.
        is_left = [self._take(reader, share, changed, is_writer=is_writer) for reader, is_writer, _ in triggered]
        time.note_left(self, is_left=any(is_left))
        share.end()
        if not changed:
            return _NO_CHANGES
        # An endpoint that appeared and vanished between two checks is in neither list.
        now = self._known
        return Changes(
            tuple(now[handle] for handle in changed if handle in now),
            tuple(each for each in changed.values() if each is not None),
        )

    def _take(
        self,
        reader: BuiltinDataReader,
        share: TimeShare,
        changed: dict[int, RemoteEndpoint | None],
        *,
        is_writer: bool,
    ) -> bool:
        """Process announcements of a reader within the time share; return whether more are left."""
        boundary = self._participant.boundary
        source = "the discovery of writers" if is_writer else "the discovery of readers"
        for _ in range(_TAKES_MAX):
            taken = take_endpoints(reader, TAKE_COUNT)
            boundary.each(
                source,
                taken,
                lambda each: self._note(announcement_of(each), is_writer, changed),
                lambda at, taken=taken: taken[at].key.hex(),  # type: ignore[misc]
            )
            if len(taken) < TAKE_COUNT:
                return False
            if share.is_over:
                break
        return True

    def _note(self, sample: Announcement, is_writer: bool, changed: dict[int, RemoteEndpoint | None]) -> None:
        """Record the endpoint that a sample announces; `changed` receives the endpoint that it replaces, or None.

        Raises:
            Malformed: the announcement of an existing endpoint cannot be decoded: the endpoint is treated as absent.
        """
        info = sample.info
        handle = info.instance_handle
        # It counts the losses of the endpoint, even if it reappears before the next check.
        generation = info.disposed_generation_count + info.no_writers_generation_count
        alive = info.instance_state == InstanceState.Alive and info.valid_data
        known = self._known.get(handle)
        if alive and known is not None and self._generations[handle] == generation:
            return
        if known is not None:
            changed.setdefault(handle, known)
            del self._known[handle]
            del self._generations[handle]
            self._count(known, -1)
            self._departed[known.key] = None
            if len(self._departed) > DEPARTED_MAX:
                del self._departed[next(iter(self._departed))]
        if alive:
            endpoint = endpoint_of(sample, is_writer)
            self._require_room(endpoint)
            changed.setdefault(handle, None)
            if endpoint.key in self._departed:
                del self._departed[endpoint.key]
                endpoint = msgspec.structs.replace(endpoint, returned=True)
            self._known[handle] = endpoint
            self._count(endpoint, 1)
            self._generations[handle] = generation

    @property
    def most_endpoints_count(self) -> int:
        """Return the number of endpoints of the participant that has the most."""
        return max(self._endpoint_counts.values(), default=0)

    @property
    def most_consumers_count(self) -> int:
        """Return the number of consumers of the participant that has the most."""
        return max(self._consumer_counts.values(), default=0)

    def _require_room(self, endpoint: RemoteEndpoint) -> None:
        """Check that the endpoint's participant does not exceed the limits per peer.

        Raises:
            Malformed: it has the maximum number of endpoints or consumers already.
        """
        limits, participant = self._participant.boundary.peer_limits, endpoint.participant
        if 0 <= limits.endpoints_max <= self._endpoint_counts[participant]:
            raise Malformed(f"its participant has more readers and writers than a peer may: {limits.endpoints_max}")
        if _is_consumer(endpoint) and 0 <= limits.consumers_max <= self._consumer_counts[participant]:
            raise Malformed(f"its participant has more consumers than a peer may: {limits.consumers_max}")

    def _count(self, endpoint: RemoteEndpoint, change: int) -> None:
        _change_count(self._endpoint_counts, endpoint.participant, change)
        if _is_consumer(endpoint):
            _change_count(self._consumer_counts, endpoint.participant, change)

    def close(self) -> None:
        """Stop watching."""
        self._participant.boundary.time.leave(self)
        for reader, _, condition in self._readers:
            self._participant.waiter.unwatch(condition)
            close_entity(reader)
        self._readers.clear()


_NO_CHANGES: Final = Changes()


def _change_count(counts: Counter[bytes], participant: bytes, change: int) -> None:
    if count := counts[participant] + change:
        counts[participant] = count
    else:
        del counts[participant]


def _is_consumer(endpoint: RemoteEndpoint) -> bool:
    return not endpoint.is_writer and "subscriber" in endpoint.traits


def endpoint_of(sample: Announcement, is_writer: bool) -> RemoteEndpoint:
    """Decode an endpoint's announcement.

    Raises:
        Malformed: a text is not UTF-8, or one of our traits has an invalid value.
    """
    traits: dict[str, str] = {}
    if sample.user_data.startswith(_PREFIX_OCTETS):
        head, *pairs = sample.user_data.split(b";")
        for pair in pairs if head == _PREFIX_OCTETS else ():
            key, _, value = _text("user data", pair).partition("=")
            traits[key] = value
    if sample.shared_subscriber is not None:
        traits.setdefault("subscriber", _text(SHARED_SUBSCRIBER_PROPERTY, sample.shared_subscriber))
    return RemoteEndpoint(
        sample.info.instance_handle,
        is_writer,
        sample.topic_name,
        tuple([_text("a partition", each) for each in sample.partitions]),
        traits,
        sample.key,
        guid=_guid(traits, "guid") if traits else NIL_GUID,
        source_guid=_guid(traits, "source") if traits else NIL_GUID,
        unacked_threshold=_threshold(traits) if traits else None,
        type_name=sample.type_name,
        lifespan_ns=sample.lifespan_ns,
        representations=sample.representations,
        is_described=sample.is_described,
    )


def _text(what: str, octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"{what} is not UTF-8: {octets[:64]!r}") from error


def _guid(traits: Mapping[str, str], key: str) -> Guid:
    try:
        return guid_from_hex(traits.get(key, ""))
    except UsageError as error:
        raise Malformed(f"the user data has {key}={traits[key][:64]!r}, which is not a GUID") from error


def _threshold(traits: Mapping[str, str]) -> int | None:
    text = traits.get("threshold")
    if text is None:
        return None
    threshold = decimal_from_text(text, UNACKED_THRESHOLD_MAX)
    if threshold is None:
        raise Malformed(f"the user data has threshold={text[:64]!r}; it is a number from 0 to {UNACKED_THRESHOLD_MAX}")
    return threshold
