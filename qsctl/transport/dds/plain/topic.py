"""A topic's producers without qsctl: their samples in, acknowledgments out.

Decides: which writers of a topic are such producers. qsctl's clients write frames, of another type, on the same topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from qsctl.config.sample_types.types import TypeLibrary
from qsctl.core.messages import Inbound, QueueName, RunAccepted, Write, WriteAcknowledgment
from qsctl.core.queue.settings import UNLIMITED, SharedReaderQueueSettings
from qsctl.errors import NotFound, QsctlError
from qsctl.identity import Guid
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.plain._answers import ProducerAnswers
from qsctl.transport.dds.plain._copies import Copies
from qsctl.transport.dds.plain._idl import plain_class, write_topic
from qsctl.transport.dds.plain._intake import Intake, Origins, PlainReader
from qsctl.transport.dds.plain._payloads import payload_of
from qsctl.transport.dds.plain._sample_types import SampleTypes
from qsctl.transport.dds.plain.flow import FlowDomains, PlainWriter
from qsctl.transport.dds.plain.type_lookups import TypeLookups, has_key
from qsctl.transport.dds.qos import PLAIN_SAMPLES_MAX, map_qos

FRAME_TYPE: Final = "RTI::QueuingService::SampleFrame"

_SERVICE_ROLES: Final = frozenset({"service", "copy"})

DEFAULT_TYPE: Final = "DDS::Octets"
"""Type of the samples of a queue that declares none."""

ClassOf: TypeAlias = Callable[[str], type[Any]]
"""Return the binding's class of a type of the configuration; raises `QsctlError` if there is none."""


def class_of_builtin(type_name: str) -> type[Any]:
    """Return the class of a builtin type, for a service without types of its own.

    Raises:
        NotFound: the type is not builtin.
    """
    return TypeLibrary().class_of(type_name)


class PlainSurroundings(NamedTuple):
    """The parts of a service that the endpoints of applications without qsctl use.

    Attributes:
        flows: the domain instances in which their samples are read.
        class_of: the types of the configuration.
        lookups: the types that peers announce, for types that the configuration lacks.
        has_room: whether no sample waits outside a queue, so that its topic may be read.
    """

    flows: FlowDomains
    class_of: ClassOf
    lookups: Callable[[], TypeLookups]
    has_room: Callable[[QueueName], bool]


