"""Listings drawn at random, with names and figures that a broker could print."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from qsctl.profiles.listings.model import (
    LARGEST_COUNT,
    NEIGHBOR_QUEUES,
    PRIORITY_QUEUES,
    ClientConnection,
    ClientQueues,
    ControlQueue,
    ListedQueueStatistics,
    NeighborConnection,
    NeighborQueues,
    SlowSubscriber,
)

COUNTS = st.integers(0, LARGEST_COUNT) | st.integers(0, 30_000)
NAMES = st.text(string.ascii_letters + string.digits + "_-./#@:", min_size=1, max_size=40).filter(
    lambda name: name not in {"unspecified", "-"} and not name.endswith(":") and "***" not in name
)
PERCENTS = st.integers(0, 10_000).map(lambda hundredths: hundredths / 100)


def optional(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.none() | strategy


def statistics(queue: str) -> st.SearchStrategy[ListedQueueStatistics]:
    return st.builds(ListedQueueStatistics, st.just(queue), *([COUNTS] * 6))


CLIENTS = st.builds(
    ClientQueues,
    name=NAMES,
    client_type=optional(NAMES),
    client_profile=optional(NAMES),
    acl_profile=optional(NAMES),
    subscriptions=optional(COUNTS),
    eliding_enabled=optional(st.booleans()),
    eliding_topics=optional(COUNTS),
    eliding_topics_high_water_mark=optional(COUNTS),
    local_priority=optional(COUNTS),
    network_priority=optional(COUNTS),
    client_id=optional(COUNTS),
    message_vpn=optional(NAMES),
    uptime_s=optional(st.integers(0, 10**9)),
    slow_subscriber=optional(st.booleans()),
    client_username=optional(NAMES),
    user=optional(NAMES),
    computer=optional(NAMES),
    process_id=optional(COUNTS),
    description=optional(NAMES | st.just("")),
    software_version=optional(NAMES),
    software_date=optional(NAMES),
    platform=optional(NAMES),
    large_message=optional(st.booleans()),
    message_too_big=optional(st.booleans()),
    parse_error=optional(st.booleans()),
    max_eliding_topics=optional(st.booleans()),
    queues=st.tuples(*map(statistics, PRIORITY_QUEUES)) | st.tuples(statistics("egress")),
)
NEIGHBORS = st.builds(
    NeighborQueues,
    name=NAMES,
    connect_via=optional(NAMES),
    control_port=optional(NAMES),
    control_queues=st.tuples(*(st.builds(ControlQueue, st.just(name), COUNTS, COUNTS) for name in ("CSPF", "SMRP"))),
    connections=st.integers(1, 4).flatmap(
        lambda count: st.tuples(
            *(
                st.builds(NeighborConnection, st.just(f"Conn-{number}"), st.tuples(*map(statistics, NEIGHBOR_QUEUES)))
                for number in range(1, count + 1)
            )
        )
    ),
)
SLOW = st.builds(
    SlowSubscriber,
    name=NAMES,
    message_vpn=optional(NAMES),
    client_username=optional(NAMES),
    client_address=optional(NAMES),
    slow_subscriber=st.booleans(),
    blocked_percent=PERCENTS,
)
CONNECTIONS = st.builds(
    ClientConnection,
    name=NAMES,
    message_vpn=optional(NAMES),
    client_address=optional(NAMES),
    local_address=optional(NAMES),
    state=optional(NAMES),
    receive_queue_bytes=optional(COUNTS),
    send_queue_bytes=COUNTS,
    maximum_segment_bytes=optional(COUNTS),
    sent_bytes=optional(COUNTS),
    round_trip_us=optional(COUNTS),
    advertised_window_bytes=optional(COUNTS),
    congestion_window_bytes=optional(COUNTS),
    fast_retransmits=optional(COUNTS),
    timed_retransmits=optional(COUNTS),
    uptime_s=optional(st.integers(0, 10**9)),
    blocked_percent=PERCENTS,
)
