"""Detection of other services of the same name in a domain, which would receive the same commands and samples.

Decides: how a service is identified in discovery. Its participants announce its name and a run identifier, which all
processes of one service share; a participant of the same name and another run belongs to another service.
"""

from __future__ import annotations

from typing import Any, Final

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsParticipant
from cyclonedds.core import InstanceState
from cyclonedds.qos import Policy

from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.transport.dds.diagnosis.peer_faults import UNKNOWN_PEER
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.announcements import take_participant
from qsctl.transport.dds.wire.raw import close_entity

LOOK_EVERY_NS: Final[Nanoseconds] = SECOND_NS
RUNS_MAX: Final = 1_000
"""Maximum number of runs that are remembered as reported; further ones are not reported."""

_PREFIX: Final = b"qsctl service"
_TAKE_COUNT: Final = 100


def service_policy(service_name: str, run: str) -> Any:
    """Return the user data of a service's participants."""
    return Policy.Userdata(b";".join((_PREFIX, run.encode(), service_name.encode("utf-8", "replace"))))


def services_there(participant: Participant) -> list[str]:
    """Return the names of the services in a participant's domain, with or without administration."""
    assert participant.entity is not None
    reader = BuiltinDataReader(participant.entity, BuiltinTopicDcpsParticipant)
    found: dict[str, None] = {}
    try:
        for _ in range(RUNS_MAX):
            taken = participant.boundary.each(
                "the discovery of participants", (reader,), take_participant, _unknown_peer
            )
            if taken == [None]:
                break
            for sample in taken:
                if sample is not None and sample.info.valid_data and sample.info.instance_state == InstanceState.Alive:
                    prefix, _, rest = sample.user_data.partition(b";")
                    if prefix == _PREFIX:
                        found[rest.partition(b";")[2].decode(errors="replace")] = None
    finally:
        close_entity(reader)
    return sorted(found)


class Namesakes:
    """A monitor of one domain's participants for another service of the same name."""

    def __init__(self, participant: Participant, service_name: str, run: str) -> None:
        assert participant.entity is not None
        self._participant = participant
        self._name = service_name.encode("utf-8", "replace")
        self._run = run.encode()
        self._reported: set[bytes] = set()
        self._reader: BuiltinDataReader | None = BuiltinDataReader(participant.entity, BuiltinTopicDcpsParticipant)

    def look(self) -> bool:
        """Return whether a service of this name has appeared that was not reported before."""
        if self._reader is None:
            return False
        found = False
        boundary = self._participant.boundary
        for _ in range(_TAKE_COUNT):
            # One at a time, so that an unreadable sample does not discard others.
            taken = boundary.each("the discovery of participants", (self._reader,), take_participant, _unknown_peer)
            if taken == [None]:
                break
            for sample in taken:
                if sample is None or not sample.info.valid_data or sample.info.instance_state != InstanceState.Alive:
                    continue
                run = self._run_of(sample.user_data)
                if run is not None and run not in self._reported and len(self._reported) < RUNS_MAX:
                    self._reported.add(run)
                    found = True
        return found

    def close(self) -> None:
        """Stop watching."""
        close_entity(self._reader)
        self._reader = None

    def _run_of(self, user_data: bytes) -> bytes | None:
        """Return the run of another service of the same name; None for all other participants."""
        prefix, _, rest = user_data.partition(b";")
        run, _, name = rest.partition(b";")
        return run if prefix == _PREFIX and name == self._name and run != self._run else None


def _unknown_peer(_index: int) -> str:
    return UNKNOWN_PEER
