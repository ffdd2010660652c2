"""Detection of peers on one of our topics, or on a similar name, that match none of our endpoints.

Each is reported once, with the reason. Decides: when a peer counts as incompatible: since a match takes time, two
successive checks must find it unmatched. The library reports whether it matches; the reason is found by comparing both
sides' announcements. Endpoints of qsctl's own clients are ignored: they open and close together with their queues.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cyclonedds import _clayer as layer
from cyclonedds.builtin import (
    BuiltinDataReader,
    BuiltinTopicDcpsParticipant,
    BuiltinTopicDcpsPublication,
    BuiltinTopicDcpsSubscription,
)
from cyclonedds.core import InstanceState

from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import Malformed, decoded
from qsctl.transport.dds.diagnosis._mismatches import Mismatch, MismatchKind, Side, mismatches, partitions_meet
from qsctl.transport.dds.diagnosis._topic_names import nearest_topic
from qsctl.transport.dds.diagnosis.peer_faults import UNKNOWN_PEER
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.endpoint_policies import (
    EndpointPolicies,
    ParticipantWords,
    endpoints_of,
    matched_with,
    policies_of,
    words_of,
)
from qsctl.transport.dds.peers.type_outlines import NotYet, TypeOutline, fetch_from, outline_of
from qsctl.transport.dds.serving.loop_time import BEHIND_MAX_NS, TimeShare
from qsctl.transport.dds.wire.raw import ONE_THREAD_AT_A_TIME, close_entity

LOOK_EVERY_NS: Final[Nanoseconds] = 500 * MILLISECOND_NS
"""Interval of the checks; a peer is reported after two to three of them."""

LOOKS_MAX: Final = 10
"""Number of checks after which a peer is reported even without a type description, or a matched one is ignored."""

ENDPOINTS_MAX: Final = 10_000
"""Maximum number of peers' endpoints that are kept; further ones are ignored."""

UNMATCHED_AT_ONCE: Final = 100
"""Maximum number of unmatched endpoints per check, and of our endpoints compared with each; the others wait."""

TAKING_NS: Final[Nanoseconds] = 7 * MILLISECOND_NS
"""Maximum time for reading one existing endpoint, while samples are being processed.

35 µs at one percent of the loop's time, and the same again for endpoints that arrive meanwhile.
"""

TAKES_MAX: Final = 500
FRAME_TYPE: Final = "RTI::QueuingService::SampleFrame"
"""Type name of the frames of qsctl's clients; a peer with another type is compared with the queue's own type."""

_OWN_ROLE: Final = re.compile(rb"qsctl(;[^;]*)*;role=")
"""The user data of qsctl's own clients and services; other peers have no role."""

_VENDORS: Final = {
    0x0101: "RTI Connext DDS",
    0x0102: "OpenSplice DDS",
    0x0103: "OpenDDS",
    0x0109: "InterCOM DDS",
    0x010A: "CoreDX DDS",
    0x010F: "Fast DDS",
    0x0110: "Cyclone DDS",
    0x0112: "RustDDS",
}
"""The vendors by the first two octets of a GUID, as the specification assigns them [RTPS 9.3.1.5]."""

_PREFIX_BYTES: Final = 12


class _Announced(NamedTuple):
    key: bytes
    topic_name: str
    type_name: str
    policies: EndpointPolicies | None
    type_id: bytes | None
    info: Any


@dataclass(slots=True)
class _Endpoint:
    """A reader or writer in the domain, ours or a peer's."""

    said: _Announced
    is_writer: bool
    policies: EndpointPolicies
    looks_count: int = 0
    found: list[Mismatch] = field(default_factory=list)
    """Mismatches found by the latest comparison."""
    is_done: bool = False


