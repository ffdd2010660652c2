"""NATS JetStream: the output of `nats consumer info --json` and `nats stream info --json`, of one or many.

Durations are in nanoseconds; 0 and -1 are no limit. The stream's sequence numbers and times give the rate of arrivals
since its first message; two files give the rate between them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from qsctl.instant import format_duration
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.listed._documents import COUNT_MAX, ListedObject, whole
from qsctl.sim.brokers.listed.model import ForeignQueue

BACKOFF_MAX: Final = 100
_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_SHORTEST_SPAN_S: Final = 1.0
"""A stream's first and last message must be this far apart, so that their number has a rate."""


def is_consumer(document: ListedObject) -> bool:
    """Return whether an object is a consumer's information."""
    return "stream_name" in document.values and "config" in document.values


def is_stream(document: ListedObject) -> bool:
    """Return whether an object is a stream's information."""
    return "state" in document.values and isinstance(document.values.get("config"), dict)


def consumer_of(document: ListedObject) -> ForeignQueue | None:
    """Return a consumer as a queue; None where it has no name."""
    stream = document.text("stream_name")
    name = document.text("name") or document.inner("config").text("durable_name")
    if stream is None or name is None:
        _note_unnamed(document)
        return None
    config = document.inner("config")
    settings = {
        "ack_wait": config.duration("ack_wait", 1),
        "max_deliver": _limit(config, "max_deliver"),
        "max_ack_pending": _limit(config, "max_ack_pending"),
        "backoff": _backoff(config),
        "max_batch": _limit(config, "max_batch"),
        "ack_policy": config.text("ack_policy"),
    }
    return ForeignQueue(
        name, BrokerKind.JETSTREAM, {word: text for word, text in settings.items() if text is not None},
        waiting=document.count("num_pending"), outstanding=document.count("num_ack_pending"),
        at_s=instant_s(document.text("ts")), stream=stream,
    )  # fmt: skip


def stream_of(document: ListedObject) -> ForeignQueue | None:
    """Return a stream as a queue; None where it has no name."""
    config, state = document.inner("config"), document.inner("state")
    name = config.text("name")
    if name is None:
        _note_unnamed(document)
        return None
    settings = {
        "max_msgs": _limit(config, "max_msgs"),
        "max_bytes": _limit(config, "max_bytes"),
        "max_age": config.duration("max_age", 1, unlimited_at=0),
        "discard": config.text("discard"),
        "retention": config.text("retention"),
    }
    messages, stored = state.count("messages"), state.count("bytes")
    arrived = state.count("last_seq")
    return ForeignQueue(
        name, BrokerKind.JETSTREAM, {word: text for word, text in settings.items() if text is not None},
        waiting=messages, arrived=arrived, at_s=instant_s(document.text("ts")), arrivals_per_s=_rate(state),
        size_bytes=max(1, stored // messages) if stored and messages else None, stream=name, is_stream=True,
    )  # fmt: skip


def instant_s(text: str | None) -> float | None:
    """Return a time of NATS in seconds of the Unix epoch; None where the text is not one."""
    found = None if text is None else _INSTANT.fullmatch(text)
    if found is None:
        return None
    offset = "+00:00" if found[3] == "Z" else found[3]
    try:
        at = datetime.fromisoformat(f"{found[1]}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at.timestamp() + float(f"0.{found[2] or 0}")


def _limit(config: ListedObject, key: str) -> str | None:
    """Return the limit under a key; 0 and -1 mean that there is none."""
    found = config.count(key, low=-1)
    if found is None:
        return None
    return "unlimited" if found <= 0 else str(found)


def _backoff(config: ListedObject) -> str | None:
    """Return the delays of redelivery as a list of durations."""
    found = config.values.get("backoff")
    if not isinstance(found, list) or not found:
        return None
    delays = [whole(each) for each in found[:BACKOFF_MAX]]
    if any(each is None or not 0 < each <= COUNT_MAX for each in delays):
        config.findings.add(
            config.line,
            "the value is passed over",
            path=f"{config.path}/backoff",
            found=repr(found)[:80],
            allowed="a list of nanoseconds",
        )
        return None
    return ", ".join(format_duration(each) for each in delays if each is not None)


def _rate(state: ListedObject) -> float | None:
    """Return the rate of arrivals between a stream's first and last message."""
    first, last = state.count("first_seq"), state.count("last_seq")
    begins, ends = instant_s(state.text("first_ts")), instant_s(state.text("last_ts"))
    if first is None or last is None or begins is None or ends is None:
        return None
    if last <= first or ends - begins < _SHORTEST_SPAN_S:
        return None
    return (last - first) / (ends - begins)


def _note_unnamed(document: ListedObject) -> None:
    document.findings.add(document.line, "the object is passed over", allowed="a consumer or stream with a name")
