"""Checks of a client profile for effects that its operator may not intend: findings with rule, numbers and remedy.

Decides: the rules. A rule that depends on the load (flows, topics, web clients, queued messages) is applied only where
the circumstances have it; a rule that depends on the profile alone is always applied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds, format_duration
from qsctl.profiles.client_profile import ClientProfile, Queue, Threshold, depth_field, work_units
from qsctl.profiles.listings.slowness import loss_limit_bits_per_second
from qsctl.profiles.ranges import BY_FIELD, SETTINGS, WEB_DEPTH_WORK_UNITS, limit_of, value_of
from qsctl.profiles.setting import ProfileSetting
from qsctl.profiles.sizing import (
    DEFAULT_UNACKNOWLEDGED_LIMIT,
    DEFAULT_WINDOW_MESSAGES,
    KILOBYTE_BYTES,
    ClientLoad,
    acknowledged_per_second,
    admitted_messages,
    tcp_bits_per_second,
)

_DIRECT: Final = (Queue.D_1, Queue.D_2, Queue.D_3)


class Weight(StrEnum):
    """The weight of a finding: with a warning, the command's answer is negative."""

    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A finding about one setting of a profile.

    `setting` is the name that the table has for it, or `flow_window`, `unacknowledged_limit`: settings of a consumer
    and of an endpoint, which no profile has.
    """

    rule: str
    weight: Weight
    setting: str
    message: str
    numbers: str
    lever: str
    source: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The known load; 0 and None where it is unknown.

    Args:
        flows: consumer flows of one client; 0: no known guaranteed consumer.
        window_messages: of one flow.
        message_bytes: length of the largest messages.
        topics: unique topics that one client receives; 0: as many as may be elided.
        is_web: whether the clients are web messaging clients.
        queued_work_units: the queued work units, by queue.
        stated: fields that the file states; None: all.
        round_trip_ns: between broker and client; 0: not known.
        bits_per_second: required for one client; 0: not known.
        unacknowledged_limit: of each flow's endpoint.
        acknowledge_after_ns: from delivery to the application's acknowledgment; 0: not known; infinite: never.
        loss: probability that the network loses a TCP segment; 0: not known.
    """

    flows: int = 0
    window_messages: int = DEFAULT_WINDOW_MESSAGES
    message_bytes: int = 1024
    topics: int = 0
    is_web: bool = False
    queued_work_units: Mapping[Queue, int] = field(default_factory=dict)
    stated: frozenset[str] | None = None
    round_trip_ns: Nanoseconds = 0
    bits_per_second: int = 0
    unacknowledged_limit: int = DEFAULT_UNACKNOWLEDGED_LIMIT
    acknowledge_after_ns: Nanoseconds = 0
    loss: float = 0.0

    @property
    def load(self) -> ClientLoad:
        """The circumstances as the load that the sizing formulas accept."""
        return ClientLoad(
            max(1, self.flows),
            self.window_messages,
            self.message_bytes,
            1,
            self.round_trip_ns,
            self.bits_per_second,
            self.unacknowledged_limit,
            self.acknowledge_after_ns,
        )


_BURSTS: Final = 'Message Delivery Resources, "Configuring Egress Queue Minimum Message Bursts"'
_DEPTHS: Final = 'Message Delivery Resources, "Configuring Max Egress Queue Depths"'
_TABLE: Final = "profiles/ranges.py"
_TCP: Final = "TCP Settings"
_MATHIS: Final = "Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, 1997"
_UNACKNOWLEDGED: Final = "Configuring Queues; Acknowledging Messages Received by Clients"


def lint(profile: ClientProfile, known: Circumstances | None = None) -> tuple[LintFinding, ...]:
    """Return the findings, warnings first."""
    circumstances = known or Circumstances()
    found = [finding for rule in _RULES for finding in rule(profile, circumstances)]
    return tuple(sorted(found, key=lambda finding: finding.weight is Weight.NOTE))


