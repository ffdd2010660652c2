"""Discards by cause: what each is, its lever, and how captured statistics name it.

Element names are those of SEMP v1 (`ingress-discards`, `egress-discards` of `show stats client` and of
`show client … stats`); the CLI's labels have the same words. The vendor's figure of all egress discards is mostly not
congestion (W5): 56,941,183 = 893 + 5,672 + 56,934,618.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Side = Literal["egress", "ingress"]


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause. `element`: of SEMP v1, empty where no broker counts it; `outcome`: of a simulated run's messages."""

    key: str
    side: Side
    words: str
    lever: str
    element: str = ""
    outcome: str = ""
    is_loss: bool = True


CAUSES: Final = (
    Cause(
        "transmit_congestion", "egress", "egress congestion: the client's priority queue was full",
        "a deeper queue (max-depth), a larger burst, or a client and link that take the offered rate",
        "transmit-congestion", "discarded",
    ),
    Cause(
        "client_not_connected", "egress", "the client was not connected",
        "guaranteed delivery for what may not be missed, or a client that reconnects sooner",
        "client-not-connected", "not_connected",
    ),
    Cause(
        "client_disconnected", "egress", "queued for a client that disconnected",
        "guaranteed delivery, or a client that reads fast enough not to be disconnected as a slow subscriber",
        "", "disconnected",
    ),
    Cause(
        "msg_spool_egress", "egress", "refused by the endpoint: its quota was spent or it was congested",
        "a larger quota of the endpoint (max-messages), or consumers as fast as the publishers",
        "msg-spool-egress-discards", "spool_refused",
    ),
    Cause(
        "message_elided", "egress", "elided: a newer message of the topic took its place",
        "nothing: no loss; eliding is switched on by the client profile", "message-elided", "elided", is_loss=False,
    ),
    Cause(
        "egress_ttl_exceeded", "egress", "its time to live ended before it was delivered",
        "a longer time to live, or consumers as fast as the publishers", "ttl-exceeded", "expired",
    ),
    Cause(
        "compression_congestion", "egress", "the compressor could not keep up",
        "fewer compressed clients, or no compression where the link has room", "compression-congestion",
    ),
    Cause(
        "payload_format", "egress", "the payload could not be formatted for the client's protocol",
        "payloads that the receiving protocol can carry", "payload-could-not-be-formatted",
    ),
    Cause(
        "egress_promotion_congestion", "egress", "promotion to guaranteed was congested",
        "fewer direct messages that match queues, or faster consumers of these", "message-promotion-congestion",
    ),
    Cause(
        "egress_spool_congestion", "egress", "the message spool was congested",
        "a lower guaranteed rate, or faster consumers", "message-spool-congestion",
    ),
    Cause(
        "ingress_rate", "ingress", "the publisher's part of the ingress buffers was full",
        "a slower publisher, or more ingress rate or buffers", "", "ingress_refused",
    ),
    Cause(
        "msg_too_big", "ingress", "larger than the broker takes",
        "smaller messages, or a larger max-message", "msg-too-big", "too_big",
    ),
    Cause(
        "msg_spool_ingress", "ingress", "refused by the message spool: a quota was spent",
        "a larger quota of queue or message VPN, or consumers as fast as the publishers", "msg-spool-discards",
    ),
    Cause(
        "no_subscription_match", "ingress", "no client subscribes to the topic",
        "a subscription for the topic, or a publisher that leaves it out", "no-subscription-match",
    ),
    Cause(
        "topic_parse_error", "ingress", "the topic could not be parsed", "a publisher with valid topics",
        "topic-parse-error",
    ),
    Cause(
        "parse_error", "ingress", "the message could not be parsed", "a publisher with a supported API",
        "parse-error",
    ),
    Cause(
        "web_parse_error", "ingress", "a web client's message could not be parsed", "a web client with a supported API",
        "web-parse-error",
    ),
    Cause(
        "publish_topic_acl", "ingress", "the ACL profile forbids publishing to the topic",
        "an exception in the ACL profile, or another topic", "publish-topic-acl",
    ),
    Cause(
        "ingress_ttl_exceeded", "ingress", "its time to live had ended when it came", "a longer time to live",
        "ttl-exceeded",
    ),
    Cause(
        "ingress_promotion_congestion", "ingress", "promotion to guaranteed was congested",
        "fewer direct messages that match queues", "message-promotion-congestion",
    ),
    Cause(
        "ingress_spool_congestion", "ingress", "the message spool was congested", "a lower guaranteed rate",
        "message-spool-congestion",
    ),
    Cause(
        "delivery_attempts_spent", "egress", "every delivery attempt was spent",
        "consumers that acknowledge, or more max_delivery_retries", "", "dead",
    ),
)  # fmt: skip

BY_KEY: Final = {cause.key: cause for cause in CAUSES}
BY_ELEMENT: Final = {(cause.side, cause.element): cause for cause in CAUSES if cause.element}
BY_OUTCOME: Final = {cause.outcome: cause for cause in CAUSES if cause.outcome}
TOTALS: Final[dict[Side, str]] = {"egress": "total-egress-discards", "ingress": "total-ingress-discards"}


def plain_words(text: str) -> str:
    """Return an element's name or a label, as one text to compare: `transmit congestion`."""
    return " ".join(text.replace("-", " ").replace("_", " ").lower().split())
