"""Quality of service: the policies that delivery requires, and the QoS elements of the XML that Cyclone DDS supports.

Decides: reliable, keep-all, standard XCDR1 on every topic of delivery and administration ([QS Tables 3.4 and 3.14]:
"cannot be changed"). A QoS element in the XML adds to these if the library has the policy; unsupported ones are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cyclonedds.core import Qos
from cyclonedds.qos import Policy
from lxml import etree

from qsctl.config.tables.qos import FIXED_POLICIES
from qsctl.errors import InvalidInput
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds
from qsctl.transport.dds.peers.announcements import SHARED_SUBSCRIBER_PROPERTY
from qsctl.transport.dds.peers.discovery import traits_policy

READER_FRAMES_MAX: Final = 4096
"""Number of frames that wait in a reader; beyond it, its writers are blocked, and with them their producers."""

PLAIN_SAMPLES_MAX: Final = 1024
"""Number of samples of applications without qsctl that wait in a reader, unless the queue's own reader QoS sets it."""

_BOTH: Final = Policy.DataRepresentation(use_cdrv0_representation=True, use_xcdrv2_representation=True)
_ALIGNED_WIRE: Final = Policy.DataRepresentation(use_cdrv0_representation=True)
_XCDR2: Final = Policy.DataRepresentation(use_xcdrv2_representation=True)
_NEVER_BLOCK: Final = Policy.Reliability.Reliable(0)
_FOREVER: Final = 2**63 - 1
_INFINITE_SEC: Final = 2**31 - 1
"""Value of the infinite duration in seconds, which is also accepted as a number [QS 3.2]."""


def writer_qos(*, traits: Mapping[str, str] | None = None, extra: Sequence[Any] = (), in_xcdr2: bool = False) -> Qos:
    """Return the QoS of a reliable writer that never blocks: with a full cache the write fails at once."""
    wire = _XCDR2 if in_xcdr2 else _ALIGNED_WIRE
    return Qos(*extra, _NEVER_BLOCK, Policy.History.KeepAll, wire, *_said(traits))


def reader_qos(
    *,
    traits: Mapping[str, str] | None = None,
    subscriber: str = "",
    samples_max: int = READER_FRAMES_MAX,
    extra: Sequence[Any] = (),
    only_xcdr1: bool = False,
) -> Qos:
    """Return the QoS of a reliable reader; with `subscriber` it is a queue's consumer [QS 2.5]."""
    shared = [Policy.Property(SHARED_SUBSCRIBER_PROPERTY, subscriber, True)] if subscriber else []
    return Qos(
        *extra,
        _NEVER_BLOCK,
        Policy.History.KeepAll,
        Policy.ResourceLimits(max_samples=samples_max, max_instances=-1, max_samples_per_instance=samples_max),
        *shared,
        *((_ALIGNED_WIRE,) if only_xcdr1 else ()),
        *_said(traits),
    )


def plain_reader_qos(
    *, traits: Mapping[str, str] | None = None, samples_max: int = PLAIN_SAMPLES_MAX, extra: Sequence[Any] = ()
) -> Qos:
    """Return the QoS of a reliable reader of XCDR1 and XCDR2, for samples of applications without qsctl."""
    limits = Policy.ResourceLimits(max_samples=samples_max, max_instances=-1, max_samples_per_instance=samples_max)
    return Qos(*extra, _NEVER_BLOCK, Policy.History.KeepAll, limits, _BOTH, *_said(traits))


def last_value_qos(*, in_xcdr2: bool = False) -> Qos:
    """Return the QoS of monitoring: a late reader receives each queue's last status [QS Table 3.5]."""
    return Qos(
        Policy.Reliability.Reliable(SECOND_NS),
        Policy.History.KeepLast(1),
        Policy.Durability.TransientLocal,
        _XCDR2 if in_xcdr2 else _ALIGNED_WIRE,
    )


def partition_qos(*names: str) -> Qos:
    """Return the QoS of a publisher or subscriber in these partitions."""
    return Qos(Policy.Partition(list(names)))


def _said(traits: Mapping[str, str] | None) -> list[Any]:
    return [traits_policy(**traits)] if traits else []


@dataclass(frozen=True, slots=True)
class MappedQos:
    """A QoS element converted to policies of the library, with the names of the unsupported ones."""

    policies: tuple[Any, ...] = ()
    unsupported: tuple[str, ...] = ()


