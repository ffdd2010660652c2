"""The services that a client has discovered as hosts of its queue [QS 2.13].

Decides: when an announced queue counts as matched, and when a service that was out of sight is back.
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
    """A matching queue is there, `<topic>@<subscriber>`."""

    queue: str
    acknowledges: bool


class QueueVanished(NamedTuple):
    """A matching queue is gone."""

    queue: str


class DeletedByCommand(NamedTuple):
    """A queue was deleted by a command [QS 5.4.2]: it acknowledges nothing any more."""

    queue: str


class Matches:
    """The queues announced, and those of them that are matched."""

    def __init__(self) -> None:
        self._announced: dict[int, RemoteEndpoint] = {}
        self._matched: dict[str, set[int]] = {}
        self._not_before: dict[int, Nanoseconds] = {}

    def look(self, changes: Changes, *, key: str, value: str) -> list[QueueVanished]:
        """Keep the announcements whose trait `key` is `value`; return which matched queues are gone."""
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
        """Return the queues that these participants announce and that are not matched yet; they are from now on.

        Participants and no names: a service that was killed and started again is a new one before the old one's lease
        is over, and several may share a name, as the sessions of one service do.
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
        """Return the marks of the replicas of each matched queue that is replicated and answers."""
        found: dict[str, set[str]] = {}
        for handle, endpoint in self._announced.items():
            traits = endpoint.traits
            is_matched = handle in self._matched.get(endpoint.topic_name, ())
            if "replica" in traits and traits.get("acks") == "1" and is_matched:
                found.setdefault(endpoint.topic_name, set()).add(traits["replica"])
        return found

    def answering_count(self) -> int | None:
        """Return how many services answer a consumer that asks for the end of the queue: of replicas the master alone.

        None: one is of a version that does not.
        """
        announced = list(self._announced.values())
        if not all("answers_end" in each.traits for each in announced):
            return None
        return sum("replica" not in each.traits for each in announced) + any(
            "replica" in each.traits for each in announced
        )

    @property
    def participants(self) -> set[bytes]:
        """The participants that announce such a queue."""
        return {endpoint.participant for endpoint in self._announced.values()}

    @property
    def is_complete(self) -> bool:
        """Return whether every announced queue is matched."""
        return sum(len(handles) for handles in self._matched.values()) == len(self._announced)


class ReappearedPeers:
    """Services that were out of sight and are back. Each is reported once, however many of its endpoints come back.

    Args:
        concerns: whether an endpoint is one of a service that this client deals with.
    """

    def __init__(self, concerns: Callable[[RemoteEndpoint], bool]) -> None:
        self._concerns = concerns
        self._missed: set[bytes] = set()

    def look(self, changes: Changes) -> bool:
        """Return whether a service is back now: it does not know that it was missed, and what it sent meanwhile is
        lost.
        """
        concerns = self._concerns
        self._missed.update(each.participant for each in changes.vanished if concerns(each))
        if not self._missed:
            return False
        back = self._missed & {each.participant for each in changes.appeared if each.returned and concerns(each)}
        self._missed -= back
        return bool(back)
