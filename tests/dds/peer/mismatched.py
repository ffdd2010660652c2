"""A program that does nearly what it should: a writer for each way in which it can miss a queue's reader.

mismatched.py DOMAIN TYPE BOUND: writes for topic Orders of `TYPE {long number; string<BOUND> text;}`, each writer in a
participant of its own that is named after what is wrong; with two nothing is. Says READY when all are made, and leaves
when its input ends. It knows nothing of qsctl.
"""

import sys
from typing import Any

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import make_idl_struct
from cyclonedds.idl.annotations import appendable, final
from cyclonedds.idl.types import bounded_str, int32, int64
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.topic import Topic

XCDR1 = Policy.DataRepresentation(use_cdrv0_representation=True)
XCDR2 = Policy.DataRepresentation(use_xcdrv2_representation=True)
RELIABLE = Policy.Reliability.Reliable(0)
LATE = Policy.Durability.TransientLocal


def order(name: str, bound: int, number: Any = int32, extensibility: Any = final, is_key: bool = False) -> Any:
    fields = {"number": number, "text": bounded_str[bound]}
    annotations = {"number": {"key": True}} if is_key else {}
    return extensibility(make_idl_struct("Order", name.replace("::", "."), fields, field_annotations=annotations))


def main() -> None:
    domain, name, bound = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    good = order(name, bound)
    fit = [RELIABLE, XCDR1, LATE]
    writers: list[tuple[str, str, Any, list[Any], str]] = [
        ("good", "Orders", good, fit, ""),
        ("described type of another name", "Orders", order(f"{name}Sheet", bound), fit, ""),
        ("type", "Orders", order(name, bound, number=int64), fit, ""),
        ("representation", "Orders", good, [RELIABLE, XCDR2, LATE], ""),
        ("reliability", "Orders", good, [Policy.Reliability.BestEffort, XCDR1, LATE], ""),
        ("durability", "Orders", good, [RELIABLE, XCDR1], ""),
        ("ownership", "Orders", good, [*fit, Policy.Ownership.Exclusive], ""),
        ("partition", "Orders", good, fit, "elsewhere"),
        ("name", "orders", good, fit, ""),
        ("extensibility", "Orders", order(name, bound, extensibility=appendable), fit, ""),
        ("key", "Orders", order(name, bound, is_key=True), fit, ""),
        ("bound", "Orders", order(name, 4 * bound), fit, ""),
    ]
    kept: list[Any] = []
    for wrong, topic_name, data_type, policies, partition in writers:
        participant = DomainParticipant(domain, qos=Qos(Policy.EntityName(wrong)))
        publisher = Publisher(participant, qos=Qos(Policy.Partition([partition])) if partition else None)
        writer = DataWriter(publisher, Topic(participant, topic_name, data_type), qos=Qos(*policies))
        kept += [participant, publisher, writer]
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    sys.stdin.read()


main()
