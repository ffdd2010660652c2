"""The client of administration commands over DDS: sends requests and collects the replies of all matching services [QS
5].

Decides: the time to discover services, and when all have answered. A pattern may match several: each discovered one is
waited for until its last reply. Names need not be unique; but of several services with one name all but one may have
ended, as after a kill and a restart, so the others are waited for only briefly.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Set
from pathlib import Path
from typing import Any, Final, NamedTuple

from cyclonedds.sub import DataReader

from qsctl.client.session import TURN_NS, new_guid
from qsctl.config.signing_keys import read_keys
from qsctl.core.admin.command import Command
from qsctl.core.admin.target import matches
from qsctl.errors import NoAnswer
from qsctl.identity import NIL_IDENTITY, SampleIdentity
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.clients.client_domain import ClientDomain
from qsctl.transport.dds.participant import DomainSettings, Participant
from qsctl.transport.dds.peers.discovery import Changes, RemoteEndpoint
from qsctl.transport.dds.peers.namesakes import services_there
from qsctl.transport.dds.qos import reader_qos
from qsctl.transport.dds.serialized_reader import SerializedReader
from qsctl.transport.dds.wire.bodies import octets_of
from qsctl.transport.dds.wire.commands import RawBody, wire_request
from qsctl.transport.dds.wire.replies import RemoteReply, reply_of, reply_parts
from qsctl.transport.dds.wire.signed_commands import needs_signature, run_of, signature_of
from qsctl.transport.dds.wire.wire_types import (
    COMMAND_REPLY_TOPIC,
    COMMAND_REQUEST_TOPIC,
    WireCommandReply,
    WireCommandRequest,
)

LATECOMER_S: Final = 0.2
"""Time after a discovery, or a reply, in which another service may be discovered, or another of the name may reply."""

_WILD: Final = frozenset("*?[\\")


class _Sent(NamedTuple):
    """The request in progress, to which arriving replies are matched."""

    command: Command | RawBody
    request_identity: SampleIdentity


class Administrator:
    """A client of the administration topics in one domain.

    Args:
        domain_id: the services' administration domain.
        timeout_s: the time limit of one command, discovery included.
        key_file: the key that signs commands for services that require it; read with the first such command. None: no
            command is signed.
    """

    def __init__(
        self,
        domain_id: int,
        timeout_s: float,
        settings: DomainSettings | None = None,
        key_file: Path | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._key_file = key_file
        participant = Participant(domain_id, settings, name="qsctl administrator")
        assert participant.entity is not None
        self._domain = ClientDomain(participant)
        self._sent: _Sent | None = None
        with self._domain.left_on_failure():
            replies = participant.topic(COMMAND_REPLY_TOPIC, WireCommandReply)
            # In one representation, lest a reply come in each.
            reader = DataReader(participant.entity, replies, qos=reader_qos(only_xcdr1=True))
            self._replies = SerializedReader(participant, reader, self._read)
            self._writer = FrameWriter(participant, participant.topic(COMMAND_REQUEST_TOPIC, WireCommandRequest))
        self.silent: frozenset[str] = frozenset()
        """Services that did not answer the latest command for them: the next one waits for them no longer than others
        take, so that what needs several commands ends in time."""
        self.tolerates_silence = False
        """True: the replies of those that answer are enough; `silent` names the others."""
        self._guid = new_guid()
        self._number = 0
        self._services: dict[int, str] = {}
        self._runs: dict[int, bytes] = {}
        """Of the services that carry out signed commands only: the run that a signature must be for."""
        self._reply_writers: dict[int, str] = {}
        self._latest_found_s = 0.0
        self._domain.add(self)

    def services_there(self) -> list[str]:
        """Return the names of the services in the domain, with administration or without."""
        return services_there(self._domain.participant)

    def request(self, command: Command | RawBody, target: str) -> list[RemoteReply]:
        """Send a command; return the replies of all matching services once they are complete; empty: none answered.

        The time limit applies to the silence of a service: a reply in many parts may take longer.

        Raises:
            UsageError: the command cannot be encoded.
            NotFound, Refused, InvalidInput: a signature is required, and the key file cannot be used.
            NoAnswer: some answered and others did not.
        """
        answers_until = deadline = time.monotonic() + self._timeout_s
        meant = self._discover(target, deadline)
        if not meant:
            return []
        expected = meant if meant.keys() <= self.silent else _without(meant, self.silent)
        self._number += 1
        identity = SampleIdentity(self._guid, self._number)
        self._sent = _Sent(command, identity)
        self._writer.put(octets_of(self._signed(wire_request(command, target, identity), target)))
        found: dict[str, list[RemoteReply]] = {}
        finished: Counter[str] = Counter()

        def collect() -> None:
            nonlocal deadline
            for reply in self._new_replies():
                deadline = time.monotonic() + self._timeout_s
                found.setdefault(reply.message.replying_service, []).append(reply)
                if not reply.message.intermediate:
                    finished[reply.message.replying_service] += 1

        def every_name() -> bool:
            collect()
            return expected.keys() <= finished.keys()

        def every_service() -> bool:
            collect()
            return meant <= finished

        def until() -> float:
            # One that replies in parts may go on; the others have the time of the command, whatever those do.
            return deadline if found.keys() - finished.keys() else answers_until

        if self._run_until(every_name, until):
            latecomers = time.monotonic() + LATECOMER_S
            self._run_until(every_service, lambda: min(until(), latecomers))
        missing = meant.keys() - finished.keys()
        self.silent = (self.silent - finished.keys()) | missing
        if missing and found and not self.tolerates_silence:
            raise self._partly_answered(found, missing)
        return [reply for service in sorted(found) for reply in found[service]]

    def services(self, pattern: str = "*") -> tuple[str, ...]:
        """Return the application names of the services discovered so far."""
        return tuple(sorted(name for name in self._services.values() if matches(pattern, name)))

    def leave(self) -> None:
        """Leave the domain."""
        self._domain.close()

    # What `ClientDomain` turns.

    def look(self, changes: Changes) -> None:
        """Register services that appeared and vanished."""
        for endpoint in changes.vanished:
            self._services.pop(endpoint.handle, None)
            self._runs.pop(endpoint.handle, None)
            self._reply_writers.pop(endpoint.handle, None)
        for endpoint in changes.appeared:
            if endpoint.is_writer and endpoint.topic_name == COMMAND_REPLY_TOPIC:
                self._reply_writers[endpoint.handle] = _name(endpoint)
            elif not endpoint.is_writer and endpoint.topic_name == COMMAND_REQUEST_TOPIC:
                self._services[endpoint.handle] = _name(endpoint)
                if (run := run_of(endpoint.traits)) is not None:
                    self._runs[endpoint.handle] = run
            else:
                continue
            self._latest_found_s = time.monotonic()

    def flush(self) -> bool:
        """Send the request."""
        return self._writer.flush()

    def drain(self, timeout_ns: Nanoseconds) -> None:
        """Return at once: an administrator that leaves needs no replies."""

    def close(self) -> None:
        """Delete the entities; `leave` calls it."""
        self._replies.close()
        self._writer.close()

    def _signed(self, request: WireCommandRequest, target: str) -> WireCommandRequest:
        """Sign a request for which services require a signature."""
        runs = [run for handle, run in self._runs.items() if matches(target, self._services[handle])]
        if runs and self._key_file is not None and needs_signature(request.action):
            signature: Any = signature_of(request, read_keys(self._key_file)[0], runs)
            request.signature = signature
        return request

    def _discover(self, target: str, deadline: float) -> Counter[str]:
        """Return the number of discovered matching services by name; services of another make have the name ''."""
        if not self._run_until(lambda: bool(self._reached(target)), lambda: deadline):
            return Counter()
        if _WILD & set(target):
            # More may be on their way; their number is not known.
            self._run_until(lambda: time.monotonic() >= self._latest_found_s + LATECOMER_S, lambda: deadline)
        return self._reached(target)

    def _reached(self, target: str) -> Counter[str]:
        matched = self._writer.writer.matched_handles()
        answering = set(self._reply_writers.values())
        return Counter(
            name
            for handle, name in self._services.items()
            if handle in matched and name in answering and (not name or matches(target, name))
        )

    def _partly_answered(self, found: dict[str, list[RemoteReply]], missing: set[str]) -> NoAnswer:
        replied = ", ".join(
            f"{name or 'a nameless one'} {found[name][-1].message.reply.retcode.name}" for name in found
        )
        silent = ", ".join(name or "a nameless one" for name in sorted(missing))
        return NoAnswer(
            f"some of the services did not answer within {self._timeout_s:g} s: {silent}; others did: {replied}",
            remedy="Name one alone with --target NAME, or give them more time with --timeout.",
        )

    def _read(self, data: bytes) -> RemoteReply | None:
        """Return a reply to the request in progress; None: it is a reply to another client.

        Raises:
            Malformed: the octets are not a reply, or its body is of another kind than the request's.
        """
        parts = reply_parts(data)
        if self._sent is None or parts.request not in (self._sent.request_identity, NIL_IDENTITY):
            return None
        if parts.request == NIL_IDENTITY and (parts.service or "" not in self._services.values()):
            return None  # to a program that numbers no requests: who names itself names the request, too
        try:
            return reply_of(parts, self._sent.command)
        except Malformed:
            if parts.request == NIL_IDENTITY:
                return None  # of a service that does not name the request: another client's, this time
            raise

    def _new_replies(self) -> list[RemoteReply]:
        replies: list[RemoteReply] = []
        while (taken := self._replies.take()) is not None:
            replies += [each for each in taken if each is not None]
        return replies

    def _run_until(self, is_done: Callable[[], bool], deadline: Callable[[], float]) -> bool:
        while True:
            self._domain.turn(0)
            if is_done():
                return True
            left = deadline() - time.monotonic()
            if left <= 0:
                return False
            self._domain.turn(min(TURN_NS, int(left * SECOND_NS) + 1))


def _without(counted: Counter[str], names: Set[str]) -> Counter[str]:
    return Counter({name: count for name, count in counted.items() if name not in names})


def _name(endpoint: RemoteEndpoint) -> str:
    traits: Any = endpoint.traits
    return str(traits.get("name", ""))
