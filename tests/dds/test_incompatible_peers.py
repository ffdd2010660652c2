"""Peers that miss what the service offers are named once, with what they have and what they should have."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import Qos
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import bounded_str, int32
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy
from cyclonedds.sub import DataReader

from qsctl.instant import SECOND_NS
from qsctl.transport.dds.boundary import Boundary
from qsctl.transport.dds.diagnosis._mismatches import Side, mismatches, partitions_meet
from qsctl.transport.dds.diagnosis._topic_names import nearest_topic
from qsctl.transport.dds.diagnosis.incompatible_peers import LOOK_EVERY_NS, TAKING_NS, IncompatiblePeers
from qsctl.transport.dds.diagnosis.peer_faults import FaultKind, PeerFault
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.endpoint_policies import XCDR2, EndpointPolicies
from qsctl.transport.dds.serving.loop_time import BEHIND_MAX_NS
from qsctl.transport.dds.wire.raw import close_entity
from tests.dds.c_peer import ENVIRONMENT
from tests.dds.foreign import ForeignService
from tests.dds.service_process import eventually
from tests.processes import running

PEER = Path(__file__).parent / "peer" / "mismatched.py"

KINDS = {
    "type": "type: number is int64 in its type, here int32",
    "representation": "representation: it writes XCDR2, the service reads XCDR1",
    "reliability": "reliability: it offers BEST_EFFORT, the service asks for RELIABLE",
    "durability": "durability: it offers VOLATILE, the service asks for TRANSIENT_LOCAL",
    "ownership": "ownership: it offers EXCLUSIVE, the service asks for SHARED",
    "partition": "partition: it is in partition 'elsewhere', the service in none (the default one)",
    "name": "name: the service has no such topic; it has 'Orders'",
    "extensibility": "extensibility: its type is @appendable, here it is @final",
    "key": "key: number is a key in its type, here it is no key",
    "bound": "bound: text is string bounded by 64 in its type, here string bounded by 16",
}


@dataclass
@final
class Order(IdlStruct, typename="Shop.Order"):
    number: int32 = 0
    text: bounded_str[16] = ""


@contextlib.contextmanager
def watched(domain: int) -> Iterator[tuple[Participant, IncompatiblePeers, list[PeerFault]]]:
    """A participant with one reader of orders, and what is reported of its peers."""
    faults: list[PeerFault] = []
    participant = Participant(domain, boundary=Boundary(faults.append))
    policies = (
        Policy.Reliability.Reliable(0),
        Policy.Durability.TransientLocal,
        Policy.DataRepresentation(use_cdrv0_representation=True),
    )
    reader = DataReader(participant.entity, participant.topic("Orders", Order), qos=Qos(*policies))
    watch = IncompatiblePeers(participant)
    try:
        yield participant, watch, faults
    finally:
        watch.close()
        del reader
        participant.close()


def test_ten_kinds_of_mismatch_are_each_reported_once_with_peer_and_reason(domain: int) -> None:
    with (
        watched(domain) as (_, watch, faults),
        running(
            [sys.executable, "-I", str(PEER), str(domain), "Shop::Order", "16"],
            env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as peer,
    ):  # fmt: skip
        assert peer.stdout is not None
        assert peer.stdout.readline() == "READY\n"

        def all_reported() -> bool:
            watch.turn()
            return len(faults) >= len(KINDS)

        assert eventually(all_reported), faults
        looked_until = time.monotonic_ns() + 3 * LOOK_EVERY_NS
        while time.monotonic_ns() < looked_until:
            watch.turn()
            time.sleep(0.05)
        assert len(faults) == len(KINDS), "each once"
        assert {fault.kind for fault in faults} == {FaultKind.INCOMPATIBLE}
        for name, reason in KINDS.items():
            (fault,) = [each for each in faults if f"participant {name!r}" in each.reason]
            assert fault.reason.startswith(f"writer of participant {name!r} (process ")
            assert f"pid {peer.pid}," in fault.reason
            assert "Cyclone DDS): " in fault.reason
            assert fault.reason.endswith(reason)
            assert fault.source == ("orders" if name == "name" else "Orders")
            assert fault.peer.startswith("0110"), "the GUID of the endpoint"


@dataclass
@final
class Stranger(IdlStruct, typename="Shop.Stranger"):
    number: int32 = 0


def test_what_came_and_went_while_there_was_no_time_is_dropped(domain: int) -> None:
    """What is there is compared, and what was reported before is not reported again."""
    with watched(domain) as (participant, watch, faults), contextlib.closing(Participant(domain)) as peer:
        time_of = participant.boundary.time
        topic = peer.topic("Orders", Stranger)
        first = DataWriter(peer.entity, topic)
        assert eventually(lambda: [watch.turn(), len(faults) == 1][1])
        # Samples move, and each slice is over at once.
        time_of.diagnosis._slice_ns = 0
        time_of.busy_ns = 3600 * SECOND_NS  # however slow this machine is
        time_of.note_samples()
        passing = [DataWriter(peer.entity, topic) for _ in range(50)]
        for each in passing:
            close_entity(each)
        last = DataWriter(peer.entity, topic)
        discovered = BuiltinDataReader(participant.entity, BuiltinTopicDcpsPublication)
        assert eventually(lambda: str(last.guid) in {str(each.key) for each in discovered.read(1000)})
        former = watch._readers
        watch._look_at = 0
        time_of.note_samples()
        watch.turn()
        assert watch._readers is former
        assert watch._behind_since is not None
        watch._behind_since -= BEHIND_MAX_NS + len(watch._endpoints) * TAKING_NS
        time_of.note_samples()
        watch.turn()
        assert watch._readers is not former
        time_of.is_contended = lambda _now: False  # type: ignore[method-assign]
        assert eventually(lambda: [watch.turn(), len(faults) == 2][1])
        writers = [each for each in watch._endpoints.values() if each.is_writer]
        assert {each.said.key for each in writers} == {first.guid.bytes, last.guid.bytes}
        assert not watch._former


def test_a_service_names_each_peer_once_in_its_log(tmp_path: Path, domain: int) -> None:
    service = ForeignService(tmp_path, domain)
    # It reads both representations and asks for no durability.
    kinds = KINDS.keys() - {"representation", "durability"}
    with (
        contextlib.ExitStack() as stack,
        running(
            [sys.executable, "-I", str(PEER), str(domain), "Order", "128"],
            env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        ),
    ):  # fmt: skip
        stack.callback(service.end)

        def named() -> list[str]:
            return [line for line in service.log.read_text().splitlines() if "'incompatible_peer'" in line]

        assert eventually(lambda: len(named()) >= len(kinds)), service.log.read_text()
        assert service.stop() == 0
        lines = named()
        assert len(lines) == len(kinds), lines
        for kind in kinds:
            (line,) = [each for each in lines if f"writer of participant '{kind}' (process " in each]
            assert f": {kind}: " in line


def test_a_peer_that_two_participants_of_a_service_find_is_named_once() -> None:
    faults: list[PeerFault] = []
    boundary = Boundary(faults.append)
    for reason in ("as one sees it", "as the other sees it"):
        boundary.name_incompatible("Orders", "01" * 16, reason)
    boundary.name_incompatible("Orders", "02" * 16, "another one")
    assert [(fault.peer[:2], fault.reason) for fault in faults] == [("01", "as one sees it"), ("02", "another one")]
    assert boundary.incompatible_count == 2


def test_a_peer_that_matches_and_a_topic_of_others_are_not_reported(domain: int) -> None:
    with watched(domain) as (_, watch, faults):
        other = Participant(domain)
        assert other.entity is not None
        qos = Qos(Policy.Reliability.Reliable(0), Policy.Durability.TransientLocal,
                  Policy.DataRepresentation(use_cdrv0_representation=True))  # fmt: skip
        kept = [
            DataWriter(other.entity, other.topic("Orders", Order), qos=qos),
            DataWriter(other.entity, other.topic("orders", Order), qos=qos),
            DataWriter(other.entity, other.topic("Others", Order), qos=qos),
        ]
        third = Participant(domain)
        assert third.entity is not None
        # Somebody else reads `orders`: who writes there means it.
        kept.append(DataReader(third.entity, third.topic("orders", Order)))
        looked_until = time.monotonic_ns() + 5 * LOOK_EVERY_NS
        while time.monotonic_ns() < looked_until:
            watch.turn()
            time.sleep(0.05)
        assert faults == []
        kept.clear()
        third.close()
        other.close()


@pytest.mark.parametrize(
    ("offered", "asked", "reason"),
    [
        ({}, {"deadline_ns": 5}, "deadline: it offers an infinite duration, the service asks for 5 ns at most"),
        ({"latency_budget_ns": 9}, {}, "latency_budget: it offers 9 ns, the service asks for 0 ns at most"),
        ({}, {"liveliness": 2}, "liveliness: it offers AUTOMATIC, the service asks for MANUAL_BY_TOPIC"),
        ({}, {"destination_order": 1},
         "destination_order: it offers BY_RECEPTION_TIMESTAMP, the service asks for BY_SOURCE_TIMESTAMP"),
        ({}, {"ordered_access": True}, "presentation: it offers INSTANCE, the service asks for INSTANCE"),
        ({"representations": (XCDR2,)}, {"representations": (0, XCDR2)}, None),
        ({"partitions": (b"a",)}, {"partitions": (b"?",)}, None),
    ],
)  # fmt: skip
def test_a_policy_is_compared_as_offered_and_requested(offered: dict, asked: dict, reason: str | None) -> None:  # type: ignore[type-arg]
    found = mismatches(
        Side(True, "T", EndpointPolicies(**offered)), Side(False, "T", EndpointPolicies(**asked))
    )  # fmt: skip
    assert [f"{each.kind.value}: {each.text}" for each in found] == ([] if reason is None else [reason])


def test_a_reader_is_compared_with_what_the_service_offers() -> None:
    reader = Side(False, "T", EndpointPolicies(representations=(XCDR2,), durability=1))
    (one, other) = mismatches(reader, Side(True, "T", EndpointPolicies()))
    assert one.text == "the service writes XCDR1, it reads XCDR2"
    assert other.text == "the service offers VOLATILE, it asks for TRANSIENT_LOCAL"


def test_a_type_of_another_name_is_named_and_not_compared() -> None:
    (one,) = mismatches(
        Side(True, "Shop::Purchase", EndpointPolicies()), Side(False, "Shop::Order", EndpointPolicies())
    )
    assert f"{one.kind.value}: {one.text}" == "name: its type is named 'Shop::Purchase', here it is 'Shop::Order'"


def test_partitions_meet_as_names_or_by_one_pattern() -> None:
    assert partitions_meet((), (b"",))
    assert partitions_meet((b"a", b"b*"), (b"bcd",))
    assert partitions_meet((b"*",), ())
    assert not partitions_meet((b"a*",), (b"?b",))
    assert not partitions_meet((), (b"a",))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("orders", "Orders"),
        ("rt/Orders", "Orders"),
        ("Or_ders", "Orders"),
        ("Orders2", None),
        ("Orders", None),
        ("Deals@Desk", "Deals@S"),
        ("Others@S", None),
    ],
)
def test_a_misspelt_topic_is_recognized_and_another_one_is_not(name: str, meant: str | None) -> None:
    assert nearest_topic(name, ["Orders", "Deals@S"]) == meant
