"""Short names of queues, subscribers and participants."""

from __future__ import annotations

import pytest

from qsctl.core.admin.reply import QueueData, ServiceData
from qsctl.core.admin.resolve import resolve_participant, resolve_queue, resolve_subscriber
from qsctl.errors import NotFound, UsageError


def queue(path: str, topic: str, kind: str = "shared_reader_queue") -> QueueData:
    participant, subscriber, name = path.split("/")
    resource = f"/domain_participant/{participant}/shared_subscriber/{subscriber}/{kind}/{name}"
    return QueueData(path, topic, resource)


DATA = ServiceData(
    (
        queue("P/S/Orders", "OrderTopic"),
        queue("P/S/Bills", "BillTopic"),
        queue("P/T/Orders", "OrderTopic"),
        queue("R/T/Bills", "BillTopic"),
        queue("P/S/Dead", "Dead", "dead_letter_shared_reader_queue"),
    ),
    ("/domain_participant/P", "/domain_participant/R"),
    (
        "/domain_participant/P/shared_subscriber/S",
        "/domain_participant/P/shared_subscriber/T",
        "/domain_participant/R/shared_subscriber/T",
    ),
)
NOTHING = ServiceData(())


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("S/Orders", "/domain_participant/P/shared_subscriber/S/shared_reader_queue/Orders"),
        ("R/T/Bills", "/domain_participant/R/shared_subscriber/T/shared_reader_queue/Bills"),
        ("OrderTopic@S", "/domain_participant/P/shared_subscriber/S/shared_reader_queue/Orders"),
        ("Dead", "/domain_participant/P/shared_subscriber/S/dead_letter_shared_reader_queue/Dead"),
        (
            "/domain_participant/X/shared_subscriber/Y/shared_reader_queue/Z/status",
            "/domain_participant/X/shared_subscriber/Y/shared_reader_queue/Z",
        ),
    ],
)
def test_a_queue_is_named_by(text: str, path: str) -> None:
    assert str(resolve_queue(text, DATA)) == path


@pytest.mark.parametrize(
    ("text", "candidates"),
    [("Orders", "P/S/Orders, P/T/Orders"), ("T/Bills", ""), ("BillTopic@T", ""), ("OrderTopic@T", "")],
)
def test_a_name_that_fits_twice_lists_what_it_may_mean(text: str, candidates: str) -> None:
    if candidates:
        with pytest.raises(UsageError, match=f"'{text}' means several: {candidates}"):
            resolve_queue(text, DATA)
    else:
        assert resolve_queue(text, DATA).name in {"Bills", "Orders"}


def test_an_unknown_name_is_answered_with_what_is_near() -> None:
    with pytest.raises(NotFound, match="there is no queue 'Ordes'") as caught:
        resolve_queue("Ordes", DATA)
    assert "Orders" in caught.value.remedy
    with pytest.raises(NotFound) as caught:
        resolve_queue("X", NOTHING)
    assert caught.value.remedy == "There is none yet."
    with pytest.raises(NotFound) as caught:
        resolve_queue("Zzz@S", DATA)
    assert caught.value.remedy == "There is P/S/Orders, P/S/Bills, P/T/Orders, R/T/Bills, P/S/Dead."


def test_a_full_identifier_must_name_the_kind_that_is_wanted() -> None:
    with pytest.raises(UsageError, match="names no queue"):
        resolve_queue("/domain_participant/P", DATA)
    with pytest.raises(UsageError, match="names no shared subscriber"):
        resolve_subscriber("/domain_participant/P", DATA)
    with pytest.raises(UsageError, match="names no domain participant"):
        resolve_participant("/domain_participant/P/shared_subscriber/S", DATA)


def test_subscribers_and_participants_are_named_the_same_way() -> None:
    assert str(resolve_subscriber("S", DATA)) == "/domain_participant/P/shared_subscriber/S"
    assert str(resolve_subscriber("R/T", DATA)) == "/domain_participant/R/shared_subscriber/T"
    assert str(resolve_participant("R", DATA)) == "/domain_participant/R"
    with pytest.raises(UsageError, match="P/T, R/T"):
        resolve_subscriber("T", DATA)


def test_no_name_means_the_only_one() -> None:
    one = ServiceData((), ("/domain_participant/P",), ("/domain_participant/P/shared_subscriber/S",))
    assert resolve_subscriber("", one).name == "S"
    assert resolve_participant("", one).name == "P"
    with pytest.raises(UsageError, match="there are several domain participants: P, R"):
        resolve_participant("", DATA)
    with pytest.raises(NotFound, match="there is no shared subscriber"):
        resolve_subscriber("", NOTHING)
