"""Spare participants, which later clients of this process reuse in domains for which a program requests it.

Creating a participant, discovering the endpoints of its domain and deleting it takes several times as long as a test of
a queue. Decides: which participants are kept, and how many. A kept participant has no reader or writer of a client: its
peers see that the client has left.
"""

from __future__ import annotations

import os
import threading
from typing import Final, NamedTuple

from qsctl.transport.dds.clients.client_domain import ClientDomain
from qsctl.transport.dds.participant import DomainSettings, Participant
from qsctl.transport.dds.peers.discovery import Discovery

SPARE_MAX: Final = 8
"""Maximum number of participants kept without a client; each has a socket, and receives the domain's announcements."""


class _Spare(NamedTuple):
    participant: Participant
    discovery: Discovery


class SpareParticipants:
    """The participants of a domain that closed clients of this process leave to later clients.

    Args:
        domain_id: of the domain; one object for it at a time.
    """

    def __init__(self, domain_id: int) -> None:
        self.domain_id = domain_id
        self._process_id = os.getpid()
        self._lock = threading.Lock()
        self._spares: list[_Spare] = []
        self._is_open = True
        _OF_DOMAIN[domain_id] = self

    @property
    def count(self) -> int:
        """Return the number of participants without a client."""
        return len(self._spares)

    @property
    def is_usable(self) -> bool:
        """Return whether it is open, in the process that opened it: a child of `os.fork` has none of its threads."""
        return self._is_open and os.getpid() == self._process_id

    def client_domain(self, settings: DomainSettings | None) -> ClientDomain:
        """Return the domain of a new client, with a spare participant if one has the requested settings."""
        wanted = settings or DomainSettings()
        with self._lock:
            # The participant that became spare last has the fewest announcements to process.
            fit = [each for each in self._spares if each.participant.settings == wanted]
            if fit:
                self._spares.remove(fit[-1])
        if fit:
            return ClientDomain(fit[-1].participant, fit[-1].discovery, leave_to=self.leave)
        participant = _participant(self.domain_id, settings)
        # Endpoints are noticed at once, also where samples have just moved: no other peer waits for this process.
        participant.boundary.time.busy_ns = 0
        return ClientDomain(participant, leave_to=self.leave)

    def leave(self, participant: Participant, discovery: Discovery) -> bool:
        """Keep the participant of a closed client; return False if the client must delete it."""
        with self._lock:
            if not self.is_usable or len(self._spares) >= SPARE_MAX:
                return False
            self._spares.append(_Spare(participant, discovery))
        return True

    def look(self) -> None:
        """Process the announcements to the spare participants, which would accumulate in memory otherwise."""
        with self._lock:
            for each in self._spares:
                each.discovery.look()

    def close(self) -> None:
        """Delete the spare participants and keep no more; open clients delete their own."""
        with self._lock:
            self._is_open = False
            if _OF_DOMAIN.get(self.domain_id) is self:
                del _OF_DOMAIN[self.domain_id]
            spares, self._spares = self._spares, []
        for each in spares:
            each.discovery.close()
            each.participant.close()


_OF_DOMAIN: Final[dict[int, SpareParticipants]] = {}


def client_domain(domain_id: int, settings: DomainSettings | None = None) -> ClientDomain:
    """Return the domain of a new client, with a new or a spare participant.

    Raises:
        UsageError, Refused, Unavailable: as of `Participant`.
    """
    spares = _OF_DOMAIN.get(domain_id)
    if spares is not None and spares.is_usable:
        return spares.client_domain(settings)
    return ClientDomain(_participant(domain_id, settings))


def _participant(domain_id: int, settings: DomainSettings | None) -> Participant:
    return Participant(domain_id, settings, name="qsctl client")
