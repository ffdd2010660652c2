"""The IDL files that come with qsctl: the types and octets that peers exchange, against those recorded before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from qsctl.config.sample_types.type_file import read_type_file
from qsctl.core.admin.reply import QueueData, ServiceData
from qsctl.core.statistics.status import MemberStatus, ReplicationStatus, SharedReaderQueueStatus
from qsctl.shipped import shipped
from qsctl.transport.dds.wire import bodies
from qsctl.transport.dds.wire.idl_classes import idl_class
from tests.transport.monitoring_bodies import DATA, STATUS

IDLS: Final = sorted(f"schemas/{each.name}" for each in shipped("schemas").glob("*.idl"))
RECORDED: Final = json.loads(Path(__file__).with_name("idl_types.json").read_text(encoding="utf-8"))
REPLICATED: Final = msgspec.structs.replace(
    STATUS,
    replication=ReplicationStatus(
        "master", 7, "One", 3, 2, 1, True, 4, 2**40, 2**40 - 4, "elected",
        members=(
            MemberStatus("One", True, "master", 2**40, 2**40 - 1, 0, 0, 0, 0, 6, "ok", 100),
            MemberStatus("Two", True, "slave", 2**40 - 4, 2**40 - 5, 4, 2**33, 10**10, 10**9, 5, "hangs", 0, True),
            MemberStatus("Three", False),
        ),
        group="P/S/Q",
        is_current=True,
        behind_ns=2**40,
    ),
)  # fmt: skip
DOMAINS: Final = {"P": 7}


def of_module(name: str) -> type[Any]:
    return idl_class("schemas/qsctl_queue.idl" if name.startswith("qsctl::") else "schemas/qsctl_monitoring.idl", name)


@pytest.mark.parametrize("name", RECORDED["types"])
def test_type_is_the_recorded_one(name: str) -> None:
    """A peer that compares types is matched by the hash over names, members, their order and extensibility."""
    idl: Any = of_module(name).__idl__
    assert idl.get_type_id().value.hex() == RECORDED["types"][name]


@pytest.mark.parametrize("name", RECORDED["parts"])
def test_part_of_another_type_stays_as_it_was_recorded(name: str) -> None:
    """Nothing in XCDR1 says where a part ends: what is new belongs behind the whole. No part is recorded anew."""
    idl: Any = of_module(name).__idl__
    assert idl.get_type_id().value.hex() == RECORDED["parts"][name]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("SharedReaderQueueStatus", REPLICATED),
        ("ServiceData", DATA),
        ("SharedReaderQueueData", DATA.queues[0]),
    ],
)
def test_octets_of_monitoring_are_the_recorded_ones(
    name: str, body: SharedReaderQueueStatus | ServiceData | QueueData
) -> None:
    recorded = {key: bytes.fromhex("".join(lines)) for key, lines in RECORDED["octets"][name].items()}
    match body:
        case SharedReaderQueueStatus():
            wire, back = bodies.wire_status(body), bodies.status_from_wire
        case ServiceData():
            wire, back = bodies.wire_service_data(body, DOMAINS), bodies.service_data_from_wire
        case QueueData():
            wire, back = bodies.wire_queue_data(body, DOMAINS), bodies.queue_data_from_wire
    assert bodies.octets_of(wire) == recorded["XCDR1"]
    assert bytes(wire.serialize(use_version_2=True)) == recorded["XCDR2"]
    for octets in recorded.values():
        assert back(bodies.read_wire(type(wire), octets)) == body


def read_status(octets: bytes) -> SharedReaderQueueStatus:
    return bodies.status_from_wire(
        bodies.read_wire(of_module("RTI::QueuingService::Monitoring::SharedReaderQueueStatus"), octets)
    )


def earlier(**fields: Any) -> SharedReaderQueueStatus:
    """The status as a version writes it that does not have the latest fields, with these others."""
    assert REPLICATED.replication is not None
    beside = {"group": "", "is_current": False, "behind_ns": None} | fields
    return msgspec.structs.replace(REPLICATED, replication=msgspec.structs.replace(REPLICATED.replication, **beside))


def test_status_of_a_version_without_members_is_read() -> None:
    octets = bytes.fromhex("".join(RECORDED["without_members"]["XCDR1"]))
    assert read_status(octets) == earlier(members=())


@pytest.mark.parametrize("representation", RECORDED["without_candidacies"])
def test_status_of_a_version_without_candidacies_is_read(representation: str) -> None:
    """Its members are the same structures: a reader of XCDR1 cannot skip what is new in each of them."""
    assert REPLICATED.replication is not None
    members = [
        msgspec.structs.replace(each, master_priority=None, is_witness=False) for each in REPLICATED.replication.members
    ]
    octets = bytes.fromhex("".join(RECORDED["without_candidacies"][representation]))
    assert read_status(octets) == earlier(members=tuple(members))


def test_data_of_a_service_of_a_version_without_daemons_is_read() -> None:
    octets = bytes.fromhex("".join(RECORDED["without_daemons"]["XCDR1"]))
    read = bodies.service_data_from_wire(
        bodies.read_wire(of_module("RTI::QueuingService::Monitoring::ServiceData"), octets)
    )
    assert read == msgspec.structs.replace(DATA, is_daemon=False)


@pytest.mark.parametrize("path", IDLS)
def test_shipped_idl_passes_the_rules_of_types(path: str) -> None:
    library = read_type_file(shipped(path))
    assert library.definitions
    for name in library.type_names():
        assert library.is_of_samples(name)


def test_class_is_the_same_in_every_thread() -> None:
    count = 8
    script = (
        "import sys; sys.setswitchinterval(1e-6)\n"
        "from concurrent.futures import ThreadPoolExecutor\nfrom threading import Barrier\n"
        "from qsctl.transport.dds.wire.wire_monitoring import monitoring_class\n"
        f"start = Barrier({count})\n"
        "def one(_):\n    start.wait()\n    return monitoring_class('Monitoring::SharedReaderQueueStatus')\n"
        f"with ThreadPoolExecutor({count}) as pool:\n    found = set(pool.map(one, range({count})))\n"
        "print(len(found))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"


def test_idl_is_read_when_a_class_is_needed_and_not_before() -> None:
    script = (
        "import sys\nimport qsctl.client, qsctl.transport.dds.wire.replies\n"
        "from qsctl.transport.dds.wire import idl_classes\n"
        "print(idl_classes._library.cache_info().currsize, 'qsctl.config.sample_types.types' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "0 False\n"
