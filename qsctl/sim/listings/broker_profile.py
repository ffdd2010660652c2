"""A scenario's profile as a broker's client profile with its users: the output of `show client-profile … detail`.

Settings that the simulator lacks have the vendor's defaults. A maximum window that is not a whole number of KB is
rounded up, since the broker counts in KB.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from qsctl.instant import MILLISECOND_NS
from qsctl.profiles.client_profile import QUEUE_ORDER, ClientProfile, burst_field, depth_field
from qsctl.profiles.ranges import default_profile
from qsctl.sim.listings.run_state import RunState
from qsctl.sim.scenario.scenario import KILOBYTE_BYTES, Profile

CLIENT_USERNAME = "CU"
"""The type of a user of a profile, as the listing's legend has it."""


def broker_profile(profile: Profile, message_vpn: str) -> ClientProfile:
    """Return a client profile of the broker with the values of a scenario's profile.

    Args:
        profile: a profile of a scenario of the Solace model, with all its queues.
        message_vpn: the message VPN that the client profile belongs to.
    """
    queues: dict[str, Any] = {}
    for queue in QUEUE_ORDER:
        limits = profile.queues[queue]
        queues |= {depth_field(queue): limits.max_depth_work_units, burst_field(queue): limits.min_msg_burst}
    return dataclasses.replace(
        default_profile(profile.name, message_vpn),
        **queues,
        tcp_mss_bytes=profile.tcp.mss_bytes,
        tcp_initial_window_segments=profile.tcp.initial_window_segments,
        tcp_max_window_kb=-(-profile.tcp.max_window_bytes // KILOBYTE_BYTES),
        eliding_enabled=profile.eliding.enabled,
        eliding_delay_ms=-(-profile.eliding.delay_ns // MILLISECOND_NS),
        eliding_max_topics=profile.eliding.max_topics,
    )


def users_of(state: RunState, profile: str) -> Iterator[tuple[str, str, int]]:
    """Yield the groups of clients that have a profile, as client usernames.

    Each tuple has the type, the name and the number of clients connected at the end.
    """
    for group in state.scenario.groups:
        if group.profile == profile and not group.neighbor:
            clients = [client for client in state.clients if client.group is group]
            yield CLIENT_USERNAME, group.name, sum(client.is_connected is not False for client in clients)
