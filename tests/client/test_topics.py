"""Which topic a producer means."""

from __future__ import annotations

import pytest

from qsctl.client.topics import topic_named
from qsctl.core.admin.reply import QueueData, ServiceData
from qsctl.errors import NotFound, UsageError


def hosted(path: str, topic: str, *, dead: bool = False) -> QueueData:
    participant, subscriber, name = path.split("/")
    kind = "dead_letter_shared_reader_queue" if dead else "shared_reader_queue"
    resource = f"/domain_participant/{participant}/shared_subscriber/{subscriber}/{kind}/{name}"
    return QueueData(path, topic, resource, "DDS::String", dead)


DATA = ServiceData(
    (
        hosted("P/S/Fast", "Orders"),
        hosted("P/T/Slow", "Orders"),
        hosted("P/S/Bills", "Bills"),
        hosted("R/S/Bills", "Bills"),
        hosted("P/S/Dead", "Dead", dead=True),
    )
)


@pytest.mark.parametrize(
    ("text", "participant", "topic", "queues"),
    [
        ("Fast", "P", "Orders", ["P/S/Fast", "P/T/Slow"]),
        ("Orders", "P", "Orders", ["P/S/Fast", "P/T/Slow"]),
        ("Orders@T", "P", "Orders", ["P/S/Fast", "P/T/Slow"]),
        ("R/S/Bills", "R", "Bills", ["R/S/Bills"]),
        (
            "/domain_participant/P/shared_subscriber/T/shared_reader_queue/Slow",
            "P",
            "Orders",
            ["P/S/Fast", "P/T/Slow"],
        ),
    ],
)
def test_a_queue_or_a_topic_means_the_topic_with_all_its_queues(
    text: str, participant: str, topic: str, queues: list[str]
) -> None:
    found = topic_named(text, DATA)
    assert (found.participant, found.topic_name, found.type_name) == (participant, topic, "DDS::String")
    assert [queue.queue_name for queue in found.queues] == queues


def test_a_topic_in_two_participants_must_be_qualified() -> None:
    with pytest.raises(UsageError, match="'Bills' means several: P/S/Bills, R/S/Bills"):
        topic_named("Bills", DATA)


def test_only_queues_write_dead_letters() -> None:
    with pytest.raises(UsageError, match="is a dead-letter queue"):
        topic_named("Dead", DATA)


@pytest.mark.parametrize("text", ["Oders", "/domain_participant/P/shared_subscriber/S/shared_reader_queue/X"])
def test_an_unknown_name_is_not_found(text: str) -> None:
    with pytest.raises(NotFound, match="there is no queue or topic"):
        topic_named(text, DATA)