def _guaranteed(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    """Find a burst below flows × window: flows are throttled where the depth admits no more messages (W1 to W3)."""
    flows = known.flows or 1
    wanted = flows * known.window_messages
    units = work_units(known.message_bytes)
    burst, depth = profile.g_1_min_msg_burst, profile.g_1_max_depth_work_units
    if burst >= wanted:
        return
    admitted = admitted_messages(depth, burst, units)
    numbers = (
        f"min-msg-burst {burst:,} < {flows:,} × {known.window_messages:,} = {wanted:,} messages; "
        f"max-depth {depth:,} ÷ {units:,} admits {depth // units:,}"
    )
    lever = f"Set min-msg-burst of G-1 to {wanted:,} or more, or take smaller windows."
    if admitted < wanted:
        yield LintFinding(
            "g-1-burst-below-window", Weight.WARNING, "g_1_min_msg_burst",
            f"guaranteed delivery is throttled: at most {admitted:,} of {wanted:,} messages are in flight", numbers,
            lever, _BURSTS,
        )  # fmt: skip
    else:
        largest = depth // wanted
        yield LintFinding(
            "g-1-burst-below-window", Weight.NOTE, "g_1_min_msg_burst",
            f"the burst is below flows × window; the depth alone admits messages of up to {largest:,} work units",
            numbers, lever, _BURSTS,
        )  # fmt: skip


def _round_trip(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    """Compare the rate of one maximum TCP window a round trip with the required rate of a connection (W8)."""
    if not known.round_trip_ns:
        return
    limit = tcp_bits_per_second(profile, known.round_trip_ns)
    is_enough = known.bits_per_second <= limit
    needed_kb = -(-known.bits_per_second * known.round_trip_ns // (8 * SECOND_NS * KILOBYTE_BYTES))
    most_kb = BY_FIELD["tcp_max_window_kb"].maximum
    numbers = f"{profile.tcp_max_window_kb:,} KB × 8 ÷ {format_duration(known.round_trip_ns)} = {_rate(limit)}" + (
        "" if is_enough else f" < {_rate(known.bits_per_second)}"
    )
    if is_enough:
        weight, lever = Weight.NOTE, "A higher rate needs a larger window: rate × round trip ÷ 8."
    elif needed_kb <= most_kb:
        weight = Weight.WARNING
        lever = (
            f"Set tcp max-wnd to {needed_kb:,} KB or more, the receive buffer of the client too; current brokers leave "
            "it to the operating systems."
        )
    else:
        weight = Weight.WARNING
        lever = f"Take {-(-known.bits_per_second // int(limit)):,} connections, or a client nearer to the broker."
    yield LintFinding(
        "window-below-rate", weight, "tcp_max_window_kb", f"one connection carries at most {_rate(limit)}", numbers,
        lever, _TCP,
    )  # fmt: skip


def _loss(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    """Find a maximum window that a connection never reaches because segments are lost (W13)."""
    if not (known.round_trip_ns and known.loss):
        return
    limit = loss_limit_bits_per_second(profile.tcp_mss_bytes, known.round_trip_ns / SECOND_NS, known.loss)
    if limit >= tcp_bits_per_second(profile, known.round_trip_ns):
        return
    is_enough = known.bits_per_second <= limit
    numbers = (
        f"1.22 × {profile.tcp_mss_bytes:,} B × 8 ÷ ({format_duration(known.round_trip_ns)} × √{known.loss:g}) = "
        f"{_rate(limit)}" + ("" if is_enough else f" < {_rate(known.bits_per_second)}")
    )
    connections = "several" if is_enough else f"{math.ceil(known.bits_per_second / limit):,}"
    yield LintFinding(
        "loss-below-rate", Weight.NOTE if is_enough else Weight.WARNING, "tcp_mss_bytes",
        f"one connection that loses segments carries about {_rate(limit)}, whatever its window", numbers,
        f"Repair the network, or take {connections} connections; a larger window does not help.", _MATHIS,
    )  # fmt: skip


def _windows_in_flight(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    """Find G-1 and flow windows that allow less than the required rate: what is in flight, once a round trip."""
    load = known.load
    if not (known.flows and known.round_trip_ns and known.bits_per_second):
        return
    wanted = load.flows * load.window_messages
    admitted = admitted_messages(
        profile.g_1_max_depth_work_units, profile.g_1_min_msg_burst, work_units(load.message_bytes)
    )
    in_flight = min(wanted, admitted)
    rate = in_flight * SECOND_NS / known.round_trip_ns
    if rate >= load.messages_per_second:
        return
    is_window = wanted <= admitted
    needed = -(-known.bits_per_second * known.round_trip_ns // (8 * load.message_bytes * SECOND_NS))
    yield LintFinding(
        "in-flight-below-rate", Weight.WARNING, "flow_window" if is_window else "g_1_min_msg_burst",
        f"guaranteed delivery is limited to {rate:,.0f} messages a second",
        f"min({load.flows:,} × {load.window_messages:,}, G-1 admits {admitted:,}) ÷ "
        f"{format_duration(known.round_trip_ns)} = {rate:,.0f}/s < {load.messages_per_second:,.0f}/s",
        f"Have {needed:,} messages in flight: "
        + (f"windows of {-(-needed // load.flows):,} a flow" if is_window else "a larger min-msg-burst of G-1")
        + ", or more flows.",
        _BURSTS,
    )  # fmt: skip


def _acknowledgments(_: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    """Compare the application's limit of unacknowledged messages with the library's window (W7, W12)."""
    load = known.load
    limit = known.unacknowledged_limit
    if known.acknowledge_after_ns >= INFINITE_NS:
        yield LintFinding(
            "never-acknowledged", Weight.WARNING, "unacknowledged_limit",
            f"each flow delivers {limit:,} messages, then none", f"{limit:,} unacknowledged messages a flow",
            "Acknowledge each message when it is processed.", _UNACKNOWLEDGED,
        )  # fmt: skip
    elif known.acknowledge_after_ns:
        rate = acknowledged_per_second(load)
        wanted = load.messages_per_second
        if wanted > rate:
            needed = -(-known.bits_per_second * known.acknowledge_after_ns // (8 * load.message_bytes * SECOND_NS))
            yield LintFinding(
                "unacknowledged-below-rate", Weight.WARNING, "unacknowledged_limit",
                f"the application's acknowledgments allow {rate:,.0f} messages a second",
                f"{load.flows:,} × {limit:,} ÷ {format_duration(known.acknowledge_after_ns)} = {rate:,.0f}/s "
                f"< {wanted:,.0f}/s",
                f"Set max-delivered-unacked-msgs-per-flow to {-(-needed // load.flows):,} or more, or acknowledge "
                "sooner.",
                _UNACKNOWLEDGED,
            )  # fmt: skip
    if known.flows and limit < known.window_messages:
        yield LintFinding(
            "unacknowledged-below-window", Weight.NOTE, "unacknowledged_limit",
            f"a flow whose application acknowledges nothing delivers {limit:,} messages, not a window",
            f"{limit:,} < {known.window_messages:,}", "Nothing, if this is intended: the window is never used up.",
            _UNACKNOWLEDGED,
        )  # fmt: skip


def _rate(bits_per_second: float) -> str:
    for scale, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_second >= scale:
            return f"{bits_per_second / scale:.3g} {unit}"
    return f"{bits_per_second:.3g} bit/s"


def _flows(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    if known.flows > profile.max_egress_flows:
        yield LintFinding(
            "flows-above-limit", Weight.WARNING, "max_egress_flows", "not all flows can be opened",
            f"{known.flows:,} flows > {profile.max_egress_flows:,}",
            f"Set max-egress-flows to {known.flows:,} or more.", "SEMP v2, maxEgressFlowCount",
        )  # fmt: skip
    if known.flows and not profile.allow_guaranteed_message_receive:
        yield LintFinding(
            "guaranteed-receive-denied", Weight.WARNING, "allow_guaranteed_message_receive",
            "clients of this profile may not receive guaranteed messages",
            f"{known.flows:,} flows, Guaranteed Message Receive : deny", "Set allow-guaranteed-message-receive.",
            "SEMP v2, allowGuaranteedMsgReceiveEnabled",
        )  # fmt: skip


def _eliding(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    """Find queues too small for one message a topic, topics that are not elided, and a delay without eliding."""
    if not profile.eliding_enabled:
        if profile.eliding_delay_ms:
            yield LintFinding(
                "eliding-delay-without-eliding", Weight.NOTE, "eliding_delay_ms", "the delay has no effect",
                f"delay {profile.eliding_delay_ms:,} ms, eliding is off", "Enable eliding, or reset the delay.", _TABLE,
            )  # fmt: skip
        return
    topics = known.topics or profile.eliding_max_topics
    units = work_units(known.message_bytes)
    needed = topics * units
    for queue in _DIRECT:
        depth = profile.queue(queue).max_depth_work_units
        if depth < needed:
            yield LintFinding(
                "eliding-depth", Weight.WARNING, depth_field(queue),
                f"{queue} has no room for one message of each topic: what eliding would keep is discarded",
                f"max-depth {depth:,} < {topics:,} topics × {units:,} = {needed:,} work units",
                f"Set max-depth of {queue} to {needed:,} or more.", _DEPTHS,
            )  # fmt: skip
    if known.topics > profile.eliding_max_topics:
        yield LintFinding(
            "eliding-topics", Weight.WARNING, "eliding_max_topics", "topics beyond the maximum are not elided",
            f"{known.topics:,} topics > {profile.eliding_max_topics:,}",
            f"Set max-topics to {known.topics:,} or more.", _DEPTHS,
        )  # fmt: skip


def _web(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    if not known.is_web or profile.eliding_enabled:
        return
    for queue in _DIRECT:
        depth = profile.queue(queue).max_depth_work_units
        if depth > WEB_DEPTH_WORK_UNITS:
            yield LintFinding(
                "web-depth", Weight.WARNING, depth_field(queue),
                "for web messaging clients without eliding the vendor recommends less, as there may be very many",
                f"max-depth {depth:,} > {WEB_DEPTH_WORK_UNITS}",
                f"Set max-depth of {queue} to {WEB_DEPTH_WORK_UNITS}.", _DEPTHS,
            )  # fmt: skip


def _sizes(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    units = work_units(known.message_bytes)
    for queue in _DIRECT:
        limits = profile.queue(queue)
        if limits.max_depth_work_units < units and limits.min_msg_burst < 2:
            yield LintFinding(
                "depth-below-one-message", Weight.WARNING, depth_field(queue),
                f"{queue} never holds more than one message of this size",
                f"max-depth {limits.max_depth_work_units:,} < {units:,} work units, min-msg-burst "
                f"{limits.min_msg_burst}", "Raise max-depth, or min-msg-burst to 4.", _BURSTS,
            )  # fmt: skip


def _queued(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    """Note a depth below what is queued: queued messages stay, only new ones are checked against it."""
    for queue, queued in known.queued_work_units.items():
        depth = profile.queue(queue).max_depth_work_units
        if queued > depth:
            direct = "each arrival discards the oldest messages until there is room"
            guaranteed = "messages wait at their endpoints until there is room"
            yield LintFinding(
                "depth-below-queued", Weight.WARNING, depth_field(queue),
                f"{queue} holds more than this depth: what is queued stays, and "
                f"{guaranteed if queue is Queue.G_1 else direct}",
                f"queued {queued:,} > max-depth {depth:,} work units",
                f"Wait until {queue} is below {depth:,}, or choose {queued:,} or more.", _DEPTHS,
            )  # fmt: skip


def _deprecated(profile: ClientProfile, known: Circumstances) -> Iterator[LintFinding]:
    for setting in SETTINGS:
        value = value_of(profile, setting)
        is_stated = known.stated is None or setting.field in known.stated
        if setting.deprecated and is_stated and value != setting.default:
            yield LintFinding(
                "deprecated", Weight.WARNING, setting.field, f"{setting.semp_v2}: {setting.deprecated}",
                f"{value} where {setting.default!r} is the default", "Take it out of the file.", setting.source,
            )  # fmt: skip


def _thresholds(profile: ClientProfile, _: Circumstances) -> Iterator[LintFinding]:
    for setting in SETTINGS:
        value = value_of(profile, setting)
        if isinstance(value, Threshold):
            yield from _threshold(profile, setting, value)


def _threshold(profile: ClientProfile, setting: ProfileSetting, value: Threshold) -> Iterator[LintFinding]:
    unit = " %" if value.is_percent else ""
    if value.clear_at > value.set_at:
        yield LintFinding(
            "threshold-reversed", Weight.WARNING, setting.field, "the event is withdrawn above its own level",
            f"clear {value.clear_at:,}{unit} > set {value.set_at:,}{unit}", "Exchange the two levels.", setting.source,
        )  # fmt: skip
    limit = limit_of(profile, setting)
    if not value.is_percent and limit is not None and value.set_at > limit:
        yield LintFinding(
            "threshold-above-limit", Weight.WARNING, setting.field, "the event is never raised",
            f"set {value.set_at:,} > {setting.limit} {limit:,}", f"Set it to at most {limit:,}, or in percent.",
            setting.source,
        )  # fmt: skip


def _name(profile: ClientProfile, _: Circumstances) -> Iterator[LintFinding]:
    if "-" in profile.name:
        yield LintFinding(
            "name", Weight.NOTE, "name", "older brokers accept only letters, digits and _ in the name of a profile",
            profile.name, "Choose a name without -.", 'Message Delivery Resources, "client-profile <name>"',
        )  # fmt: skip


_RULES: Final[tuple[Callable[[ClientProfile, Circumstances], Iterator[LintFinding]], ...]] = (
    _guaranteed, _round_trip, _loss, _windows_in_flight, _acknowledgments, _flows, _eliding, _web, _sizes, _queued,
    _deprecated, _thresholds, _name,
)  # fmt: skip
