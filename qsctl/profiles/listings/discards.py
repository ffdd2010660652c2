"""Discards by cause: what each is, its lever, and how captured statistics name it.

Two statistics count them. Those of clients (`show stats client`, `show client … stats`, `show message-vpn … stats`)
count what was refused on its way in and dropped on its way out. What the message spool did is one figure there for
each side: `msg-spool-discards` are its refusals at ingress, quotas among them, `msg-spool-egress-discards` what it
dropped on its way out, as by a time to live or a redelivery limit. `show message-spool stats` counts each of these by
its own name. Element names are those of SEMP v1; labels of the CLI have the same words, but for those in `labels`.

The figure of all egress discards is mostly not congestion (W5): 56,941,183 = 893 + 5,672 + 56,934,618.

Source: SEMP v1, `show/stats/client` and `show/message-spool/stats`; which figure counts what, by the vendor's public
table of discard statistics (field list of `get-discard-stats`, repository SolaceProducts/solace-broker-mcp).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Side = Literal["egress", "ingress"]
Statistics = Literal["clients", "spool"]


@dataclass(frozen=True, slots=True)
class DiscardCause:
    """One cause: `element` is its name in SEMP v1, empty where no broker counts it; `outcome` that of simulated
    messages.
    """

    key: str
    side: Side
    words: str
    lever: str
    element: str = ""
    outcome: str = ""
    is_loss: bool = True
    """Whether a message is lost by it: an elided one is replaced, one in a dead message queue is moved."""
    statistics: Statistics = "clients"
    labels: tuple[str, ...] = ()
    """Other names that listings and replies have for it, plain words in lower case."""


CAUSES: Final = (
    DiscardCause(
        "transmit_congestion", "egress", "egress congestion: the client's priority queue was full",
        "a client and link that take the offered rate (`qsctl explain slow-subscriber`); for bursts a deeper queue "
        "(max-depth) or a larger burst",
        "transmit-congestion", "discarded",
    ),
    DiscardCause(
        "client_not_connected", "egress", "the client was not connected",
        "guaranteed delivery for what may not be missed, or a client that reconnects sooner",
        "client-not-connected", "not_connected",
    ),
    DiscardCause(
        "client_disconnected", "egress", "queued for a client that disconnected",
        "guaranteed delivery, or a client that reads fast enough not to be disconnected as a slow subscriber",
        "", "disconnected",
    ),
    DiscardCause(
        "msg_spool_egress", "egress", "dropped by the message spool on its way out: time to live, redelivery limit, …",
        "whichever cause `show message-spool stats` counts; capture it with `show stats client`",
        "msg-spool-egress-discards",
    ),
    DiscardCause(
        "message_elided", "egress", "elided: a newer message of the topic took its place",
        "nothing: no loss; eliding is switched on by the client profile", "message-elided", "elided", is_loss=False,
        labels=("elided",),
    ),
    DiscardCause(
        "egress_ttl_exceeded", "egress", "its time to live ended before it was delivered",
        "a longer time to live, or consumers as fast as the publishers", "ttl-exceeded", "expired",
    ),
    DiscardCause(
        "compression_congestion", "egress", "the compressor could not keep up",
        "fewer compressed clients, or no compression where the link has room", "compression-congestion",
    ),
    DiscardCause(
        "payload_format", "egress", "the payload could not be formatted for the client's protocol",
        "payloads that the receiving protocol can carry", "payload-could-not-be-formatted",
    ),
    DiscardCause(
        "egress_promotion_congestion", "egress", "promotion to guaranteed was congested",
        "fewer direct messages that match queues, or faster consumers of these", "message-promotion-congestion",
    ),
    DiscardCause(
        "egress_spool_congestion", "egress", "the message spool was congested",
        "a lower guaranteed rate, or faster consumers", "message-spool-congestion",
    ),
    DiscardCause(
        "ingress_rate", "ingress", "the publisher's part of the ingress buffers was full",
        "a slower publisher, or more ingress rate or buffers", "", "ingress_refused",
    ),
    DiscardCause(
        "msg_too_big", "ingress", "larger than the broker takes",
        "smaller messages, or a larger max-message", "msg-too-big", "too_big",
    ),
    DiscardCause(
        "msg_spool_ingress", "ingress", "refused by the message spool: a quota was spent or the endpoint was congested",
        "a larger quota of endpoint, message VPN or spool, or consumers as fast as the publishers",
        "msg-spool-discards", "spool_refused", labels=("message spool ingress discards",),
    ),
    DiscardCause(
        "no_subscription_match", "ingress", "no client subscribes to the topic",
        "a subscription for the topic, or a publisher that leaves it out", "no-subscription-match",
    ),
    DiscardCause(
        "topic_parse_error", "ingress", "the topic could not be parsed", "a publisher with valid topics",
        "topic-parse-error",
    ),
    DiscardCause(
        "parse_error", "ingress", "the message could not be parsed", "a publisher with a supported API",
        "parse-error",
    ),
    DiscardCause(
        "web_parse_error", "ingress", "a web client's message could not be parsed", "a web client with a supported API",
        "web-parse-error",
    ),
    DiscardCause(
        "publish_topic_acl", "ingress", "the ACL profile forbids publishing to the topic",
        "an exception in the ACL profile, or another topic", "publish-topic-acl",
    ),
    DiscardCause(
        "ingress_ttl_exceeded", "ingress", "its time to live had ended when it came", "a longer time to live",
        "ttl-exceeded",
    ),
    DiscardCause(
        "ingress_promotion_congestion", "ingress", "promotion to guaranteed was congested",
        "fewer direct messages that match queues", "message-promotion-congestion",
    ),
    DiscardCause(
        "ingress_spool_congestion", "ingress", "the message spool was congested", "a lower guaranteed rate",
        "message-spool-congestion",
    ),
    DiscardCause(
        "delivery_attempts_spent", "egress", "every delivery attempt was spent",
        "consumers that acknowledge, or more max_delivery_retries", "", "dead",
    ),
    DiscardCause(
        "rejected", "egress", "rejected by the application of its consumer: deleted",
        "publishers whose messages are valid for their consumers, or a dead message queue", "", "rejected",
    ),
    DiscardCause(
        "rejected_to_dmq", "egress", "rejected by the application of its consumer: moved to the dead message queue",
        "publishers whose messages are valid for their consumers; read the dead message queue", is_loss=False,
    ),
    DiscardCause(
        "spool_over_quota", "ingress", "the whole spool was above its quota",
        "a larger max-spool-usage of the broker, or consumers as fast as the publishers",
        "discard-spool-over-quota", statistics="spool", labels=("spool over quota",),
    ),
    DiscardCause(
        "endpoint_over_quota", "ingress", "the endpoint was above its quota",
        "a larger max-spool-usage of the endpoint, or consumers as fast as its publishers",
        "discard-qendpt-over-quota", statistics="spool",
        labels=("queue topic endpoint over quota", "spool usage exceeded"),
    ),
    DiscardCause(
        "replay_log_over_quota", "ingress", "the replay log was above its quota",
        "a larger max-spool-usage of the replay log, or faster trimming",
        "discard-replay-log-over-quota", statistics="spool", labels=("replay log over quota",),
    ),
    DiscardCause(
        "spool_usage_exceeded", "ingress", "a limit of the messages that the spool holds was reached",
        "consumers that acknowledge, so that fewer messages are spooled",
        "discard-max-msg-usage-exceeded", statistics="spool", labels=("max message usage exceeded",),
    ),
    DiscardCause(
        "spooled_too_big", "ingress", "larger than the endpoint takes",
        "smaller messages, or a larger max-message-size of the endpoint",
        "discard-max-msg-size-exceeded", statistics="spool", labels=("max message size exceeded",),
    ),
    DiscardCause(
        "spool_files_exceeded", "ingress", "the spool had no file left",
        "consumers that acknowledge old messages: one message keeps a whole spool file",
        "discard-spool-file-limit-exceeded", statistics="spool", labels=("spool file limit exceeded",),
    ),
    DiscardCause(
        "spool_to_adb_failed", "ingress", "the spool could not write to its memory card or buffer",
        "the health of the assured delivery blade: `show message-spool detail`",
        "discard-spool-to-adb-fail", statistics="spool", labels=("spool to adb fail",),
    ),
    DiscardCause(
        "spool_to_disk_failed", "ingress", "the spool could not write to its disk",
        "the disk: `show message-spool detail`",
        "discard-spool-to-disk-fail", statistics="spool", labels=("spool to disk fail",),
    ),
    DiscardCause(
        "spool_shutdown", "ingress", "spool or endpoint was shut down",
        "an endpoint whose ingress is enabled",
        "spool-shutdown-discard", statistics="spool", labels=("spool shutdown",),
    ),
    DiscardCause(
        "spool_not_ready", "ingress", "the spool was not ready",
        "an active and synchronized spool: `show message-spool detail`",
        "discard-spooling-not-ready", statistics="spool", labels=("spooling not ready",),
    ),
    DiscardCause(
        "no_destination", "ingress", "no endpoint matched the destination",
        "a queue for the topic, or a publisher that leaves it out",
        "discard-nodest", statistics="spool", labels=("no destination",),
    ),
    DiscardCause(
        "queue_not_found", "ingress", "the named queue did not exist",
        "a queue of this name before its publishers start",
        "discard-queue-not-found", statistics="spool", labels=("queue not found",),
    ),
    DiscardCause(
        "low_priority_congestion", "ingress", "of low priority, while the endpoint was above its low-priority limit",
        "a larger reject-low-priority-msg-limit, a higher priority, or faster consumers",
        "low-priority-msg-congestion-discard", statistics="spool", labels=("low priority message congestion",),
    ),
    DiscardCause(
        "no_local_delivery", "ingress", "published by the client that would receive it, with no-local set",
        "nothing: the client asked for it",
        "no-local-delivery-discard", statistics="spool", labels=("no local delivery",), is_loss=False,
    ),
    DiscardCause(
        "replication_standby", "ingress", "the message VPN was the standby of a replication",
        "publishers that connect to the active side",
        "replication-is-standby-discard", statistics="spool", labels=("replication is standby",),
    ),
    DiscardCause(
        "replication_ineligible", "ingress", "synchronous replication was not eligible",
        "a replication link that keeps up, or reject-msg-when-sync-ineligible off",
        "sync-replication-ineligible-discard", statistics="spool", labels=("sync replication ineligible",),
    ),
    DiscardCause(
        "spool_profile_denied", "ingress", "the client profile forbids guaranteed messages",
        "allow-guaranteed-message-send of the client profile",
        "user-profile-deny-guaranteed", statistics="spool", labels=("user profile deny guaranteed",),
    ),
    DiscardCause(
        "spool_publish_acl", "ingress", "the ACL profile forbids publishing to the topic",
        "an exception in the ACL profile, or another topic",
        "publish-acl-denied", statistics="spool",
    ),
    DiscardCause(
        "spool_duplicate", "ingress", "a duplicate of a message that was spooled before",
        "nothing: no loss",
        "discard-duplicate", statistics="spool", is_loss=False,
    ),
    DiscardCause(
        "spool_ttl_on_arrival", "ingress", "its time to live had ended when it came",
        "a longer time to live",
        "smf-ttl-exceeded", statistics="spool",
    ),
    DiscardCause(
        "spool_other", "ingress", "another cause that the spool does not name",
        "the event log of the broker",
        "discard-other", statistics="spool", labels=("discard other", "other",),
    ),
    DiscardCause(
        "ttl_expired", "egress", "its time to live ended in the spool: deleted",
        "faster consumers, a longer time to live, or a dead message queue for messages that are eligible",
        "total-ttl-expired-discard-messages", statistics="spool", labels=("messages expired to discard",),
    ),
    DiscardCause(
        "ttl_expired_to_dmq", "egress", "its time to live ended in the spool: moved to the dead message queue",
        "faster consumers, or a longer time to live; read the dead message queue",
        "total-ttl-expired-to-dmq-messages", statistics="spool", labels=("messages expired to dmq",), is_loss=False,
    ),
    DiscardCause(
        "ttl_expired_dmq_failed", "egress",
        "its time to live ended in the spool: the dead message queue did not take it",
        "a dead message queue that exists and has room",
        "total-ttl-expired-to-dmq-failures", statistics="spool", labels=("messages expired to dmq failures",),
    ),
    DiscardCause(
        "ttl_exceeded", "egress", "it crossed more bridges than its time to live in hops allows",
        "a route with fewer bridges, or a larger time to live in hops",
        "total-ttl-exceeded-discard-messages", statistics="spool", labels=("ttl exceeded to discard",),
    ),
    DiscardCause(
        "redelivery_exceeded", "egress", "its redelivery limit was reached: deleted",
        "consumers that acknowledge what they process, a larger max-redelivery, or a dead message queue",
        "max-redelivery-exceeded-discard-messages", statistics="spool", labels=("max redelivery exceeded to discard",),
    ),
    DiscardCause(
        "redelivery_exceeded_to_dmq", "egress", "its redelivery limit was reached: moved to the dead message queue",
        "consumers that acknowledge what they process; read the dead message queue",
        "max-redelivery-exceeded-to-dmq-messages", statistics="spool", labels=("max redelivery exceeded to dmq",),
        is_loss=False,
    ),
    DiscardCause(
        "redelivery_exceeded_dmq_failed", "egress",
        "its redelivery limit was reached: the dead message queue did not take it",
        "a dead message queue that exists and has room",
        "max-redelivery-exceeded-to-dmq-failures", statistics="spool",
        labels=("max redelivery exceeded to dmq failures",),
    ),
)  # fmt: skip

BY_KEY: Final = {cause.key: cause for cause in CAUSES}
BY_ELEMENT: Final = {(cause.statistics, cause.side, cause.element): cause for cause in CAUSES if cause.element}
BY_OUTCOME: Final = {cause.outcome: cause for cause in CAUSES if cause.outcome}
TOTALS: Final[dict[Statistics, dict[Side, str]]] = {
    "clients": {"egress": "total-egress-discards", "ingress": "total-ingress-discards"},
    "spool": {"egress": "total-discarded-egress-messages", "ingress": "total-discarded-messages"},
}
"""Elements of the totals."""
SPOOL: Final = "message spool"
"""Whose the statistics of the spool are, where they are not those of one queue or topic endpoint."""
QUEUE: Final = "queue "
TOPIC_ENDPOINT: Final = "topic endpoint "
MESSAGE_VPN: Final = "message VPN "
CLIENT: Final = "client "
"""Prefix of a name whose owner is stated."""
SPOOL_FIGURES: Final[dict[Side, str]] = {"egress": "msg_spool_egress", "ingress": "msg_spool_ingress"}
"""The causes of the clients' statistics that the spool's own statistics divide further."""


def of_message_vpn(name: str) -> str:
    """Return the name of the object that a message VPN's part of the spool's statistics is of."""
    return f"{SPOOL} of {MESSAGE_VPN}{name}"


def plain_words(text: str) -> str:
    """Return an element's name or a label as plain words, to be compared: `transmit congestion`, `message too big`."""
    words = "".join(character if character.isalnum() else " " for character in text.lower()).split()
    return " ".join({"msg": "message", "msgs": "messages"}.get(word, word) for word in words)


def cause_named(statistics: Statistics, side: Side, name: str) -> DiscardCause | None:
    """Return the cause that an element or a label of these statistics names; None where it is not one.

    Args:
        statistics: that have the name.
        side: of the total above it, for names that both sides have; the other side is tried after it.
        name: an element, or a label as the CLI prints it.
    """
    words = plain_words(name)
    other: Side = "ingress" if side == "egress" else "egress"
    return _BY_WORDS.get((statistics, side, words)) or _BY_WORDS.get((statistics, other, words))


_BY_WORDS: Final = {
    (cause.statistics, cause.side, words): cause
    for cause in CAUSES
    for words in (plain_words(cause.element), *cause.labels)
    if cause.element
}
