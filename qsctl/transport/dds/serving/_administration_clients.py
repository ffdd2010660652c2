"""The clients that can send commands, and whether replies reach them [QS 5.2 and 5.3].

Decides: how long a reply waits for its reader. A program's request may arrive before its reader of replies is
discovered here: the two are announced on separate channels, and a program may open the reader last. A reply that was
written earlier would be lost, because nothing is kept for late readers [QS Table 3.4].
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader

from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.transport.dds.peers.announcements import reader_key, writer_key
from qsctl.transport.dds.peers.discovery import participant_of

PATIENCE_NS: Final[Nanoseconds] = 500 * MILLISECOND_NS
"""Maximum time, once per client, for which replies wait for the reader of a client that can send requests."""


class AdministrationClients:
    """The participants that write requests, and the subset that reads replies.

    Args:
        requests: the service's reader of requests.
        replies: returns the service's writers of replies, each for other readers.
    """

    def __init__(self, requests: DataReader[Any], replies: Callable[[], Iterable[DataWriter[Any]]]) -> None:
        self._requests = requests
        self._replies = replies
        self._participants: dict[int, bytes] = {}
        self._without_reader: frozenset[bytes] = frozenset()
        self._waiting_until_ns: Nanoseconds = 0

    def are_reached(self) -> bool:
        """Return whether replies reach every client, or the time is over; called while there are replies to send."""
        missing = self._missing()
        if not missing:
            self._waiting_until_ns = 0
            return True
        now = time.monotonic_ns()
        if not self._waiting_until_ns:
            self._waiting_until_ns = now + PATIENCE_NS
        if now < self._waiting_until_ns:
            return False
        self._without_reader |= missing
        self._waiting_until_ns = 0
        return True

    def _missing(self) -> frozenset[bytes]:
        known, self._participants = self._participants, {}
        requests = self._requests
        try:
            clients = self._owners(requests.get_matched_publications(), known, requests._ref, writer_key)
            readers: frozenset[bytes] = frozenset()
            for writer in self._replies():
                readers |= self._owners(writer.get_matched_subscriptions(), known, writer._ref, reader_key)
        except IndexError:
            # The binding's array is one short when a peer appears between its two calls: the next turn asks again.
            return frozenset({b""})
        self._without_reader &= clients
        return clients - readers - self._without_reader

    def _owners(
        self,
        handles: list[int],
        known: dict[int, bytes],
        reference: int,
        key_of: Callable[[int, int], bytes | None],
    ) -> frozenset[bytes]:
        owners: set[bytes] = set()
        for handle in handles:
            owner = known.get(handle)
            if owner is None:
                key = key_of(reference, handle)
                if key is None:
                    continue
                owner = participant_of(key)
            self._participants[handle] = owner
            owners.add(owner)
        return frozenset(owners)
