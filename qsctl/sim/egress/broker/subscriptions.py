"""The limit of a client's subscriptions: its events, and the messages that no longer reach the client.

Our reading, as [SOL-QUEUES] states only the limit (Max # Subscriptions) and its event threshold: a client subscribes to
the topics of the direct traffic to it, in the order of the scenario; those beyond the limit are refused (Too Many
Subscriptions, one event a client), so that their messages match no subscription and are not published to it. Messages
of endpoints and of C-1 need no subscription of the client.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.profiles.ranges import default_profile
from qsctl.sim.arrivals.streams import client_ranges
from qsctl.sim.kernel.jit import as_records
from qsctl.sim.model import Event
from qsctl.sim.scenario.scenario import ClientGroup, Queue, Scenario

SET_PERCENT: Final = default_profile().subscriptions_threshold.set_at
"""Of the limit: above it the threshold event is raised (80 %: [SOL-QUEUES])."""
_SUBSCRIBED: Final = frozenset({Queue.D_1, Queue.D_2, Queue.D_3})


class Subscriptions:
    """The subscriptions of every group's clients, by topic numbers.

    Args:
        scenario: with profiles for all its groups.
        topics: the first topic number and the number of topics of each traffic, in the scenario's order.
    """

    def __init__(self, scenario: Scenario, topics: Sequence[tuple[int, int]]) -> None:
        self._scenario = scenario
        limits = {profile.name: profile.max_subscriptions for profile in scenario.profiles}
        self._limits = {group.name: limits.get(group.profile, -1) for group in scenario.groups}
        self._wanted = dict.fromkeys(self._limits, 0)
        refused: list[tuple[int, int]] = []
        for traffic, (first, count) in zip(scenario.traffic, topics, strict=True):
            limit = self._limits.get(traffic.to, -1)
            if traffic.queue not in _SUBSCRIBED or limit < 0:
                continue
            left = max(0, limit - self._wanted[traffic.to])
            self._wanted[traffic.to] += count
            if count > left:
                refused.append((first + left, first + count))
        self._bounds = np.array(refused, np.int64).reshape(-1)

    def matching(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the arrivals that match a subscription; the same array where all do."""
        if not len(self._bounds):
            return rows
        # Topic numbers rise from traffic to traffic, so that an odd place among the bounds is inside a refused range.
        place = np.searchsorted(self._bounds, rows["topic"], side="right")
        return as_records(rows[place % 2 == 0])

    def events(self) -> Iterator[tuple[int, int, Event]]:
        """Yield client, value and kind of the events that are raised when the clients connect."""
        ranges = client_ranges(self._scenario)
        for group in self._scenario.groups:
            limit, wanted = self._limits[group.name], self._wanted[group.name]
            if limit < 0:
                continue
            first, count = ranges[group.name]
            percent = 100 * min(wanted, limit) // limit
            for client in range(first, first + count) if percent >= SET_PERCENT else ():
                yield client, percent, Event.SUBSCRIPTIONS_SET
            for client in range(first, first + count) if wanted > limit else ():
                yield client, wanted - limit, Event.TOO_MANY_SUBSCRIPTIONS


def subscription_count(scenario: Scenario, group: ClientGroup) -> int:
    """Return the number of subscriptions that each client of a group has.

    A trace counts as one, since its topics are only in its file.
    """
    wanted = sum(each.topics for each in scenario.traffic if each.to == group.name and each.queue in _SUBSCRIBED)
    limit = next((each.max_subscriptions for each in scenario.profiles if each.name == group.profile), -1)
    return wanted if limit < 0 else min(wanted, limit)
