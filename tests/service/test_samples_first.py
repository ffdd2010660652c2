"""Samples are read before the entries that leave out their payloads."""

from __future__ import annotations

import pytest

from qsctl.core.high_availability.frames import Confirmed, Entries, Frame, Ordered
from qsctl.core.messages import Inbound, Write
from qsctl.identity import Guid, SampleIdentity
from qsctl.service.replicas.samples_first import POLLS_MAX, read_samples_first
from qsctl.transport.dds.replicas.letter_box import ReceivedLetter
from qsctl.transport.dds.replicas.replica_letters import LETTER_FORMAT, Letter

IDENTITY = SampleIdentity(Guid(b"w" * 16), 1)
SAMPLE = Write("P", "Orders", IDENTITY, b"x" * 1_000)
ENTRY = Ordered("P/S/Orders", 1, IDENTITY, 0, 0, 0)
CONFIRMED = Confirmed("P/S/Orders", "B", 1, 1, 1, 1)


def entries(*records: Ordered, lacks_payloads: bool) -> Entries:
    return Entries("P/S/Orders", "B", 1, 0, 0, records, 0, 1, lacks_payloads)


def read(frame: Frame, *shares: list[Inbound]) -> tuple[list[list[Inbound]], list[Inbound]]:
    """What was stepped, and what came last."""
    waiting, stepped = list(shares), []
    last = read_samples_first(
        [ReceivedLetter("B", Letter(LETTER_FORMAT, ("A", "B"), (frame,)))],
        lambda: waiting.pop(0) if waiting else [],
        stepped.append,
    )
    return stepped, last


def test_letters_that_leave_out_payloads_wait_for_all_that_has_come() -> None:
    frame = entries(ENTRY, lacks_payloads=True)
    assert read(frame, [SAMPLE], [SAMPLE, SAMPLE]) == ([[SAMPLE], [SAMPLE, SAMPLE]], [])


@pytest.mark.parametrize(
    "frame",
    [CONFIRMED, entries(lacks_payloads=True), entries(ENTRY, lacks_payloads=False)],
    ids=["confirmed", "beat", "whole"],
)
def test_other_letters_wait_for_nothing(frame: Frame) -> None:
    assert read(frame, [SAMPLE], [SAMPLE]) == ([], [SAMPLE])


def test_a_flood_of_samples_keeps_no_letter_waiting_for_long() -> None:
    stepped, last = read(entries(ENTRY, lacks_payloads=True), *([SAMPLE] for _ in range(10 * POLLS_MAX)))
    assert len(stepped) == POLLS_MAX
    assert last == [SAMPLE]
