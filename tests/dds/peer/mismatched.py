"""A program that does nearly what it should: a writer for each way in which it can miss a queue's reader.

Writes for topic Orders of `Order {long number; string<16> text;}`, each in a participant of its own that is named after
what is wrong; with two nothing is. Says READY when all are made, and leaves when its input ends. It
knows nothing of qsctl.
"""

import sys
from dataclasses import dataclass
from typing import Any

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import appendable, final, key
from cyclonedds.idl.types import bounded_str, int32, int64
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.topic import Topic


@dataclass
@final
class Order(IdlStruct, typename="Shop.Order"):
    number: int32 = 0
    text: bounded_str[16] = ""


@dataclass
@final
class LongNumber(IdlStruct, typename="Shop.Order"):
    number: int64 = 0
    text: bounded_str[16] = ""


@dataclass
@final
class AnotherName(IdlStruct, typename="Shop.Purchase"):
    number: int32 = 0
    text: bounded_str[16] = ""


@dataclass
@appendable
class Appendable(IdlStruct, typename="Shop.Order"):
    number: int32 = 0
    text: bounded_str[16] = ""


@dataclass
@final
class Keyed(IdlStruct, typename="Shop.Order"):
    number: int32 = 0
    key("number")
    text: bounded_str[16] = ""


@dataclass
@final
class LongerText(IdlStruct, typename="Shop.Order"):
    number: int32 = 0
    text: bounded_str[64] = ""


XCDR1 = Policy.DataRepresentation(use_cdrv0_representation=True)
XCDR2 = Policy.DataRepresentation(use_xcdrv2_representation=True)
RELIABLE = Policy.Reliability.Reliable(0)
PERSISTENT = Policy.Durability.TransientLocal
WRITERS: list[tuple[str, str, Any, list[Any], str]] = [
    ("good", "Orders", Order, [RELIABLE, XCDR1, PERSISTENT], ""),
    ("type", "Orders", LongNumber, [RELIABLE, XCDR1, PERSISTENT], ""),
    ("representation", "Orders", Order, [RELIABLE, XCDR2, PERSISTENT], ""),
    ("reliability", "Orders", Order, [Policy.Reliability.BestEffort, XCDR1, PERSISTENT], ""),
    ("durability", "Orders", Order, [RELIABLE, XCDR1], ""),
    ("ownership", "Orders", Order, [RELIABLE, XCDR1, PERSISTENT, Policy.Ownership.Exclusive], ""),
    ("partition", "Orders", Order, [RELIABLE, XCDR1, PERSISTENT], "elsewhere"),
    ("described type of another name", "Orders", AnotherName, [RELIABLE, XCDR1, PERSISTENT], ""),
    ("name", "orders", Order, [RELIABLE, XCDR1, PERSISTENT], ""),
    ("extensibility", "Orders", Appendable, [RELIABLE, XCDR1, PERSISTENT], ""),
    ("key", "Orders", Keyed, [RELIABLE, XCDR1, PERSISTENT], ""),
    ("bound", "Orders", LongerText, [RELIABLE, XCDR1, PERSISTENT], ""),
]  # fmt: skip


def main() -> None:
    domain = int(sys.argv[1])
    kept: list[Any] = []
    for name, topic_name, data_type, policies, partition in WRITERS:
        participant = DomainParticipant(domain, qos=Qos(Policy.EntityName(name)))
        publisher = Publisher(participant, qos=Qos(Policy.Partition([partition])) if partition else None)
        writer = DataWriter(publisher, Topic(participant, topic_name, data_type), qos=Qos(*policies))
        kept += [participant, publisher, writer]
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    sys.stdin.read()


main()
