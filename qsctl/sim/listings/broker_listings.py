"""The listings that a broker would print, from the results of a simulated run.

Decides the mapping: a client of the scenario is listed as a client, its group as the client username, and a group with
`neighbor="true"` as the link to a neighbour broker, with its four clients as Conn-1 to Conn-4. Everything is in the
message VPN `default`. Discards are those by the queue's limit, including evictions from G-1; `qsctl explain discards`
shows other losses. A figure that a simulator lacks is `unspecified`: users, computers, process numbers. A Parse Error
is never raised, since no message is malformed; Message Too Big is raised for the recipient of the message, since a
scenario names no publisher.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from qsctl import __version__
from qsctl.instant import SECOND_NS
from qsctl.profiles.listings.model import (
    NEIGHBOR_QUEUES,
    ClientConnection,
    ClientQueues,
    ControlQueue,
    ListedQueueStatistics,
    NeighborConnection,
    NeighborQueues,
    SlowSubscriber,
)
from qsctl.sim.egress.broker.subscriptions import subscription_count
from qsctl.sim.listings.run_state import ClientState, RunState, queue_names
from qsctl.sim.scenario.scenario import Model

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MESSAGE_VPN: Final = "default"
_BEFORE_QUEUES: Final = ("ingress_refused", "too_big", "not_connected", "waiting")
"""Outcomes of messages that no queue of the client saw: their topics were not known to it."""


def client_queues(state: RunState) -> Iterator[ClientQueues]:
    """Yield the output of `show client … stats queue` for every client."""
    topics = _eliding_topics(state)
    names = queue_names(state.scenario)
    for client in state.clients:
        if client.group.neighbor:
            continue
        known = _topics_of(state, client, topics)
        yield ClientQueues(
            name=client.name,
            client_type="Primary",
            client_profile=client.profile.name,
            acl_profile="default",
            subscriptions=subscription_count(state.scenario, client.group),
            eliding_enabled=client.profile.eliding.enabled and state.scenario.model is Model.SOLACE,
            eliding_topics=known,
            eliding_topics_high_water_mark=known,
            local_priority=1,
            network_priority=1,
            client_id=client.number,
            message_vpn=MESSAGE_VPN,
            uptime_s=_uptime_s(state, client),
            slow_subscriber=client.slow,
            client_username=client.group.name,
            description=f"simulated, run {state.run.info.run_id}, replication {state.replication.replication}",
            software_version=__version__,
            platform="qsctl",
            large_message=client.large_message,
            message_too_big=any(row["too_big_messages"] for row in client.counters.values()),
            parse_error=False,
            max_eliding_topics=client.max_eliding_topics,
            queues=tuple(_statistics(client, queue) for queue in names),
        )


def neighbor_queues(state: RunState) -> Iterator[NeighborQueues]:
    """Yield the output of `show cspf neighbor … stats queues` for every group that represents a neighbor.

    The control card is not simulated: its queues are empty.
    """
    for group in state.scenario.groups:
        if group.neighbor:
            connections = [client for client in state.clients if client.group is group]
            yield NeighborQueues(
                group.name,
                connect_via=group.name,
                control_queues=(ControlQueue("CSPF", 0, 0), ControlQueue("SMRP", 0, 0)),
                connections=tuple(
                    NeighborConnection(f"Conn-{number}", tuple(_statistics(client, queue) for queue in NEIGHBOR_QUEUES))
                    for number, client in enumerate(connections, 1)
                ),
            )


def slow_subscribers(state: RunState) -> Iterator[SlowSubscriber]:
    """Yield the output of `show client … slow-subscriber`: the clients that are, or may be, slow when the run ends."""
    for client in state.clients:
        if client.slow is not False and not client.group.neighbor:
            yield SlowSubscriber(client.name, MESSAGE_VPN, client.group.name, None, client.slow, client.slow_percent)


def connections(state: RunState) -> Iterator[ClientConnection]:
    """Yield the output of `show client … connections wide` for every client that is connected when the run ends.

    The segment size is the profile's and the round trip the group's; bytes sent are those of delivered messages.
    """
    for client in state.clients:
        if client.is_connected is not False and not client.group.neighbor:
            yield ClientConnection(
                name=client.name,
                message_vpn=MESSAGE_VPN,
                state="ESTAB" if client.is_connected else None,
                maximum_segment_bytes=client.profile.tcp.mss_bytes,
                sent_bytes=sum(row["delivered_bytes"] for row in client.counters.values()),
                round_trip_us=client.group.round_trip_ns // 1_000,
                fast_retransmits=_fast_retransmits(client),
                timed_retransmits=client.time_outs,
                uptime_s=_uptime_s(state, client),
                blocked_percent=client.slow_percent,
            )


def _fast_retransmits(client: ClientState) -> int | None:
    """Return the number of segments retransmitted without a time-out, or None where it is unknown."""
    if client.retransmissions is None or client.time_outs is None:
        return None
    return client.retransmissions - client.time_outs


def _statistics(client: ClientState, queue: str) -> ListedQueueStatistics:
    row = client.counters.get(queue)
    if row is None:
        return ListedQueueStatistics(queue, 0, 0, 0, client.max_depths[queue], 0, 0)
    return ListedQueueStatistics(
        queue,
        row["length_messages"],
        row["length_work_units"],
        row["high_water_mark_work_units"],
        row["max_depth_work_units"],
        row["discarded_messages"] + row["evicted_messages"],
        row["delivered_messages"],
    )


def _uptime_s(state: RunState, client: ClientState) -> int | None:
    if client.connected_at_ns is None:
        return None
    return (state.replication.simulated_ns - client.connected_at_ns) // SECOND_NS


def _topics_of(state: RunState, client: ClientState, topics: dict[int, int] | None) -> int | None:
    """Return the number of topics that a client is eliding; None: the log lacks it, as after a disconnection."""
    if not client.profile.eliding.enabled or state.scenario.model is not Model.SOLACE:
        return 0
    if topics is None or client.connected_at_ns != 0:
        return None
    return min(topics.get(client.number, 0), client.profile.eliding.max_topics)


def _eliding_topics(state: RunState) -> dict[int, int] | None:
    """Return the number of topics of direct messages by client number; None: messages are not logged."""
    if not any(client.profile.eliding.enabled for client in state.clients):
        return {}
    if state.run.info.log_level == "counters":
        return None
    import numpy as np

    pairs: npt.NDArray[np.int64] = np.zeros(0, np.int64)
    for batch in state.run.messages(["client_id", "topic_id", "queue", "outcome"]):
        if batch.column("replication")[0].as_py() != state.replication.replication:
            continue
        outcome, queue = batch.column("outcome"), batch.column("queue")
        seen = np.array([word not in _BEFORE_QUEUES for word in outcome.dictionary.to_pylist()])
        direct = np.array([word.startswith("D-") for word in queue.dictionary.to_pylist()])
        chosen = seen[outcome.indices.to_numpy()] & direct[queue.indices.to_numpy()]
        both = (batch.column("client_id").to_numpy().astype(np.int64) << 32) | batch.column("topic_id").to_numpy()
        pairs = np.unique(np.concatenate([pairs, both[chosen]]))
    numbers, counts = np.unique(pairs >> 32, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))