class IncompatiblePeers:
    """A monitor of a domain's endpoints for the participants of this process; it reports at their boundary.

    Announcements that arrive faster than the time for them allows accumulate in the library, some kilobytes an
    endpoint, even if the endpoint is gone again. After a while the readers are therefore recreated: the new ones
    contain the present endpoints, and none that are gone.

    Args:
        participant: the first participant, whose entities watch the domain.
        of_names: whether its readers match types by name alone; writers that describe their types are then ignored.
    """

    def __init__(self, participant: Participant, *, of_names: bool = False) -> None:
        assert participant.entity is not None
        self._of_names = of_names
        self._participant = participant
        self._references: list[int] = [participant.entity._ref]
        self._endpoints: dict[int, _Endpoint] = {}
        self._former: dict[int, _Endpoint] = {}
        """Endpoints known before the readers were recreated, kept until the new readers are read completely."""
        self._behind_since: Nanoseconds | None = None
        self._words: dict[bytes, ParticipantWords] = {}
        self._outlines: dict[bytes, TypeOutline | None] = {}
        self._fetch = fetch_from(self._references[0])
        self._look_at: Nanoseconds = 0
        self._changed = False
        self._participants = BuiltinDataReader(participant.entity, BuiltinTopicDcpsParticipant)
        self._readers = self._open()

    def _open(self) -> tuple[tuple[BuiltinDataReader, bool], ...]:
        entity = self._participant.entity
        assert entity is not None
        return (
            (BuiltinDataReader(entity, BuiltinTopicDcpsPublication), True),
            (BuiltinDataReader(entity, BuiltinTopicDcpsSubscription), False),
        )

    def watch_for(self, participant: Participant) -> None:
        """Compare peers also with the endpoints of another participant of the same domain."""
        assert participant.entity is not None
        self._references.append(participant.entity._ref)

    def turn(self) -> None:
        """Check at most twice a second; cheap if nothing changed."""
        now = time.monotonic_ns()
        share = self._participant.boundary.time.diagnosis
        if now < self._look_at or not share.begins(self, wakes=False):
            return
        self._look_on(now, share)
        share.end()

    def _look_on(self, now: Nanoseconds, share: TimeShare) -> None:
        """Read announcements within the time share; once all are read, check, and repeat after the interval."""
        boundary = self._participant.boundary
        if self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since >= BEHIND_MAX_NS + len(self._endpoints) * TAKING_NS:
            self._begin_anew(now)
        boundary.each("the discovery of participants", (self._participants,), self._take_participants, _unknown_peer)
        for reader, is_writer in self._readers:
            boundary.each(
                "the discovery of endpoints",
                (reader,),
                lambda each, is_writer=is_writer: self._take_endpoints(each, is_writer),  # type: ignore[misc]
                _unknown_peer,
            )
            if share.is_over:
                return
        self._behind_since = None
        self._former = {}
        self._look_at = now + LOOK_EVERY_NS
        self._look_if_changed()

    def _look_if_changed(self) -> None:
        if self._changed:
            self._changed = False
            self._look()

    def _begin_anew(self, now: Nanoseconds) -> None:
        """Check the known endpoints, and drop the unread announcements by recreating the readers."""
        self._look_if_changed()
        for reader, _ in self._readers:
            close_entity(reader)
        self._readers = self._open()
        self._former, self._endpoints = self._endpoints, {}
        self._behind_since = now

    def close(self) -> None:
        """Stop watching."""
        self._participant.boundary.time.diagnosis.leave(self)
        for reader, _ in (*self._readers, (self._participants, False)):
            close_entity(reader)
        self._readers = ()

    def _take_participants(self, reader: BuiltinDataReader) -> None:
        share = self._participant.boundary.time.diagnosis
        for _ in range(TAKES_MAX):
            if share.is_over:
                return
            taken = _take(layer.ddspy_take_participant, reader, _participant, words_of)
            if taken is None:
                return
            key, words, info = taken
            if info.valid_data and info.instance_state == InstanceState.Alive and len(self._words) < ENDPOINTS_MAX:
                self._words[key[:_PREFIX_BYTES]] = words
            else:
                self._words.pop(key[:_PREFIX_BYTES], None)

    def _take_endpoints(self, reader: BuiltinDataReader, is_writer: bool) -> None:
        share = self._participant.boundary.time.diagnosis
        for _ in range(TAKES_MAX):
            if share.is_over:
                return
            said: _Announced | None = _take(layer.ddspy_take_endpoint, reader, _announced, policies_of)
            if said is None:
                return
            handle = said.info.instance_handle
            if not said.info.valid_data or said.info.instance_state != InstanceState.Alive or said.policies is None:
                self._endpoints.pop(handle, None)
                self._former.pop(handle, None)
            elif len(self._endpoints) < ENDPOINTS_MAX and not said.topic_name.startswith("DCPS"):
                known = self._former.pop(handle, None)
                self._endpoints[handle] = known or _Endpoint(said, is_writer, said.policies)
                self._changed = True

    def _look(self) -> None:
        own: dict[bytes, int] = {}
        for participant in self._references:
            own |= endpoints_of(participant)
        ours: dict[tuple[str, bool], list[tuple[int, _Endpoint]]] = {}
        peers: list[tuple[int, _Endpoint]] = []
        offered: dict[tuple[str, bool], set[bytes]] = {}
        """The participants that have a writer, or a reader, on each topic, including those of other services."""
        for handle, each in self._endpoints.items():
            place = (each.said.topic_name, each.is_writer)
            if (reference := own.get(each.said.key)) is not None:
                ours.setdefault(place, []).append((reference, each))
                continue
            offered.setdefault(place, set()).add(each.said.key[:_PREFIX_BYTES])
            if self._of_names and each.said.type_id is not None:
                continue
            if not each.is_done and not _OWN_ROLE.match(each.policies.user_data):
                peers.append((handle, each))
        matched = _matched_of(ours, {(peer.said.topic_name, not peer.is_writer) for _, peer in peers})
        unmatched_count = 0
        for handle, peer in peers:
            name = peer.said.topic_name
            candidates = ours.get((name, not peer.is_writer))
            if candidates and peer.is_writer and peer.said.type_name != FRAME_TYPE:
                # Samples of the queue's own type are read elsewhere, see `plain.flow`; the wrappers' frames here.
                candidates = [pair for pair in candidates if pair[1].said.type_name != FRAME_TYPE]
                if not candidates:
                    continue
            if candidates:
                self._changed = True
                unmatched_count += handle not in matched
                if handle in matched or unmatched_count <= UNMATCHED_AT_ONCE:
                    self._compare(peer, [each for _, each in candidates], matched.get(handle, []))
            elif not offered.get((name, not peer.is_writer), set()) - {peer.said.key[:_PREFIX_BYTES]}:
                topics = [topic for topic, is_writer in ours if is_writer is not peer.is_writer]
                self._compare_name(peer, topics)

    def _compare(self, peer: _Endpoint, candidates: list[_Endpoint], matched: list[_Endpoint]) -> None:
        """Compare a peer on one of our topics with our endpoints there, given those that it matches."""
        peer.looks_count += 1
        is_undescribed = peer.said.type_id is None
        if matched and (is_undescribed or any(each.said.type_id in (None, peer.said.type_id) for each in matched)):
            peer.is_done = True
            return
        found = self._reasons(peer, matched or candidates)
        if matched:
            # A matched peer is compatible as long as its values are within the bounds.
            found = [each for each in found if each.kind is MismatchKind.BOUND]
        is_last = peer.looks_count >= LOOKS_MAX
        if found and (is_last or found == peer.found):
            self._report(peer, found)
        elif is_last:
            if not matched:
                self._report(
                    peer, [Mismatch(MismatchKind.TYPE, "its type is not described, and the library refuses it")]
                )
            peer.is_done = True
        peer.found = found

    def _reasons(self, peer: _Endpoint, candidates: list[_Endpoint]) -> list[Mismatch]:
        """Return the reasons for which a peer does not match the most similar of our endpoints."""
        side = self._side(peer)
        if len(candidates) > UNMATCHED_AT_ONCE:
            partitions = peer.policies.partitions
            near = [each for each in candidates if partitions_meet(partitions, each.policies.partitions)]
            candidates = [*near, *candidates][:UNMATCHED_AT_ONCE]
        compared = [(each, mismatches(side, self._side(each))) for each in candidates]
        _, best = min(
            compared,
            key=lambda pair: (
                pair[0].said.type_name != peer.said.type_name,
                pair[0].said.type_name == FRAME_TYPE,
                len(pair[1]),
            ),
        )
        return best

    def _compare_name(self, peer: _Endpoint, topics: list[str]) -> None:
        """Compare the topic of a peer that matches no other endpoint with the service's topic names."""
        meant = nearest_topic(peer.said.topic_name, topics)
        if meant is None:
            return
        peer.looks_count += 1
        self._changed = True
        if peer.looks_count > 1:
            self._report(peer, [Mismatch(MismatchKind.NAME, f"the service has no such topic; it has {meant!r}")])

    def _side(self, endpoint: _Endpoint) -> Side:
        return Side(endpoint.is_writer, endpoint.said.type_name, endpoint.policies, self._outline(endpoint))

    def _outline(self, endpoint: _Endpoint) -> TypeOutline | None:
        """Return the outline of an endpoint's type; None: there is no description, or not yet."""
        identifier = endpoint.said.type_id
        if identifier is None:
            return None
        if identifier not in self._outlines:
            try:
                with ONE_THREAD_AT_A_TIME:
                    outline = outline_of(identifier, self._fetch)
            except NotYet:
                return None
            except Malformed as error:
                self._participant.boundary.refuse(
                    f"the type of {endpoint.said.topic_name}", endpoint.said.key.hex(), str(error)
                )
                outline = None
            if len(self._outlines) >= ENDPOINTS_MAX:
                self._outlines.clear()
            self._outlines[identifier] = outline
        return self._outlines[identifier]

    def _report(self, peer: _Endpoint, found: list[Mismatch]) -> None:
        peer.is_done = True
        said = peer.said
        what = "writer" if peer.is_writer else "reader"
        reasons = "; ".join(f"{each.kind.value}: {each.text}" for each in found)
        self._participant.boundary.name_incompatible(
            said.topic_name, said.key.hex(), f"{what} of {described(said.key, self._words)}: {reasons}"
        )


