"""Who is there: the readers and writers of a domain and what they say of themselves (manual, sections 2.5 and 2.13).

Decides: how an endpoint tells its role. The manual's property `dds.data_reader.shared_subscriber_name` makes a reader
a queue consumer; our endpoints add `qsctl;key=value;…` as user data, which every DDS implementation can set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription
from cyclonedds.core import InstanceState, Qos, ReadCondition, SampleState, ViewState
from cyclonedds.qos import Policy

from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, guid_from_hex
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.raw import close_entity

SHARED_SUBSCRIBER_PROPERTY: Final = "dds.data_reader.shared_subscriber_name"
QUEUING_SERVICE: Final = "QUEUING_SERVICE_QOS"
"""What the manual's `service` field says of a queuing service's endpoints."""

_PREFIX: Final = "qsctl"
_TAKE_COUNT: Final = 500


@dataclass(frozen=True, slots=True)
class RemoteEndpoint:
    """A reader or writer in the domain. `traits` is what its user data says."""

    handle: int
    is_writer: bool
    topic_name: str
    partitions: tuple[str, ...] = ()
    traits: Mapping[str, str] = field(default_factory=dict)

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
    """Who came and who went since the last look, in this order."""

    appeared: tuple[RemoteEndpoint, ...] = ()
    vanished: tuple[RemoteEndpoint, ...] = ()


def traits_policy(**traits: str) -> Any:
    """The user data that tells these traits."""
    return Policy.Userdata(";".join([_PREFIX, *(f"{key}={value}" for key, value in traits.items())]).encode())


class Presence:
    """Watches the builtin topics of one participant."""

    def __init__(self, participant: Participant) -> None:
        self._participant = participant
        assert participant.entity is not None
        self._known: dict[int, RemoteEndpoint] = {}
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
        appeared: list[RemoteEndpoint] = []
        vanished: list[RemoteEndpoint] = []
        for reader, is_writer, _ in self._readers:
            while samples := reader.take(_TAKE_COUNT):
                for sample in samples:
                    handle = sample.sample_info.instance_handle
                    alive = sample.sample_info.instance_state == InstanceState.Alive
                    if not alive or not sample.sample_info.valid_data:
                        gone = self._known.pop(handle, None)
                        if gone is not None:
                            vanished.append(gone)
                    elif handle not in self._known:
                        endpoint = _endpoint_of(handle, is_writer, sample.topic_name, sample.qos)
                        self._known[handle] = endpoint
                        appeared.append(endpoint)
        if not appeared and not vanished:
            return _NO_CHANGES
        # An endpoint that came and went between two looks is told of in neither list.
        fleeting = {each.handle for each in appeared} & {each.handle for each in vanished}
        return Changes(
            tuple(each for each in appeared if each.handle not in fleeting),
            tuple(each for each in vanished if each.handle not in fleeting),
        )

    def close(self) -> None:
        """Stop watching."""
        for reader, _, condition in self._readers:
            self._participant.waiter.detach(condition)
            close_entity(condition)
            close_entity(reader)
        self._readers.clear()


_NO_CHANGES: Final = Changes()


def _endpoint_of(handle: int, is_writer: bool, topic_name: str, qos: Qos) -> RemoteEndpoint:
    traits: dict[str, str] = {}
    partitions: tuple[str, ...] = ()
    for policy in qos:
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
    return RemoteEndpoint(handle, is_writer, topic_name, partitions, traits)
