"""Participants of one process: what threads do at the same time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from cyclonedds.idl import IdlStruct, make_idl_struct
from cyclonedds.idl.types import array, uint8

from qsctl.transport.dds.participant import Participant
from tests.dds.domains import claim_domain, release_domain

THREADS = 3
TYPES = 200


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


@pytest.mark.usefixtures("frequent_switches")
def test_threads_open_topics_of_types_that_are_new_to_the_process(participants: list[Participant]) -> None:
    """The binding makes a type ready at its first topic, and two threads at once spoil that for each other."""
    failures: list[BaseException] = []
    for at in range(TYPES):
        data_type: Any = new_type(at)
        together = threading.Barrier(THREADS)

        def open_topic(
            participant: Participant, data_type: Any = data_type, together: threading.Barrier = together, at: int = at
        ) -> None:
            together.wait(10)
            try:
                participant.topic(f"Topic{at}", data_type)
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=open_topic, args=(participant,)) for participant in participants]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert failures == []
