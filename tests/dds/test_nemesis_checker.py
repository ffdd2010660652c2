"""The checker of clients' journals: each broken promise is found, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.instant import SECOND_NS
from tests.dds.nemesis.availability import Span, availability, common, joined, longest_gap_ns, waits
from tests.dds.nemesis.checker import Violation, violations
from tests.dds.nemesis.journals import (
    ACCEPTED,
    DELETED,
    REFUSED,
    Answered,
    DeletionAnswered,
    DeletionAsked,
    Event,
    Journal,
    JournalFile,
    Opened,
    Received,
    Rejected,
    Wrote,
    payload_of,
    read_journals,
    writer_of,
)


def producer(*events: Event) -> Journal:
    return Journal("p", (Opened(0, "T"), *events))


def consumer(*events: Event, name: str = "c", opened_ns: int = 0, topic: str = "T") -> Journal:
    return Journal(name, (Opened(opened_ns, topic), *events))


WRITTEN = (Wrote(10, 1), Answered(20, 1, ACCEPTED))
FIRST = Received(30, "p", 1, False)
AGAIN = Received(40, "p", 1, True)
UNANSWERED = (Wrote(10, 1),)


KEPT: dict[str, list[Journal]] = {
    "nothing": [],
    "accepted and delivered": [producer(*WRITTEN), consumer(FIRST)],
    "delivered before the answer came": [producer(Wrote(10, 1), Answered(35, 1, ACCEPTED)), consumer(FIRST)],
    "delivered again with the flag": [producer(*WRITTEN), consumer(FIRST), consumer(AGAIN, name="d")],
    "with the flag alone": [producer(*WRITTEN), consumer(AGAIN)],
    "never answered, delivered": [producer(*UNANSWERED), consumer(FIRST)],
    "never answered, not delivered": [producer(*UNANSWERED), consumer()],
    "refused and not delivered": [producer(Wrote(10, 1), Answered(20, 1, REFUSED)), consumer()],
    "rejected, and delivered without the flag": [
        producer(*WRITTEN),
        consumer(FIRST, Rejected(31, "p", 1)),
        consumer(Received(50, "p", 1, False), name="d"),
    ],
    "deleted before it was delivered": [
        producer(*WRITTEN), consumer(), Journal("o", (DeletionAsked(25, "T"), DeletionAnswered(30, "T")))
    ],
    "written while the queue was deleted": [
        producer(*WRITTEN), consumer(), Journal("o", (DeletionAsked(5, "T"), DeletionAnswered(30, "T")))
    ],
    "a deletion that was not carried out everywhere": [
        producer(*WRITTEN), consumer(), Journal("o", (DeletionAsked(5, "T"),))
    ],
    "deleted before it was answered": [
        producer(Wrote(10, 1), Answered(50, 1, DELETED)), consumer(FIRST),
        Journal("o", (DeletionAsked(35, "T"), DeletionAnswered(45, "T"))),
    ],
    "delivered to one that was there before the deletion": [
        producer(*WRITTEN), consumer(Received(60, "p", 1, False)),
        Journal("o", (DeletionAsked(25, "T"), DeletionAnswered(50, "T"))),
    ],
    "written to the next queue of the name": [
        producer(Wrote(100, 1), Answered(110, 1, ACCEPTED)), consumer(Received(120, "p", 1, False), opened_ns=90),
        Journal("o", (DeletionAsked(25, "T"), DeletionAnswered(50, "T"))),
    ],
}  # fmt: skip

BROKEN: dict[str, tuple[str, list[Journal]]] = {
    "accepted and not delivered": ("lost", [producer(*WRITTEN), consumer()]),
    "another one of its producer is delivered": (
        "lost", [producer(*WRITTEN, *(Wrote(11, 2), Answered(21, 2, ACCEPTED))), consumer(Received(30, "p", 2, False))]
    ),
    "the queue of another topic was deleted": (
        "lost", [producer(*WRITTEN), Journal("o", (DeletionAsked(25, "U"), DeletionAnswered(30, "U")))]
    ),
    "the queue was deleted before": (
        "lost", [producer(*WRITTEN), Journal("o", (DeletionAsked(1, "T"), DeletionAnswered(5, "T")))]
    ),
    "one consumer twice": ("double", [producer(*WRITTEN), consumer(FIRST, Received(40, "p", 1, False))]),
    "two consumers": ("double", [producer(*WRITTEN), consumer(FIRST), consumer(FIRST, name="d")]),
    "rejected once, delivered three times": (
        "double",
        [producer(*WRITTEN), consumer(FIRST, Rejected(31, "p", 1), Received(50, "p", 1, False)),
         consumer(FIRST, name="d")],
    ),
    "a rejected one with the flag is no excuse": (
        "double", [producer(*WRITTEN), consumer(FIRST, AGAIN, Rejected(41, "p", 1)), consumer(FIRST, name="d")]
    ),
    "refused and delivered": ("refused", [producer(Wrote(10, 1), Answered(20, 1, REFUSED)), consumer(FIRST)]),
    "never written": ("not written", [producer(), consumer(FIRST)]),
    "another content": ("not written", [producer(*WRITTEN), consumer(FIRST, Received(40, "", 0, False))]),
    "received before it is written": ("early", [producer(*WRITTEN), consumer(Received(9, "p", 1, False))]),
    "an answer to nothing": ("not asked", [producer(Answered(20, 1, ACCEPTED))]),
    "two answers": ("contradicted", [producer(*WRITTEN, Answered(25, 1, REFUSED)), consumer(FIRST)]),
    "another topic": ("elsewhere", [producer(*WRITTEN), consumer(FIRST, topic="U")]),
    "delivered after its queue was deleted": (
        "deleted",
        [producer(*WRITTEN), consumer(Received(60, "p", 1, False), opened_ns=55),
         Journal("o", (DeletionAsked(25, "T"), DeletionAnswered(50, "T")))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_kept_promises_are_no_violation(case: str) -> None:
    assert violations(KEPT[case]) == []


@pytest.mark.parametrize("case", BROKEN)
def test_broken_promise_is_found(case: str) -> None:
    kind, journals = BROKEN[case]
    writer, number = ("", 0) if case == "another content" else ("p", 1)
    assert violations(journals) == [Violation(kind, writer, number)]


def test_journals_are_read_as_they_were_written_without_a_torn_end(tmp_path: Path) -> None:
    events = (
        Opened(1, "T"), *WRITTEN, FIRST, Rejected(31, "p", 1), DeletionAsked(40, "T"), DeletionAnswered(41, "T")
    )  # fmt: skip
    journal = JournalFile(tmp_path / "p")
    journal.note(*events)
    with (tmp_path / "p").open("ab") as file:
        file.write(b'["write",50,')
    assert [*read_journals(tmp_path)] == [Journal("p", events)]


def test_payload_has_its_writer_and_number_and_a_changed_one_has_none() -> None:
    payload = payload_of("producer7", 1234)
    assert writer_of(payload) == ("producer7", 1234)
    assert {writer_of(payload[:i] + b"x" + payload[i + 1 :]) for i in range(len(payload))} == {("", 0)}
    assert {writer_of(payload[:i]) for i in range(len(payload))} == {("", 0)}


def test_times_are_joined_and_intersected() -> None:
    assert joined([(5, 6), (1, 3), (2, 4), (8, 8)]) == [(1, 4), (5, 6)]
    assert common([(1, 4), (5, 9)], [(3, 6), (8, 10)]) == [(3, 4), (5, 6), (8, 9)]


@pytest.mark.parametrize(
    ("quorum", "expected"),
    [
        ([(0, 100)], 0.7),  # the second sample waits for 30
        ([(0, 50), (90, 140)], 1.0),  # of which a quorum is there for 10 at a time
        ([(50, 90)], 0.25),
    ],
)
def test_availability_is_the_share_of_the_time_with_a_quorum_without_a_long_wait(
    quorum: list[Span], expected: float
) -> None:
    journal = producer(Wrote(10, 1), Answered(20, 1, ACCEPTED), Wrote(60, 2), Answered(90, 2, ACCEPTED), Wrote(95, 3))
    assert availability(quorum, waits([journal]), 20) == pytest.approx(expected)


def test_sample_without_an_answer_waits_until_its_producer_ends() -> None:
    assert waits([producer(Wrote(10, 1), Wrote(20, 2), Answered(90, 2, ACCEPTED))]) == [(20, 90), (10, 90)]


def test_longest_gap_is_the_longest_part_with_a_quorum_between_two_answers() -> None:
    at = [second * SECOND_NS for second in (1, 2, 6, 7)]
    journal = producer(*(event for i, each in enumerate(at) for event in (Wrote(0, i), Answered(each, i, ACCEPTED))))
    assert longest_gap_ns([journal], [(0, 4 * SECOND_NS), (5 * SECOND_NS, 9 * SECOND_NS)]) == 2 * SECOND_NS
