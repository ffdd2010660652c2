"""QoS policies of applications of RTI Queuing Service, compared with the endpoints of a queue.

Decides which policies prevent two endpoints from matching or lose samples [DDS 2.2.3, QS 2.4 and 2.5], and which
features of Connext's protocol are not in RTPS 2.5: application acknowledgments, batches, channels, compression. A
policy in no table concerns the application's own DDS library alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

SAME, DIFFERENT, ABSENT = "same", "different", "not there"
OWN_LIBRARY: Final = "of the application's own DDS library; a queue does not ask for it"

KINDS: Final[Mapping[str, str]] = {
    "datawriter_qos": "writer",
    "datareader_qos": "reader",
    "participant_qos": "participant",
    "domain_participant_qos": "participant",
    "publisher_qos": "publisher",
    "subscriber_qos": "subscriber",
}
"""The elements of a profile that are judged, and the kind of endpoint that each configures."""


class _Policy(NamedTuple):
    """The values of a policy with the same effect here, the verdict on all others, and the advice for them."""

    same: frozenset[str]
    otherwise: str
    to_do: str


_ZERO: Final = frozenset({"0s", "0s 0ns", "0ns", "ZERO"})
_INFINITE: Final = frozenset({"INFINITE"})
_NO: Final = frozenset({"false", "0", "no", "BOOLEAN_FALSE"})
_ANSWERS: Final = "Leave it out; answers are samples: qsctl help rti-shop, rows 4 and 5."
_BATCHES: Final = "Switch it off: a batch is a submessage of Connext's own, which Cyclone DDS does not read."
_UNMATCHED: Final = "a reader that requests more is not matched, unless the queue's <datawriter_qos> offers it"
_PLAIN_WRITERS: Final = "Plain writers are in no partition; consumers have one of their own each."
_PORTS: Final = "Leave it out: a service has the ports of RTPS 9.6.1."


def _of(to_do: str, *same: str, otherwise: str = DIFFERENT) -> _Policy:
    return _Policy(frozenset(same), otherwise, to_do)


_PROTOCOL: Final = _of(_ANSWERS, "PROTOCOL_ACKNOWLEDGMENT_MODE", otherwise=ABSENT)
_SHARED: Final = _of("Set SHARED: a queue matches nothing else.", "SHARED_OWNERSHIP_QOS")
_COMPRESSION: Final = (
    "Set MASK_NONE: only Connext expands what is compressed, and the queue gives it out as it is written."
)

_POLICIES: Final[Mapping[str, Mapping[str, _Policy]]] = {
    "writer": {
        "reliability/kind": _of("Set RELIABLE: a queue matches nothing else.", "RELIABLE_RELIABILITY_QOS"),
        "reliability/acknowledgment_kind": _PROTOCOL,
        "history/kind": _of(
            "Set KEEP_ALL: else samples are replaced before they are received.", "KEEP_ALL_HISTORY_QOS"
        ),
        "durability/kind": _of(
            "VOLATILE is enough: a queue stores samples itself, and requests none of before it was matched.",
            "VOLATILE_DURABILITY_QOS",
        ),
        "ownership/kind": _SHARED,
        "availability": _of("Leave it out: durable subscriptions are the queue's.", otherwise=ABSENT),
        "batch/enable": _Policy(_NO, ABSENT, _BATCHES),
        "property[dds.data_writer.enable_turbo_mode]": _Policy(_NO, ABSENT, _BATCHES),
        "multi_channel": _of("Leave it out: a service joins no channels of Connext.", otherwise=ABSENT),
        "representation/compression_settings/compression_ids": _of(_COMPRESSION, "MASK_NONE", otherwise=ABSENT),
    },
    "reader": {
        "reliability/kind": _of("Set RELIABLE: else deliveries are lost on the way.", "RELIABLE_RELIABILITY_QOS"),
        "reliability/acknowledgment_kind": _PROTOCOL,
        "history/kind": _of("Set KEEP_ALL: else deliveries are replaced unread.", "KEEP_ALL_HISTORY_QOS"),
        "durability/kind": _of(
            f"Set VOLATILE: {_UNMATCHED}.",
            "VOLATILE_DURABILITY_QOS",
        ),
        "ownership/kind": _SHARED,
        "availability": _of("Leave it out: durable subscriptions are the queue's.", otherwise=ABSENT),
        "deadline/period": _Policy(_INFINITE, DIFFERENT, f"Leave it out: {_UNMATCHED}."),
        "liveliness/kind": _of(f"Set AUTOMATIC: {_UNMATCHED}.", "AUTOMATIC_LIVELINESS_QOS"),
        "liveliness/lease_duration": _Policy(_INFINITE, DIFFERENT, f"Leave it out: {_UNMATCHED}."),
        "destination_order/kind": _of(
            f"Set BY_RECEPTION_TIMESTAMP: {_UNMATCHED}.",
            "BY_RECEPTION_TIMESTAMP_DESTINATIONORDER_QOS",
        ),
        "time_based_filter/minimum_separation": _Policy(
            _ZERO, DIFFERENT, "Leave it out: a delivery that it drops is never acknowledged."
        ),
        "reader_resource_limits/max_app_ack_response_length": _of(_ANSWERS, otherwise=ABSENT),
        "protocol/rtps_reliable_reader/app_ack_period": _of(_ANSWERS, otherwise=ABSENT),
        "property[dds.data_reader.shared_subscriber_name]": _of(
            "Consume <topic>@<subscriber> by name: qsctl help rti-shop, row 6.", otherwise=ABSENT
        ),
    },
    "publisher": {
        "partition": _of(_PLAIN_WRITERS),
        "presentation/coherent_access": _Policy(_NO, DIFFERENT, "A queue stores each sample by itself, not sets."),
    },
    "subscriber": {
        "partition": _of(_PLAIN_WRITERS),
        "presentation/access_scope": _of(
            "Set INSTANCE: a reader that requests more is not matched.", "INSTANCE_PRESENTATION_QOS"
        ),
        "presentation/coherent_access": _Policy(_NO, DIFFERENT, "Set false: a reader that requests it is not matched."),
        "presentation/ordered_access": _Policy(_NO, DIFFERENT, "Set false: a reader that requests it is not matched."),
    },
    "participant": {
        "discovery/initial_peers": _of("Let it hold the service's address; the service names peers by --peer."),
        "wire_protocol/rtps_well_known_ports/port_base": _of(_PORTS, "7400"),
        "wire_protocol/rtps_well_known_ports/domain_id_gain": _of(_PORTS, "250"),
        "wire_protocol/rtps_well_known_ports/participant_id_gain": _of(_PORTS, "2"),
        "wire_protocol/rtps_well_known_ports/builtin_multicast_port_offset": _of(_PORTS, "0"),
        "wire_protocol/rtps_well_known_ports/builtin_unicast_port_offset": _of(_PORTS, "10"),
        "wire_protocol/rtps_well_known_ports/user_multicast_port_offset": _of(_PORTS, "1"),
        "wire_protocol/rtps_well_known_ports/user_unicast_port_offset": _of(_PORTS, "11"),
    },
}
"""The policies that matter to a queue, by kind of endpoint and path of the element."""

_BASES: Final[Mapping[str, tuple[str, str]]] = {
    "Security": (ABSENT, "There is no DDS Security here: qsctl help security."),
    "BestEffort": (DIFFERENT, "Set RELIABLE and KEEP_ALL."),
    "KeepLast": (DIFFERENT, "Set KEEP_ALL: else samples are replaced."),
    "HighThroughput": (ABSENT, _BATCHES),
    "AutoTuning": (ABSENT, _BATCHES),
}
"""Verdict and advice for profiles that come with Connext, by a word in their names."""

_RELIABLE_BASES: Final = re.compile(
    r"Generic\.(StrictReliable|Participant\.LargeData|Common)(\.|$)|Generic\.OtherDDSVendor"
)
_NOT_IN_THE_FILE: Final = "Its values are Connext's: set reliability and history in the profile itself."

_MASK_WITH_UDP: Final = frozenset({"UDPv4", "MASK_DEFAULT", "MASK_ALL", "DDS_TRANSPORTBUILTIN_UDPv4"})
_ONE_TRANSPORT: Final = "UDP alone is spoken: let the mask hold UDPv4."
_NO_PLUGIN: Final = "UDP alone is spoken: load no plug-in, and let the mask of <transport_builtin> hold UDPv4."
_BUILT_IN: Final = re.compile(r"dds\.transport\.(use_|\w+\.builtin\.)")
_SECRET: Final = re.compile(r"password|passphrase|private_key|secret", re.I)

DEFAULTS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "writer": (("history/kind", "KEEP_LAST_HISTORY_QOS"),),
    "reader": (("reliability/kind", "BEST_EFFORT_RELIABILITY_QOS"), ("history/kind", "KEEP_LAST_HISTORY_QOS")),
}
"""Defaults of DDS that do not fit a queue's endpoints, for profiles without a base [DDS 2.2.3]."""


