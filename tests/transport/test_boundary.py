"""The boundary around everything that peers send: one message costs itself, a report at a limited rate, and no more."""

from __future__ import annotations

import logging

import pytest

from qsctl.instant import SECOND_NS
from qsctl.transport.dds.boundary import Boundary, Malformed, decoded
from qsctl.transport.dds.diagnosis.peer_faults import (
    KINDS_MAX,
    REPORT_PERIOD_NS,
    UNKNOWN_PEER,
    FaultKind,
    FaultReports,
    PeerFault,
    log_fault,
)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = SECOND_NS

    def __call__(self) -> int:
        return self.now


def reading(item: int) -> int:
    """Double a number; 2 is malformed, and 3 raises what no reader declares."""
    if item == 2:
        raise Malformed("two is not a number")
    if item == 3:
        raise AttributeError("'int' object has no attribute 'name'")
    return 2 * item


def test_messages_around_a_broken_one_have_their_effect() -> None:
    reports: list[PeerFault] = []
    boundary = Boundary(reports.append)
    answered: list[tuple[int, str]] = []
    read = boundary.each(
        "T", (1, 2, 3, 4), reading, lambda index: f"peer {index}", lambda item, why: answered.append((item, why))
    )
    assert read == [2, 8]
    assert (boundary.refused_count, boundary.unexpected_count) == (2, 1)
    malformed, unexpected = reports
    assert malformed == PeerFault("T", "peer 1", "two is not a number")
    assert (unexpected.source, unexpected.peer, unexpected.kind) == ("T", "peer 2", FaultKind.UNEXPECTED)
    assert unexpected.reason.startswith("AttributeError: 'int' object has no attribute 'name' (")
    assert "test_boundary:" in unexpected.reason, "where it was raised"
    assert answered == [(2, "two is not a number"), (3, unexpected.reason)]


@pytest.mark.parametrize("kind", [MemoryError, RecursionError, AssertionError, UnicodeDecodeError])
def test_every_error_of_a_reader_ends_at_the_boundary(kind: type[Exception]) -> None:
    def read(_item: int) -> None:
        raise kind("utf-8", b"\xff", 0, 1, "bad") if kind is UnicodeDecodeError else kind("no")

    boundary = Boundary(lambda _fault: None)
    assert boundary.each("T", (1,), read, str) == []
    assert boundary.unexpected_count == 1


def test_an_interrupt_passes_the_boundary() -> None:
    def read(_item: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Boundary().each("T", (1,), read, str)


def test_what_the_binding_raises_becomes_malformed() -> None:
    def decode(_data: bytes) -> None:
        raise Exception("Struct was not contained inside header indicated size")

    with pytest.raises(Malformed, match="3 octets: Exception: Struct was not"):
        decoded(decode, b"abc")


def test_a_flood_of_faults_costs_two_lines_a_period() -> None:
    reports: list[PeerFault] = []
    clock = Clock()
    faults = FaultReports(reports.append, clock)
    for _ in range(6000):
        faults.add(PeerFault("T", "peer", "garbage"))
    assert [each.count for each in reports] == [1]
    clock.now += REPORT_PERIOD_NS
    faults.turn()
    assert [each.count for each in reports] == [1, 5999]
    faults.turn()
    faults.add(PeerFault("T", "peer", "garbage"))
    assert [each.count for each in reports] == [1, 5999, 1], "after a quiet period the next one is reported at once"


def test_a_peer_with_a_new_guid_for_each_message_costs_no_more_lines() -> None:
    reports: list[PeerFault] = []
    clock = Clock()
    faults = FaultReports(reports.append, clock)
    for number in range(1000):
        faults.add(PeerFault("T", f"peer {number}", "garbage"))
    assert len(reports) == KINDS_MAX
    faults.finish()
    assert len(reports) == KINDS_MAX + 1
    assert (reports[-1].peer, reports[-1].count) == (UNKNOWN_PEER, 1000 - KINDS_MAX)


def test_the_counts_of_all_reports_add_up() -> None:
    reports: list[PeerFault] = []
    clock = Clock()
    faults = FaultReports(reports.append, clock)
    for number in range(500):
        clock.now += REPORT_PERIOD_NS // 100
        faults.add(PeerFault("T", f"peer {number % 30}", "garbage", kind=list(FaultKind)[number % 3]))
    faults.finish()
    assert sum(each.count for each in reports) == 500


def test_a_program_without_a_service_log_gets_faults_through_logging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "qsctl.transport"):
        log_fault(PeerFault("Orders\x1b[2J", "ab" * 16, "a name \u202e\x9b1m", 3))
    (record,) = caplog.records
    text = record.getMessage()
    assert text.isprintable()
    assert text.startswith(f"malformed_messages: count=3 peer={'ab' * 16} source='Orders\\x1b[2J' reason=")