def map_qos(xml: str) -> MappedQos:
    """Convert a `<…_qos>` element, in the canonical XML text of `config`, to policies.

    Raises:
        InvalidInput: the text is not XML, or a policy has an invalid value.
    """
    if not xml.strip():
        return MappedQos()
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        element = etree.fromstring(xml.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise InvalidInput(f"a QoS element is not XML: {error}") from error
    policies: dict[str, Any] = {}
    unsupported: list[str] = []
    known = _WRITER_POLICIES if "datawriter" in str(element.tag) else _READER_POLICIES
    for child in element:
        if not isinstance(child.tag, str) or child.tag in FIXED_POLICIES or child.tag == "property":
            continue
        make = known.get(child.tag)
        if make is None:
            unsupported.append(child.tag)
        else:
            policies[child.tag] = make(child)
    return MappedQos(tuple(policies.values()), tuple(unsupported))


def _kind(element: Any, **allowed: Any) -> Any:
    """Return the value that an element's `<kind>` names; without one the policy's default, the first of `allowed`."""
    text = (element.findtext("kind") or "").strip()
    if not text:
        return next(iter(allowed.values()))
    word = text.removeprefix("DDS_").removesuffix("_QOS")
    if word not in allowed:
        raise InvalidInput(
            f"line {element.sourceline}: <{element.tag}><kind> is {text[:60]!r}",
            remedy=f"Write one of {', '.join(allowed)}.",
        )
    return allowed[word]


def _duration(element: Any | None, *, absent: Nanoseconds = _FOREVER) -> Nanoseconds:
    if element is None:
        return absent
    total = 0
    for tag, unit in (("sec", SECOND_NS), ("nanosec", 1)):
        word = (element.findtext(tag) or "0").strip().removeprefix("DDS_").removeprefix("DURATION_")
        if word.startswith("INFINITE"):
            if tag == "sec":
                return _FOREVER
        elif not word.startswith("ZERO"):
            number = _whole_number(word)
            if number is None or number < 0:
                raise InvalidInput(
                    f"line {element.sourceline}: <{tag}> is {word[:60]!r}",
                    remedy="Write digits or DURATION_INFINITE_SEC.",
                )
            if tag == "sec" and number >= _INFINITE_SEC:
                return _FOREVER
            total += number * unit
    return min(total, INFINITE_NS)


def _integer(element: Any) -> int:
    text = (element.findtext("value") or "").strip()
    number = _whole_number(text) if text else 0
    if number is None or not -(2**31) <= number < 2**31:
        raise InvalidInput(f"<{element.tag}> is {text[:60]!r}", remedy="Write a whole number of 32 bits.")
    return number


def _whole_number(text: str) -> int | None:
    try:
        return int(text, 16 if text[:2].lower() == "0x" else 10) if len(text) < 30 else None
    except ValueError:
        return None


_COMMON_POLICIES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "durability": lambda element: _kind(
        element,
        VOLATILE_DURABILITY=Policy.Durability.Volatile,
        TRANSIENT_LOCAL_DURABILITY=Policy.Durability.TransientLocal,
        TRANSIENT_DURABILITY=Policy.Durability.Transient,
        PERSISTENT_DURABILITY=Policy.Durability.Persistent,
    ),
    "liveliness": lambda element: _kind(
        element,
        AUTOMATIC_LIVELINESS=Policy.Liveliness.Automatic,
        MANUAL_BY_PARTICIPANT_LIVELINESS=Policy.Liveliness.ManualByParticipant,
        MANUAL_BY_TOPIC_LIVELINESS=Policy.Liveliness.ManualByTopic,
    )(_duration(element.find("lease_duration"))),
    "ownership": lambda element: _kind(
        element, SHARED_OWNERSHIP=Policy.Ownership.Shared, EXCLUSIVE_OWNERSHIP=Policy.Ownership.Exclusive
    ),
    "destination_order": lambda element: _kind(
        element,
        BY_RECEPTION_TIMESTAMP_DESTINATIONORDER=Policy.DestinationOrder.ByReceptionTimestamp,
        BY_SOURCE_TIMESTAMP_DESTINATIONORDER=Policy.DestinationOrder.BySourceTimestamp,
    ),
    "deadline": lambda element: Policy.Deadline(_duration(element.find("period"))),
    "latency_budget": lambda element: Policy.LatencyBudget(_duration(element.find("duration"), absent=0)),
}
_WRITER_POLICIES: Final[Mapping[str, Callable[[Any], Any]]] = {
    **_COMMON_POLICIES,
    "lifespan": lambda element: Policy.Lifespan(_duration(element.find("duration"))),
    "transport_priority": lambda element: Policy.TransportPriority(_integer(element)),
}
_READER_POLICIES: Final[Mapping[str, Callable[[Any], Any]]] = {
    **_COMMON_POLICIES,
    "time_based_filter": lambda element: Policy.TimeBasedFilter(
        _duration(element.find("minimum_separation"), absent=0)
    ),
}
"""The policies of a reader and of a writer; the schema treats other tags as a vendor's, which are ignored."""