def judge_policy(kind: str, path: str, value: str) -> tuple[str, str]:
    """Return whether a policy has the same effect here, and the advice.

    Args:
        kind: the kind of endpoint, one of the values of `KINDS`.
        path: the elements from the entity's QoS to the policy, separated by slashes.
        value: its text; durations in the form of `duration_text`.
    """
    if kind == "participant":
        if path == "transport_builtin/mask":
            bits = {bit.strip() for bit in value.split("|")}
            return (SAME, "") if bits & _MASK_WITH_UDP else (DIFFERENT, _ONE_TRANSPORT)
        if path.startswith("property["):
            return _judge_property(path[len("property[") : -1], value)
    policies = _POLICIES[kind]
    policy = next((policies[each] for each in _prefixes(path) if each in policies), None)
    if policy is None:
        return SAME, OWN_LIBRARY
    return (SAME, "") if value.removeprefix("DDS_") in policy.same else (policy.otherwise, policy.to_do)


def judge_base(name: str) -> tuple[str, str] | None:
    """Return the verdict on a profile's base; None if the base is a profile of the same file."""
    if not name.startswith("Builtin"):
        return None
    for word, verdict in _BASES.items():
        if word in name:
            return verdict
    return (SAME, "") if _RELIABLE_BASES.search(name) else (DIFFERENT, _NOT_IN_THE_FILE)


def shown_value(path: str, value: str) -> str:
    """Return a value as it may be printed; a secret is hidden."""
    return "(not shown)" if _SECRET.search(path) else value


def _judge_property(name: str, value: str) -> tuple[str, str]:
    from qsctl.config.qos_libraries.transport_properties import map_transport

    mapping = map_transport({name: value})
    if mapping.refused and not name.startswith("dds.transport."):
        return _BASES["Security"]
    if ".tls." in name:
        return ABSENT, "There is no TLS here: qsctl help security."
    if name.startswith("dds.transport.") and not _BUILT_IN.match(name):
        return DIFFERENT, _NO_PLUGIN
    return SAME, OWN_LIBRARY


def _prefixes(path: str) -> list[str]:
    steps = path.split("/")
    return ["/".join(steps[:count]) for count in range(len(steps), 0, -1)]
