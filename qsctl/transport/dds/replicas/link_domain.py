"""The participant through which members exchange messages about their configuration, and nothing else [QS 7.2.1]."""

from __future__ import annotations

from qsctl.instant import Nanoseconds
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import Discovery
from qsctl.transport.dds.replicas.letter_box import SILENCE_NS, FragmentNumbers, Seen
from qsctl.transport.dds.replicas.letter_signatures import LetterSigner
from qsctl.transport.dds.replicas.replica_link import ReplicaLink


class LinkDomain:
    """A participant with the `ReplicaLink` in it. It owns the participant; the link's owner closes the link.

    Args:
        participant: a participant in the domain that all members share.
        cluster: name of the cluster, common to all members.
        own: the announcement of this process.
        silence_ns: duration of a member's silence after which another process of its name is accepted.
        signer: see `ReplicaLink`.
        numbers: see `ReplicaLink`.
    """

    def __init__(
        self,
        participant: Participant,
        cluster: str,
        own: Seen,
        silence_ns: Nanoseconds = SILENCE_NS,
        signer: LetterSigner | None = None,
        numbers: FragmentNumbers | None = None,
    ) -> None:
        self._participant = participant
        self._discovery = Discovery(participant)
        self.link = ReplicaLink(participant, cluster, own, silence_ns=silence_ns, signer=signer, numbers=numbers)
        for endpoint in self._discovery.endpoints():
            self.link.appeared(endpoint)

    def look(self) -> None:
        """Pass to the link the endpoints that appeared or vanished since the last call."""
        changes = self._discovery.look()
        for endpoint in changes.vanished:
            self.link.vanished(endpoint)
        if appeared := changes.appeared:
            self._participant.boundary.each(
                "the endpoints that appeared", appeared, self.link.appeared, lambda index: appeared[index].key.hex()
            )

    def close(self) -> None:
        """Close the participant; close the link before it."""
        self._discovery.close()
        self._participant.close()
