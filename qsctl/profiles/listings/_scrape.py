"""A scrape in Prometheus' text format: the metrics of an exporter for brokers, and those that qsctl writes itself.

Decides: which metrics are figures of a listing. Names are compared without the exporter's prefix; the last sample of
the same labels counts. Other metrics are counted in a note; a line that is not a metric is left out with a note.

Source: metrics of the exporter solacecommunity/solace-prometheus-exporter; Prometheus documentation, "Exposition
formats".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from qsctl.declared.problems import ProblemList
from qsctl.profiles.listings import discards as d
from qsctl.profiles.listings.model import (
    LARGEST_COUNT,
    ClientQueues,
    ClientStatistics,
    Discards,
    EndpointUsage,
    ListedQueueStatistics,
    Listings,
    SlowSubscriber,
    SpoolUsage,
)

_MEBIBYTE: Final = 1024 * 1024
_SAMPLE: Final = re.compile(
    r"([a-zA-Z_:][\w:]{0,200})(?:\{(.{0,4000})\})?[ \t]+(\S{1,40})(?:[ \t]+-?\d{1,20})?(?:[ \t]*#.*)?[ \t]*"
)
_LABEL: Final = re.compile(r'([a-zA-Z_]\w{0,100})[ \t]*=[ \t]*"((?:[^"\\]|\\.){0,1000})"[ \t]*(?:,[ \t]*|\Z)')
_ESCAPE: Final = re.compile(r"\\(.)")
_COUNTED: Final[Mapping[str, str]] = {
    "client_tx_msgs_total": "sent_messages",
    "client_tx_bytes_total": "sent_bytes",
    "client_rx_msgs_total": "received_messages",
    "client_rx_bytes_total": "received_bytes",
    "client_tx_msg_rate": "sent_messages_per_second",
    "client_tx_byte_rate": "sent_bytes_per_second",
    "client_rx_msg_rate": "received_messages_per_second",
    "client_rx_byte_rate": "received_bytes_per_second",
    "client_uptime_s": "uptime_s",
}
_OF_SLOW: Final = {"client_slow_subscriber": "slow_subscriber", "client_blocked_percent": "blocked_percent"}
_OF_ENDPOINTS: Final[Mapping[str, tuple[str, float]]] = {
    "queue_spool_quota_bytes": ("maximum_usage_mb", _MEBIBYTE),
    "queue_spool_quota_mb": ("maximum_usage_mb", 1),
    "queue_spool_usage_bytes": ("usage_mb", _MEBIBYTE),
    "queue_spool_usage_mb": ("usage_mb", 1),
    "queue_spool_usage_msgs": ("spooled_messages", 0),
    "queue_spool_msgs": ("spooled_messages", 0),
    "queue_spool_msg_count": ("spooled_messages", 0),
    "queue_binds": ("bind_count", 0),
    "queue_bind_count": ("bind_count", 0),
}
"""The field, and what its unit is divided by; 0: a count."""
_OF_SPOOLS: Final[Mapping[str, tuple[str, float]]] = {
    "spool_quota_bytes": ("maximum_usage_mb", _MEBIBYTE),
    "spool_usage_bytes": ("usage_mb", _MEBIBYTE),
    "spool_usage_msgs": ("spooled_messages", 0),
    "spool_disk_partition_usage_active_percent": ("disk_partition_percent", 1),
}
_TOTALS: Final[Mapping[str, d.Side]] = {
    "client_tx_discarded_msgs_total": "egress",
    "client_rx_discarded_msgs_total": "ingress",
    "vpn_tx_discarded_msgs_total": "egress",
    "vpn_rx_discarded_msgs_total": "ingress",
    "system_total_tx_discards": "egress",
    "system_total_rx_discards": "ingress",
}
_QUEUE_PREFIX: Final = "client_queue_"
_QUEUE_FIELDS: Final = frozenset(ListedQueueStatistics.__dataclass_fields__) - {"queue"}
_CAUSES: Final = "discards_messages_total"
_NAMES: Final = (
    *_COUNTED, *_OF_SLOW, *_OF_ENDPOINTS, *(f"{of}_{name}" for name in _OF_SPOOLS for of in ("vpn", "system")),
    *_TOTALS, *(f"{_QUEUE_PREFIX}{field}(?:_total)?" for field in sorted(_QUEUE_FIELDS)), _CAUSES,
)  # fmt: skip
_KNOWN: Final = re.compile(rf"(?:[a-z]+_)??({'|'.join(_NAMES)})")
_BEGINS: Final = re.compile(
    rf"^(?:# (?:TYPE|HELP) (?:[a-z]+_)??(?:{'|'.join(_NAMES)}) "
    rf"|(?:[a-z]+_)??(?:{'|'.join(_NAMES)})\{{[^\n]{{0,4000}}\}}[ \t]+[-+.\dNI])",
    re.MULTILINE,
)
"""A sample with labels, or what describes one: nothing that a table of clients has."""


def looks_like_a_scrape(text: str) -> bool:
    """Return whether a line begins with a known metric."""
    return _BEGINS.search(text) is not None


def read_scrape(text: str, name: str) -> Listings:
    """Read the metrics in a text for which `looks_like_a_scrape` is true.

    Args:
        text: lines of the text format; others are noted.
        name: the file's name in problems.
    """
    reading = _ScrapeReading()
    findings = ProblemList(name)
    others: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        sample = _SAMPLE.fullmatch(stripped)
        labels = None if sample is None else _labels(sample[2] or "")
        value = None if sample is None else _number(sample[3])
        if sample is None or labels is None or value is None:
            findings.add(number, "this is no sample", stripped[:80], "NAME{LABELS} VALUE")
            continue
        known = _KNOWN.fullmatch(sample[1])
        if known is None or not reading.take(known[1], labels, value):
            others.add(sample[1])
    return reading.listings(others, findings)


def _labels(text: str) -> dict[str, str] | None:
    """Return the labels of a sample; None where they are malformed."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            return None
        found[match[1]] = _ESCAPE.sub(lambda one: "\n" if one[1] == "n" else one[1], match[2])
        at = match.end()
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class _ScrapeReading:
    """The samples read so far, by the object that they describe."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str | None], dict[str, Any]] = {}
        self._slow: dict[tuple[str, str | None], dict[str, Any]] = {}
        self._queues: dict[tuple[str, str | None], dict[str, dict[str, int | None]]] = {}
        self._endpoints: dict[tuple[str, str | None], dict[str, Any]] = {}
        self._spools: dict[str, dict[str, Any]] = {}
        self._totals: dict[str, dict[d.Side, int]] = {}
        self._causes: dict[str, dict[str, int]] = {}

    def take(self, metric: str, labels: Mapping[str, str], value: float) -> bool:
        """Read one sample; return whether its labels and its value are valid for its metric."""
        if not math.isfinite(value) or value < 0 or value > LARGEST_COUNT:
            return False
        client = labels.get("client_name") or labels.get("client") or ""
        vpn = labels.get("vpn_name") or labels.get("message_vpn") or None
        if metric in _TOTALS:
            return self._total(metric, client, vpn, value)
        if metric.startswith(("vpn_", "system_")):
            return self._spool(metric, vpn, value)
        if metric in _OF_ENDPOINTS:
            return self._endpoint(metric, labels, vpn, value)
        if metric == _CAUSES:
            return self._cause(labels, value)
        if not client:
            return False
        if metric.startswith(_QUEUE_PREFIX):
            return self._queue(metric, client, vpn, labels.get("queue", ""), value)
        if metric in _OF_SLOW:
            row = self._slow.setdefault((client, vpn), _named(labels))
            is_flag = metric == "client_slow_subscriber"
            row[_OF_SLOW[metric]] = value != 0 if is_flag else min(value, 100.0)
            return True
        self._counted.setdefault((client, vpn), _named(labels))[_COUNTED[metric]] = round(value)
        return True

    def _total(self, metric: str, client: str, vpn: str | None, value: float) -> bool:
        if metric.startswith("client_"):
            of = f"{d.CLIENT}{client}" if client else ""
        elif metric.startswith("vpn_"):
            of = f"{d.MESSAGE_VPN}{vpn}" if vpn else ""
        else:
            of = "broker"
        if of:
            self._totals.setdefault(of, {})[_TOTALS[metric]] = round(value)
        return bool(of)

    def _spool(self, metric: str, vpn: str | None, value: float) -> bool:
        whose, _, name = metric.partition("_")
        if whose == "vpn" and vpn is None:
            return False
        of = d.SPOOL if whose == "system" else d.of_message_vpn(str(vpn))
        field, unit = _OF_SPOOLS[name]
        self._spools.setdefault(of, {})[field] = value / unit if unit else round(value)
        return True

    def _endpoint(self, metric: str, labels: Mapping[str, str], vpn: str | None, value: float) -> bool:
        name = labels.get("queue_name") or labels.get("queue")
        if not name:
            return False
        field, unit = _OF_ENDPOINTS[metric]
        self._endpoints.setdefault((name, vpn), {})[field] = value / unit if unit else round(value)
        return True

    def _queue(self, metric: str, client: str, vpn: str | None, queue: str, value: float) -> bool:
        field = metric.removeprefix(_QUEUE_PREFIX).removesuffix("_total")
        if field not in _QUEUE_FIELDS or not queue:
            return False
        empty: dict[str, int | None] = dict.fromkeys(sorted(_QUEUE_FIELDS))
        self._queues.setdefault((client, vpn), {}).setdefault(queue, empty)[field] = round(value)
        return True

    def _cause(self, labels: Mapping[str, str], value: float) -> bool:
        of, cause = labels.get("of"), labels.get("cause")
        if not of or cause not in d.BY_KEY:
            return False
        self._causes.setdefault(of, {})[cause] = round(value)
        return True

    def listings(self, others: set[str], findings: ProblemList) -> Listings:
        """Return the listings, with a note of the metrics that no listing has."""
        notes = list(findings.notes)
        if others:
            count = "1 metric" if len(others) == 1 else f"{len(others)} metrics"
            notes.insert(0, f"{findings.file}: {count} of no listing passed over: {', '.join(sorted(others)[:3])}")
        of = dict.fromkeys((*self._totals, *self._causes))
        return Listings(
            clients=tuple(
                ClientQueues(
                    client, message_vpn=vpn,
                    queues=tuple(ListedQueueStatistics(queue, **figures) for queue, figures in queues.items()),
                )
                for (client, vpn), queues in self._queues.items()
            ),
            slow_subscribers=tuple(
                SlowSubscriber(client, message_vpn=vpn, **row) for (client, vpn), row in self._slow.items()
            ),
            statistics=tuple(
                ClientStatistics(client, message_vpn=vpn, **row) for (client, vpn), row in self._counted.items()
            ),
            discards=tuple(
                Discards(
                    each, tuple(self._causes.get(each, {}).items()), self._totals.get(each, {}).get("egress"),
                    self._totals.get(each, {}).get("ingress"),
                )
                for each in of
            ),
            spools=tuple(SpoolUsage(each, **row) for each, row in self._spools.items()),
            endpoints=tuple(
                EndpointUsage(queue, "queue", vpn, **row) for (queue, vpn), row in self._endpoints.items()
            ),
            notes=tuple(notes),
        )  # fmt: skip


def _named(labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the username and the address among the labels of a client."""
    given = {"client_username": labels.get("client_username"), "client_address": labels.get("client_address")}
    return {field: text for field, text in given.items() if text}
