"""Who is there: the readers and writers of a domain and what they say of themselves (manual, sections 2.5 and 2.13).

Decides: how an endpoint tells its role. The manual's property `dds.data_reader.shared_subscriber_name` makes a reader
a queue consumer; our endpoints add `qsctl;key=value;…` as user data, which every DDS implementation can set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription
from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState
from cyclonedds.qos import Policy

from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, guid_from_hex
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.raw import ONE_THREAD_AT_A_TIME, close_entity

SHARED_SUBSCRIBER_PROPERTY: Final = "dds.data_reader.shared_subscriber_name"
QUEUING_SERVICE: Final = "QUEUING_SERVICE_QOS"
"""What the manual's `service` field says of a queuing service's endpoints."""

DEPARTED_MAX: Final = 10_000
"""Departed endpoints that are remembered, to know one that comes back."""

_PREFIX: Final = "qsctl"
_TAKE_COUNT: Final = 500
_PREFIX_BYTES: Final = 12
"""Of an endpoint's 16-byte key, what all endpoints of a participant have in common."""


@dataclass(frozen=True, slots=True)
class RemoteEndpoint:
    """A reader or writer in the domain. `traits` is what its user data says.

    One that `returned` was there before under the same key: its process was out of sight for longer than its lease, and
    never left. What it was sent meanwhile is lost, and it need not know that it was missed.
    """

    handle: int
    is_writer: bool
    topic_name: str
    partitions: tuple[str, ...] = ()
    traits: Mapping[str, str] = field(default_factory=dict)
    key: bytes = b""
    returned: bool = False

    @property
    def participant(self) -> bytes:
        """The participant that it belongs to: the prefix of its key."""
        return participant_of(self.key)

    @property
    def guid(self) -> Guid:
        """The virtual GUID that it gave, or nil."""
        try:
            return guid_from_hex(self.traits.get("guid", ""))
        except UsageError:
            return NIL_GUID

    @property
    def source_guid(self) -> Guid:
        """The source GUID that a requester's reader gave, or nil."""
        try:
            return guid_from_hex(self.traits.get("source", ""))
        except UsageError:
            return NIL_GUID

    @property
    def unacked_threshold(self) -> int | None:
        """The bound that a consumer's reader set itself, or None: the queue's holds."""
        text = self.traits.get("threshold", "")
        return int(text) if text.isdigit() else None


@dataclass(frozen=True, slots=True)
class Changes:
    """Who came and who went since the last look; who went and came back is in both, and went first."""

    appeared: tuple[RemoteEndpoint, ...] = ()
    vanished: tuple[RemoteEndpoint, ...] = ()


def participant_of(key: bytes) -> bytes:
    """The participant that an endpoint belongs to, by the endpoint's key."""
    return key[:_PREFIX_BYTES]


def traits_policy(**traits: str) -> Any:
    """The user data that tells these traits."""
    return Policy.Userdata(";".join([_PREFIX, *(f"{key}={value}" for key, value in traits.items())]).encode())


class Presence:
    """Watches the builtin topics of one participant."""

    def __init__(self, participant: Participant) -> None:
        self._participant = participant
        assert participant.entity is not None
        self._known: dict[int, RemoteEndpoint] = {}
        self._generations: dict[int, int] = {}
        self._departed: dict[bytes, None] = {}
        self._readers: list[tuple[BuiltinDataReader, bool, ReadCondition]] = []
        for topic, is_writer in ((BuiltinTopicDcpsPublication, True), (BuiltinTopicDcpsSubscription, False)):
            reader = BuiltinDataReader(participant.entity, topic)
            condition = ReadCondition(reader, ViewState.Any | InstanceState.Any | SampleState.Any)
            participant.waiter.attach(condition)
            self._readers.append((reader, is_writer, condition))

    def endpoints(self) -> tuple[RemoteEndpoint, ...]:
        """Everybody who is there now."""
        return tuple(self._known.values())

    def look(self) -> Changes:
        """What changed; cheap when nothing did."""
        changed: dict[int, RemoteEndpoint | None] = {}
        for reader, is_writer, _ in self._readers:
            while samples := _taken(reader):
                for sample in samples:
                    self._note(sample, is_writer, changed)
        if not changed:
            return _NO_CHANGES
        # One that came and went between two looks is told of in neither list.
        now = self._known
        return Changes(
            tuple(now[handle] for handle in changed if handle in now),
            tuple(each for each in changed.values() if each is not None),
        )

    def _note(self, sample: Any, is_writer: bool, changed: dict[int, RemoteEndpoint | None]) -> None:
        """Keep what a sample says. `changed` has whom this look found in the place of the new one, or nobody."""
        info = sample.sample_info
        handle = info.instance_handle
        # It counts how often the endpoint was lost, also where it is back before anybody looked.
        generation = info.disposed_generation_count + info.no_writers_generation_count
        alive = info.instance_state == InstanceState.Alive and info.valid_data
        known = self._known.get(handle)
        if alive and known is not None and self._generations[handle] == generation:
            return
        if known is not None:
            changed.setdefault(handle, known)
            del self._known[handle]
            del self._generations[handle]
            self._departed[known.key] = None
            if len(self._departed) > DEPARTED_MAX:
                del self._departed[next(iter(self._departed))]
        if alive:
            changed.setdefault(handle, None)
            endpoint = _endpoint_of(sample, is_writer)
            if endpoint.key in self._departed:
                del self._departed[endpoint.key]
                endpoint = replace(endpoint, returned=True)
            self._known[handle] = endpoint
            self._generations[handle] = generation

    def close(self) -> None:
        """Stop watching."""
        for reader, _, condition in self._readers:
            self._participant.waiter.detach(condition)
            close_entity(condition)
            close_entity(reader)
        self._readers.clear()


_NO_CHANGES: Final = Changes()


def _taken(reader: BuiltinDataReader) -> list[Any]:
    with ONE_THREAD_AT_A_TIME:
        taken: list[Any] = reader.take(_TAKE_COUNT)
        return taken


def _endpoint_of(sample: Any, is_writer: bool) -> RemoteEndpoint:
    traits: dict[str, str] = {}
    partitions: tuple[str, ...] = ()
    for policy in sample.qos:
        if isinstance(policy, Policy.Partition):
            partitions = tuple(policy.partitions)
        elif isinstance(policy, Policy.Userdata):
            head, *pairs = policy.data.decode(errors="replace").split(";")
            if head == _PREFIX:
                for pair in pairs:
                    key, _, value = pair.partition("=")
                    traits[key] = value
        elif isinstance(policy, Policy.Property) and policy.key == SHARED_SUBSCRIBER_PROPERTY:
            traits.setdefault("subscriber", policy.value)
    handle = sample.sample_info.instance_handle
    return RemoteEndpoint(handle, is_writer, sample.topic_name, partitions, traits, sample.key.bytes)
