"""A participant whose only endpoints are letters between members: those about their configuration [QS 7.2.1]."""

from __future__ import annotations

from qsctl.instant import Nanoseconds
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import Discovery
from qsctl.transport.dds.replicas.letter_box import SILENCE_NS
from qsctl.transport.dds.replicas.replica_link import ReplicaLink


class LinkDomain:
    """One participant with its letters; closes the participant, not the letters.

    Args:
        participant: in the domain that all members share.
        cluster: the name that they share.
        name: this member's.
        run: distinguishes this process from others of the name.
        started_at_ns: when it began.
        silence_ns: see `ReplicaLink`.
    """

    def __init__(
        self,
        participant: Participant,
        cluster: str,
        name: str,
        run: str,
        started_at_ns: Nanoseconds,
        silence_ns: Nanoseconds = SILENCE_NS,
    ) -> None:
        self._participant = participant
        self._discovery = Discovery(participant)
        self.link = ReplicaLink(participant, cluster, name, run, started_at_ns, silence_ns=silence_ns)
        for endpoint in self._discovery.endpoints():
            self.link.appeared(endpoint)

    def look(self) -> None:
        """Notice members that came or went."""
        changes = self._discovery.look()
        for endpoint in changes.vanished:
            self.link.vanished(endpoint)
        if appeared := changes.appeared:
            self._participant.boundary.each(
                "the endpoints that appeared", appeared, self.link.appeared, lambda index: appeared[index].key.hex()
            )

    def close(self) -> None:
        """Leave the domain; the letters are closed before."""
        self._discovery.close()
        self._participant.close()