class PlainTopic:
    """The producers without qsctl of one topic. It has no DDS entity until one is discovered.

    Args:
        participant: of the service.
        participant_name: the name of the domain participant in the configuration.
        settings: of the queue for which the topic was opened: its type and its reader's QoS.
        queues: `<topic>@<subscriber>` by the full name of each queue of the topic.
        replicas: the identifiers of the replicas of replicated queues, by `<topic>@<subscriber>`.
        around: the parts of the service that it uses.
        owner: the object that `Waiter.ready` returns while there is data.
    """

    def __init__(
        self,
        participant: Participant,
        participant_name: str,
        settings: SharedReaderQueueSettings,
        queues: Mapping[QueueName, str],
        replicas: Mapping[str, Guid],
        around: PlainSurroundings,
        owner: object | None = None,
    ) -> None:
        self._participant = participant
        self.topic_name = settings.topic_name
        self.write_topic = write_topic(settings.topic_name)
        self._type_name = (settings.type_name or DEFAULT_TYPE).removeprefix("::")
        self._queues = queues
        self._around = around
        self._owner = owner
        self._extra = map_qos(settings.qos.get("datareader_qos", "")).policies
        waiting_max = settings.limits.waiting_count_max
        self._samples_max = PLAIN_SAMPLES_MAX if waiting_max == UNLIMITED else max(1, waiting_max)
        origins = Origins()
        self._answers = ProducerAnswers(participant, settings.topic_name, origins, replicas)
        payload = payload_of(self._type_name)
        self._intake = Intake(participant_name, settings.topic_name, payload, origins, self._answers.asks)
        self._types = SampleTypes(settings.topic_name, self._type_name, around.lookups, participant.boundary)
        self._plain: PlainReader | None = None
        """The reader of the type by its definition, in a file or by a peer."""
        self._by_name: dict[bool, PlainReader] = {}
        """Readers of the type by its name alone, by whether it has a key, for types without a known definition."""
        self._kinds_by_name: set[bool] = set()
        """The kinds of them, by whether the type has a key, that were ever opened."""
        self._numbered: PlainReader | None = None
        self._is_leaving = False
        self._copies = Copies(around.flows.outgoing, self.topic_name, self._type_name)
        self._replicas = replicas

    def appeared(self, endpoint: RemoteEndpoint) -> None:
        """Process an endpoint that appeared on any topic.

        Raises:
            Malformed: it requests acknowledgments without a partition of its own.
        """
        if endpoint.is_writer:
            if self._is_leaving:
                return
            if endpoint.topic_name == self.write_topic:
                self._open_numbered()
            elif endpoint.topic_name == self.topic_name and _is_plain(endpoint):
                self._open_for(endpoint)
        elif endpoint.topic_name == self._answers.topic_name:
            self._answers.reader_appeared(endpoint)
        elif endpoint.topic_name == self.topic_name and _is_plain(endpoint) and not self._replicas:
            # Each replica of a queue gets each sample: several copies would be of no use.
            self._open_for(endpoint)

    def copy(self, writes: Sequence[Write]) -> None:
        """Copy samples of qsctl's producers to observers."""
        if self._copies.are_wanted:
            self._copies.put(writes)

    def vanished(self, endpoint: RemoteEndpoint) -> None:
        """Stop sending to a vanished reader. Samples of a vanished writer are kept: it considers them delivered."""
        if not endpoint.is_writer and endpoint.topic_name == self._answers.topic_name:
            self._answers.reader_vanished(endpoint)
        elif endpoint.topic_name == self.topic_name:
            self._types.vanished(endpoint)
            if not endpoint.is_writer:
                self._copies.reader_vanished(endpoint)

    def poll(self, inbox: list[Inbound]) -> None:
        """Move up to a turn's share of samples into the inbox; none while a queue of the topic is full."""
        if self._types.is_looking_up:
            self._open_for_described()
        if self._plain is None and self._numbered is None and not self._by_name:
            return
        reads_on = self._has_room()
        for reader in (*self._by_name.values(), self._numbered):
            if reader is not None:
                reader.poll(inbox, reads_on=reads_on)
        if self._plain is not None:
            is_left = self._plain.poll(inbox, reads_on=reads_on)
            if self._types.is_outdated and reads_on and not is_left:
                self._adopt_next()

    @property
    def concerned(self) -> tuple[str, ...]:
        """Return the names of the DDS topics whose endpoints of peers may concern these producers."""
        return (self.topic_name, self.write_topic, self._answers.topic_name)

    @property
    def waits(self) -> bool:
        """Return whether polling is needed without new data: a reader is not watched, or a type is being looked up."""
        return (
            self._types.is_looking_up
            or self._types.is_outdated
            or any(reader is not None and not reader.is_watched for reader in self._readers())
        )

    @property
    def copies_are_wanted(self) -> bool:
        """Return whether there is an observer."""
        return self._copies.are_wanted

    def drain(self, inbox: list[Inbound]) -> None:
        """Read the samples that have arrived, while there is room for them, then close the readers.

        A service that stops in good order thus has all samples that its producers consider delivered.
        """
        self._is_leaving = True
        if not self._has_room():
            return
        for keyed, reader in list(self._by_name.items()):
            if not reader.poll(inbox, reads_on=True):
                self._by_name.pop(keyed).close()
        if self._plain is not None and not self._plain.poll(inbox, reads_on=True):
            self._plain.close()
            self._plain = None
        if self._numbered is not None and not self._numbered.poll(inbox, reads_on=True):
            self._numbered.close()
            self._numbered = None

    @property
    def is_draining(self) -> bool:
        """Return whether samples are left to read, and there is room for them."""
        return any(reader is not None for reader in self._readers()) and self._has_room()

    def _readers(self) -> tuple[PlainReader | None, ...]:
        return (*self._by_name.values(), self._plain, self._numbered)

    def _has_room(self) -> bool:
        return all(map(self._around.has_room, self._queues))

    def answer(self, label: str, guid: Guid, answers: Sequence[WriteAcknowledgment | RunAccepted]) -> bool:
        """Answer a producer for the queue `<topic>@<subscriber>`; return False if it is not one of these."""
        return self._answers.answer(label, guid, answers)

    def flush(self) -> bool:
        """Send this turn's answers and copies; return False if some answers wait for room."""
        self._copies.flush()
        return self._answers.flush()

    def close(self) -> None:
        """Delete all entities."""
        for reader in self._readers():
            if reader is not None:
                reader.close()
        self._answers.close()
        self._copies.close()

    def _open_for(self, endpoint: RemoteEndpoint) -> None:
        """Open the reader or the copies that an endpoint of the queue's type needs, or first look up its type.

        An endpoint whose type cannot be determined is reported, and is not matched.
        """
        try:
            data_type = self._around.class_of(self._type_name)
        except NotFound:
            adopted = self._types.adopted
            if not self._types.has_name(endpoint):
                return
            if endpoint.is_described and (endpoint.is_writer or adopted is None):
                self._types.look_up(endpoint)
            else:
                self._open_undescribed(endpoint)
        except QsctlError as error:
            self._types.refuse(endpoint, f"the service cannot have its type {self._type_name}: {error.message}")
        else:
            self._open(endpoint, data_type)

    def _open_undescribed(self, endpoint: RemoteEndpoint) -> None:
        """Open the reader or copies for an endpoint that matches by type name, including those of a described type."""
        adopted, keyed = self._types.adopted, has_key(endpoint.key)
        if adopted is not None and adopted.has_key is keyed:
            self._open(endpoint, adopted.data_type)
        elif not endpoint.is_writer:
            self._copies.reader_appeared(endpoint, self._types.by_name(endpoint))
        elif keyed not in self._kinds_by_name:
            kind = "by name, with a key" if keyed else "by name"
            self._by_name[keyed] = self._reader_of(self._types.by_name(endpoint), kind)
            self._kinds_by_name.add(keyed)

    def _open_for_described(self) -> None:
        found = self._types.turn()
        adopted = self._types.adopted
        if found and adopted is not None and not self._is_leaving:
            self._within_boundary(found, lambda endpoint: self._open(endpoint, adopted.data_type))

    def _adopt_next(self) -> None:
        """Replace the reader, whose writers are gone, by one of the type that a present writer describes."""
        if self._plain is not None:
            self._plain.close()
            self._plain = None
        endpoint, described = self._types.adopt_next()
        self._within_boundary([endpoint], lambda endpoint: self._open(endpoint, described.data_type))

    def _within_boundary(self, endpoints: list[RemoteEndpoint], opens: Callable[[RemoteEndpoint], None]) -> None:
        """Open the entities that endpoints need; report those that cannot be opened."""
        self._participant.boundary.each(
            "the endpoints that appeared", endpoints, opens, lambda at: endpoints[at].key.hex()
        )

    def _open(self, endpoint: RemoteEndpoint, data_type: type[Any]) -> None:
        if not endpoint.is_writer:
            self._copies.reader_appeared(endpoint, data_type)
        elif self._plain is None:
            self._plain = self._reader_of(data_type)

    def _reader_of(self, data_type: type[Any], kind: str = "") -> PlainReader:
        return PlainReader(
            self._around.flows.of_topic(self.topic_name, kind),
            self.topic_name,
            data_type,
            self._samples_max,
            self._extra,
            self._intake.plain,
            self._owner,
            None if kind else self._is_another_readers,
        )

    def _is_another_readers(self, writer: PlainWriter) -> bool:
        """Return whether a writer is read by type name: one without a description matches any reader of that name."""
        return not writer.is_described and has_key(writer.guid) in self._kinds_by_name

    def _open_numbered(self) -> None:
        if self._numbered is None:
            flow = self._around.flows.of_topic(self.topic_name)
            self._numbered = PlainReader(
                flow, self.write_topic, plain_class("Write"), self._samples_max, (), self._intake.numbered, self._owner
            )


def _is_plain(endpoint: RemoteEndpoint) -> bool:
    """Return whether an endpoint on a queue's topic has the queue's own type and does not belong to a service."""
    return endpoint.type_name != FRAME_TYPE and endpoint.traits.get("role") not in _SERVICE_ROLES