def _matched_of(
    ours: Mapping[tuple[str, bool], list[tuple[int, _Endpoint]]], places: Iterable[tuple[str, bool]]
) -> dict[int, list[_Endpoint]]:
    """Return our endpoints on some topics that each peer's endpoint matches, by its handle."""
    found: dict[int, list[_Endpoint]] = {}
    for place in places:
        for reference, own in ours.get(place, ()):
            for handle in matched_with(reference, own.is_writer):
                found.setdefault(handle, []).append(own)
    return found


def described(key: bytes, words: Mapping[bytes, ParticipantWords]) -> str:
    """Return a description of an endpoint's process: participant, program, process id, host, DDS implementation."""
    said = words.get(key[:_PREFIX_BYTES], ParticipantWords())
    name = f"participant {said.name!r} " if said.name else ""
    vendor = _VENDORS.get(int.from_bytes(key[:2], "big"), f"vendor {key[:2].hex()}")
    parts = [
        said.process and f"process {said.process}",
        said.process_id and f"pid {said.process_id}",
        said.host and f"host {said.host}",
        vendor,
    ]
    return f"{name}({', '.join(part[:80] for part in parts if part)})"


def _take(take: Any, reader: BuiltinDataReader, make: Any, read: Any) -> Any:
    """Take the next sample of a builtin topic; None: there is none.

    Raises:
        Malformed: the binding cannot read it; the sample is removed nevertheless.
    """
    with ONE_THREAD_AT_A_TIME:
        taken: Any = decoded(lambda reference: take(reference, 1, make, read), reader._ref)
    return taken[0] if isinstance(taken, list) and taken else None


def _participant(key: bytes, words: ParticipantWords | None, info: Any) -> tuple[bytes, ParticipantWords, Any]:
    return bytes(key), words or ParticipantWords(), info


def _announced(
    key: bytes,
    _participant_key: bytes,
    _participant_handle: int,
    topic_name: str | None,
    type_name: str | None,
    policies: EndpointPolicies | None,
    info: Any,
    type_id: bytes | None,
) -> _Announced:
    return _Announced(
        bytes(key), topic_name or "", type_name or "", policies, None if type_id is None else bytes(type_id), info
    )


def _unknown_peer(_index: int) -> str:
    return UNKNOWN_PEER
