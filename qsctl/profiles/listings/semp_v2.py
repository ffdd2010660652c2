"""Monitoring replies of SEMP v2 as JSON: message VPNs, clients with connections and flows, queues, topic endpoints.

A reply has its objects in `data`, one or a collection; a file may hold several pages one after the other, and a
terminal's text around them. Objects are known by their attributes; others (subscriptions) are skipped and counted.
Numbers may be quoted, as exports of the cloud have them; one that cannot be read is left out, with a note.

Source: SEMP v2 monitoring reference, MsgVpn, MsgVpnClient, MsgVpnClientConnection, MsgVpnClientTxFlow,
MsgVpnQueue, MsgVpnTopicEndpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from qsctl.declared.problems import error_at
from qsctl.profiles.listings.discards import BY_KEY, QUEUE
from qsctl.profiles.listings.labels import read_count
from qsctl.profiles.listings.model import (
    LARGEST_COUNT,
    ClientConnection,
    ClientStatistics,
    Discards,
    EgressFlow,
    Listings,
    SlowSubscriber,
)
from qsctl.profiles.listings.problems import unread

_DOCUMENT: Final = re.compile(r"(?:^|(?<=[}\]]))[ \t]*(?=[{\[])", re.MULTILINE)
"""Pattern of the beginning of a document: at a line's start, or after the one before it."""
_BEGINS: Final = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t]*[{\[]", re.MULTILINE)
_NAMES: Final = ("clientName", "queueName", "topicEndpointName", "msgVpnName")
_OF_CONNECTIONS: Final = frozenset({"txQueueByteCount", "tcpState", "smoothedRoundTripTime", "fastRetransmitCount"})
_OF_FLOWS: Final = frozenset({"windowSize", "usedWindowSize"})
_OF_CLIENTS: Final = frozenset({"slowSubscriber", "txDiscardedMsgCount", "rxDiscardedMsgCount"})
_OF_MESSAGE_VPNS: Final = frozenset({"discardedTxMsgCount", "discardedRxMsgCount", "counter"})
"""Of a message VPN without any other name; before version 2.13 its counts were in `counter`."""
_STATISTICS: Final[Mapping[str, tuple[str, ...]]] = {
    "uptime_s": ("uptime",),
    "eliding_topics": ("elidingTopicCount",),
    "eliding_topics_high_water_mark": ("elidingTopicPeakCount",),
    "sent_messages": ("dataTxMsgCount", "txMsgCount"),
    "sent_bytes": ("dataTxByteCount", "txByteCount"),
    "received_messages": ("dataRxMsgCount", "rxMsgCount"),
    "received_bytes": ("dataRxByteCount", "rxByteCount"),
    "discarded_messages": ("txDiscardedMsgCount",),
    "sent_messages_per_second": ("averageTxMsgRate", "txMsgRate"),
    "sent_bytes_per_second": ("averageTxByteRate", "txByteRate"),
    "received_messages_per_second": ("averageRxMsgRate", "rxMsgRate"),
    "received_bytes_per_second": ("averageRxByteRate", "rxByteRate"),
}
"""Fields of `ClientStatistics` with the attributes of a client that have them; the first that is there counts."""
_CAUSES: Final[Mapping[str, str]] = {
    "maxMsgSpoolUsageExceededDiscardedMsgCount": "endpoint_over_quota",
    "maxMsgSizeExceededDiscardedMsgCount": "spooled_too_big",
    "lowPriorityMsgCongestionDiscardedMsgCount": "low_priority_congestion",
    "disabledDiscardedMsgCount": "spool_shutdown",
    "clientProfileDeniedDiscardedMsgCount": "spool_profile_denied",
    "noLocalDeliveryDiscardedMsgCount": "no_local_delivery",
    "destinationGroupErrorDiscardedMsgCount": "spool_other",
    "xaTransactionNotSupportedDiscardedMsgCount": "spool_other",
    "maxTtlExpiredDiscardedMsgCount": "ttl_expired",
    "maxTtlExpiredToDmqMsgCount": "ttl_expired_to_dmq",
    "maxTtlExpiredToDmqFailedMsgCount": "ttl_expired_dmq_failed",
    "maxTtlExceededDiscardedMsgCount": "ttl_exceeded",
    "maxRedeliveryExceededDiscardedMsgCount": "redelivery_exceeded",
    "maxRedeliveryExceededToDmqMsgCount": "redelivery_exceeded_to_dmq",
    "maxRedeliveryExceededToDmqFailedMsgCount": "redelivery_exceeded_dmq_failed",
}
"""Of queues and topic endpoints, by the key of `discards.CAUSES`."""
assert set(_CAUSES.values()) <= set(BY_KEY)


def looks_like_semp_v2(data: bytes) -> bool:
    """Return whether a file holds JSON with an object of the monitoring interface, or with an error from it."""
    named = any(f'"{name}"'.encode() in data for name in (*_NAMES, "responseCode"))
    return named and _BEGINS.search(data) is not None


def read_semp_v2(data: bytes, name: str) -> Listings:
    """Read the replies in a file.

    Args:
        data: for which `looks_like_semp_v2` is true.
        name: the file's name in problems.

    Raises:
        InvalidFile: it is cut or not JSON, a reply is a refusal, or nothing of it can be listed.
    """
    reading = MonitoringReplies(name)
    for document, line in _documents(data, reading):
        reading.read(document, line)
    return reading.listings()


class MonitoringReplies:
    """The objects of replies from one file or one broker.

    Args:
        name: the name of the file or the broker in problems.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.around = 0
        """Lines that belong to no reply."""
        self._clients: list[SlowSubscriber] = []
        self._connections: list[ClientConnection] = []
        self._statistics: list[ClientStatistics] = []
        self._flows: list[EgressFlow] = []
        self._discards: list[Discards] = []
        self._others = 0
        self._unreadable: list[str] = []
        self._is_cut = False

    def read(self, document: object, line: int) -> None:
        """Add the objects of one reply, or of a list of objects."""
        objects: object = document
        if isinstance(document, dict) and ("data" in document or "meta" in document):
            meta = document.get("meta")
            meta = meta if isinstance(meta, dict) else {}
            error = meta.get("error")
            if error:
                words = error.get("description", "") if isinstance(error, dict) else ""
                found = str(words or error)[:200]
                refused, allowed = "the broker refused the request", "a reply with data"
                raise unread([error_at(self.name, line, refused, found=found, allowed=allowed)])
            paging = meta.get("paging")
            self._is_cut = isinstance(paging, dict) and bool(paging.get("nextPageUri"))
            objects = document.get("data")
        self.add(objects)

    def add(self, objects: object) -> None:
        """Add an object, or each object of a list."""
        for each in objects if isinstance(objects, list) else [objects]:
            if isinstance(each, dict):
                self._object(each)

    def listings(self) -> Listings:
        """Return the listings, with notes about the skipped objects.

        Raises:
            InvalidFile: nothing was found.
        """
        notes = []
        if self._is_cut:
            notes.append(f"{self.name}: the last page has a nextPageUri: the reply goes on in a page that is not there")
        if self._others:
            notes.append(f"{self.name}: {_counted(self._others, 'object')} of another kind passed over")
        if self.around:
            notes.append(f"{self.name}: {_counted(self.around, 'line')} around the replies passed over")
        if self._unreadable:
            unreadable = list(dict.fromkeys(self._unreadable))  # two listings may have looked at the same figure
            first = ", ".join(unreadable[:3])
            notes.append(f"{self.name}: {_counted(len(unreadable), 'figure')} could not be read: {first}")
        found = Listings(
            slow_subscribers=tuple(self._clients),
            connections=tuple(self._connections),
            statistics=tuple(self._statistics),
            flows=tuple(self._flows),
            discards=tuple(self._discards),
            notes=tuple(notes),
        )
        if found.is_empty and self._others:
            others = f"{self._others} objects of another kind"
            allowed = "clients, their connections, queues or topic endpoints of SEMP v2 monitoring"
            raise unread([error_at(self.name, 0, "there is no listing in it", found=others, allowed=allowed)])
        return found

    def _object(self, each: Mapping[str, Any]) -> None:
        name = each.get("clientName")
        if isinstance(name, str) and _OF_CONNECTIONS & each.keys():
            self._connections.append(self._connection(name, each))
        elif isinstance(name, str) and _OF_FLOWS & each.keys():
            self._flow(name, each)
        elif isinstance(name, str) and _OF_CLIENTS & each.keys():
            self._client(name, each)
        elif isinstance(queue := each.get("queueName"), str) and _CAUSES.keys() & each.keys():
            self._endpoint(f"{QUEUE}{queue}", each)
        elif isinstance(endpoint := each.get("topicEndpointName"), str) and _CAUSES.keys() & each.keys():
            self._endpoint(f"topic endpoint {endpoint}", each)
        elif name is None and self._is_message_vpn(each):
            self._message_vpn(str(each["msgVpnName"]), each)
        else:
            self._others += 1

    @staticmethod
    def _is_message_vpn(each: Mapping[str, Any]) -> bool:
        return isinstance(each.get("msgVpnName"), str) and bool(_OF_MESSAGE_VPNS & each.keys())

    def _message_vpn(self, name: str, each: Mapping[str, Any]) -> None:
        of = f"message VPN {name}"
        counter = each.get("counter")
        counts = {**(counter if isinstance(counter, dict) else {}), **each}
        egress, ingress = self._count(counts, "discardedTxMsgCount", of), self._count(counts, "discardedRxMsgCount", of)
        self._discards.append(Discards(of, (), egress, ingress))

    def _client(self, name: str, each: Mapping[str, Any]) -> None:
        slow = self._flag(each, "slowSubscriber", name)
        self._statistics.append(
            ClientStatistics(
                name,
                message_vpn=_text(each, "msgVpnName"),
                client_profile=_text(each, "clientProfileName"),
                client_username=_text(each, "clientUsername"),
                client_address=_text(each, "clientAddress"),
                slow_subscriber=slow,
                eliding_enabled=self._flag(each, "eliding", name),
                **{field: self._first(each, names, name) for field, names in _STATISTICS.items()},
            )
        )
        self._clients.append(
            SlowSubscriber(
                name,
                message_vpn=_text(each, "msgVpnName"),
                client_username=_text(each, "clientUsername"),
                client_address=_text(each, "clientAddress"),
                slow_subscriber=slow,
            )
        )
        egress, ingress = self._count(each, "txDiscardedMsgCount", name), self._count(each, "rxDiscardedMsgCount", name)
        unmatched = self._count(each, "noSubscriptionMatchRxDiscardedMsgCount", name)
        if egress or ingress:
            causes = (("no_subscription_match", unmatched),) if unmatched else ()
            self._discards.append(Discards(f"client {name}", causes, egress, ingress))

    def _connection(self, name: str, each: Mapping[str, Any]) -> ClientConnection:
        round_trip_ns = self._count(each, "smoothedRoundTripTime", name)
        return ClientConnection(
            name,
            message_vpn=_text(each, "msgVpnName"),
            client_address=_text(each, "clientAddress"),
            state=_text(each, "tcpState"),
            receive_queue_bytes=self._count(each, "rxQueueByteCount", name),
            send_queue_bytes=self._count(each, "txQueueByteCount", name),
            round_trip_us=None if round_trip_ns is None else round_trip_ns // 1000,
            fast_retransmits=self._count(each, "fastRetransmitCount", name),
            timed_retransmits=self._count(each, "timedRetransmitCount", name),
            uptime_s=self._count(each, "uptime", name),
        )

    def _flow(self, name: str, each: Mapping[str, Any]) -> None:
        self._flows.append(
            EgressFlow(
                name,
                message_vpn=_text(each, "msgVpnName"),
                endpoint=_text(each, "endpointName"),
                window_messages=self._count(each, "windowSize", name),
                used_window_messages=self._count(each, "usedWindowSize", name),
                unacknowledged_messages=self._count(each, "unackedMsgCount", name),
            )
        )

    def _endpoint(self, of: str, each: Mapping[str, Any]) -> None:
        causes: dict[str, int] = {}
        for attribute, key in _CAUSES.items():
            causes[key] = causes.get(key, 0) + (self._count(each, attribute, of) or 0)
        self._discards.append(Discards(of, tuple(causes.items())))

    def _first(self, each: Mapping[str, Any], attributes: Iterable[str], of: str) -> int | None:
        """Return the first of these figures that the object has."""
        return next((self._count(each, name, of) for name in attributes if each.get(name) is not None), None)

    def _count(self, each: Mapping[str, Any], attribute: str, of: str) -> int | None:
        """Return a figure; None where it is missing or cannot be read."""
        value = each.get(attribute)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT:
            return value
        try:
            return read_count(value if isinstance(value, str) else "")
        except ValueError:
            self._unreadable.append(f"{attribute} of {of}"[:200])
            return None

    def _flag(self, each: Mapping[str, Any], attribute: str, of: str) -> bool | None:
        """Return a truth value; None where it is missing or cannot be read."""
        value = each.get(attribute)
        if isinstance(value, str):
            value = {"true": True, "false": False}.get(value.lower(), value)
        if value is None or isinstance(value, bool):
            return value
        self._unreadable.append(f"{attribute} of {of}"[:200])
        return None


def _text(each: Mapping[str, Any], attribute: str) -> str | None:
    value = each.get(attribute)
    return value if isinstance(value, str) else None


_REPLY: Final = "a reply of SEMP v2"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _documents(data: bytes, reading: MonitoringReplies) -> Iterator[tuple[object, int]]:
    """Yield each JSON document of a file with its line; text between them is counted.

    Raises:
        InvalidFile: it is not UTF-8, or a document cannot be read.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x}"
        raise unread([error_at(reading.name, line, "this is not UTF-8", found=found, allowed="UTF-8")]) from None
    decoder = json.JSONDecoder()
    at, line = 0, 1
    while (start := _DOCUMENT.search(text, at)) is not None:
        reading.around += len(text[at : start.start()].strip().splitlines())
        line += text.count("\n", at, start.end())
        at = start.end()
        try:
            document, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            words = f"this is not JSON: {error.msg}"
            raise unread([error_at(reading.name, error.lineno, words, allowed=_REPLY)]) from None
        except (ValueError, RecursionError):
            words = "a number is too long, or a value too deeply nested"
            raise unread([error_at(reading.name, line, words, allowed=_REPLY)]) from None
        yield document, line
        line += text.count("\n", at, end)
        at = end
    reading.around += len(text[at:].strip().splitlines())
