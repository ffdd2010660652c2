"""Clients in threads of one process: the binding to DDS is not made for them, so it is used by one at a time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cyclonedds.idl import IdlStruct, make_idl_struct
from cyclonedds.idl.types import array, uint8

from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import Discovery
from qsctl.transport.dds.wire.wire_types import WireFrame
from tests.dds.domains import claim_domain, release_domain

THREADS = 3
TYPES = 200
WRITERS = 40
LOOKS = 10


@pytest.fixture
def participants() -> Iterator[list[Participant]]:
    domain = claim_domain()
    opened = [Participant(domain) for _ in range(THREADS)]
    yield opened
    for participant in opened:
        participant.close()
    release_domain(domain)


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def new_type(at: int) -> type[IdlStruct]:
    """A type that this process has not seen, with another in it twice, as an identity is in a frame."""
    inner = make_idl_struct(f"Inner{at}", f"test::Inner{at}", {"value": array[uint8, 16]})
    return make_idl_struct(f"Outer{at}", f"test::Outer{at}", {"one": inner, "other": inner})


def at_once(participants: list[Participant], action: Callable[[Participant], object]) -> list[BaseException]:
    """Do it in a thread for each participant, all at the same time; what went wrong."""
    together = threading.Barrier(len(participants))
    failures: list[BaseException] = []

    def run(participant: Participant) -> None:
        together.wait(10)
        try:
            action(participant)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(participant,)) for participant in participants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return failures


@pytest.mark.slow
@pytest.mark.usefixtures("frequent_switches")
def test_threads_open_topics_of_types_that_are_new_to_the_process(participants: list[Participant]) -> None:
    """The binding makes a type ready at its first topic, and two threads at once spoil that for each other."""
    for at in range(TYPES):
        data_type: Any = new_type(at)
        assert at_once(participants, lambda each, at=at, new=data_type: each.topic(f"Topic{at}", new)) == []


@pytest.mark.usefixtures("frequent_switches")
def test_threads_read_each_endpoint_s_own_announcement(participants: list[Participant]) -> None:
    """The binding reads what endpoints say into one place for all threads."""
    topic = participants[0].topic("Orders", WireFrame)
    writers = [
        FrameWriter(participants[0], topic, partition=f"{at}", traits={"name": f"{at}"}) for at in range(WRITERS)
    ]

    def look(participant: Participant) -> None:
        for _ in range(LOOKS):
            discovery = Discovery(participant)
            discovery.look()
            seen = [each for each in discovery.endpoints() if each.topic_name == "Orders"]
            discovery.close()
            assert len(seen) == WRITERS
            assert [(each.traits.get("name"),) for each in seen] == [each.partitions for each in seen]

    assert at_once(participants, look) == []
    for writer in writers:
        writer.close()
