"""The services that a client has discovered as hosts of its queue [QS 2.13].

Decides: when an announced queue counts as matched, and when an unreachable service has reappeared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from qsctl.instant import Nanoseconds
from qsctl.transport.dds.channels import RETURN_NS
from qsctl.transport.dds.peers.discovery import Changes, RemoteEndpoint


class QueueAppeared(NamedTuple):
    """A matching queue `<topic>@<subscriber>` appeared."""

    queue: str
    acknowledges: bool


class QueueVanished(NamedTuple):
    """A matching queue vanished."""

    queue: str


class DeletedByCommand(NamedTuple):
    """A queue was deleted by a command [QS 5.4.2] and will acknowledge no more samples."""

    queue: str


class Matches:
    """The announced queues, and the subset that is matched."""

    def __init__(self) -> None:
        self._announced: dict[int, RemoteEndpoint] = {}
        self._matched: dict[str, set[int]] = {}
        self._not_before: dict[int, Nanoseconds] = {}

    def look(self, changes: Changes, *, key: str, value: str) -> list[QueueVanished]:
        """Record announcements whose trait `key` is `value`; return the matched queues that vanished."""
        gone: list[QueueVanished] = []
        for endpoint in changes.vanished:
            self._not_before.pop(endpoint.handle, None)
            if self._announced.pop(endpoint.handle, None) is not None:
                handles = self._matched.get(endpoint.topic_name, set())
                handles.discard(endpoint.handle)
                if not handles and self._matched.pop(endpoint.topic_name, None) is not None:
                    gone.append(QueueVanished(endpoint.topic_name))
        for endpoint in changes.appeared:
            traits = endpoint.traits
            if traits.get("role") == "queue" and (traits.get(key) if key else endpoint.topic_name) == value:
                self._announced[endpoint.handle] = endpoint
                if endpoint.returned:
                    self._not_before[endpoint.handle] = time.monotonic_ns() + RETURN_NS
        return gone

    def newly(self, participants: AbstractSet[bytes]) -> list[QueueAppeared]:
        """Mark the queues that these participants announce as matched; return those that were not matched before.

        They are identified by participant instead of name: a service that was killed and restarted is a new participant
        before the old one's lease expires, and several participants may share a name, such as the sessions of one
        service.
        """
        new: list[QueueAppeared] = []
        now = time.monotonic_ns()
        for handle, endpoint in self._announced.items():
            handles = self._matched.setdefault(endpoint.topic_name, set())
            if (
                handle not in handles
                and endpoint.participant in participants
                and self._not_before.get(handle, 0) <= now
            ):
                self._not_before.pop(handle, None)
                new.append(QueueAppeared(endpoint.topic_name, endpoint.traits.get("acks") == "1"))
                handles.add(handle)
            if not handles:
                del self._matched[endpoint.topic_name]
        return new

    def matched(self) -> dict[str, bool]:
        """Return the matched queues, and whether each acknowledges."""
        return {
            endpoint.topic_name: endpoint.traits.get("acks") == "1"
            for handle, endpoint in self._announced.items()
            if handle in self._matched.get(endpoint.topic_name, ())
        }

    def replicas(self) -> dict[str, set[str]]:
        """Return the identifiers of the replicas of each matched queue that is replicated and acknowledges."""
        found: dict[str, set[str]] = {}
        for handle, endpoint in self._announced.items():
            traits = endpoint.traits
            is_matched = handle in self._matched.get(endpoint.topic_name, ())
            if "replica" in traits and traits.get("acks") == "1" and is_matched:
                found.setdefault(endpoint.topic_name, set()).add(traits["replica"])
        return found

    def answering_count(self) -> int | None:
        """Return the number of services that answer the question for the end of the queue; of replicas one.

        None: one of them is of a version that does not answer.
        """
        announced = list(self._announced.values())
        if not all("answers_end" in each.traits for each in announced):
            return None
        return sum("replica" not in each.traits for each in announced) + any(
            "replica" in each.traits for each in announced
        )

    @property
    def participants(self) -> set[bytes]:
        """Return the participants that announce such a queue."""
        return {endpoint.participant for endpoint in self._announced.values()}

    @property
    def is_complete(self) -> bool:
        """Return whether every announced queue is matched."""
        return sum(len(handles) for handles in self._matched.values()) == len(self._announced)


class ReappearedPeers:
    """Detection of services that were unreachable and reappeared, each once, however many endpoints it has.

    Args:
        concerns: whether an endpoint belongs to a service of this client.
    """

    def __init__(self, concerns: Callable[[RemoteEndpoint], bool]) -> None:
        self._concerns = concerns
        self._missed: set[bytes] = set()

    def look(self, changes: Changes) -> bool:
        """Return whether a service reappeared: it has not noticed its absence, and its messages meanwhile are lost."""
        concerns = self._concerns
        self._missed.update(each.participant for each in changes.vanished if concerns(each))
        if not self._missed:
            return False
        back = self._missed & {each.participant for each in changes.appeared if each.returned and concerns(each)}
        self._missed -= back
        return bool(back)
