"""What the tools of RabbitMQ, NATS, SQS and Kafka list, read; and what of it cannot be read."""

from __future__ import annotations

import json

import pytest

from qsctl.declared.problems import InvalidFile
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.listed import read
from qsctl.sim.brokers.listed._rabbitmq_policies import read_pattern
from qsctl.sim.brokers.listed.model import ForeignQueue, joined
from qsctl.sim.brokers.listed.read import read_queues
from tests.sim.foreign import listed_files as files


def queues(text: str) -> dict[str, ForeignQueue]:
    return {each.name: each for each in read_queues(text.encode(), "f").queues}


def test_a_rabbitmq_listing_has_the_queues_with_their_arguments() -> None:
    found = read_queues(files.RABBITMQ_TEXT.encode(), "f")
    orders, billing = found.queues
    assert (orders.name, orders.broker, orders.consumers) == ("orders", BrokerKind.RABBITMQ_CLASSIC, 4)
    assert (orders.waiting, orders.outstanding) == (120, 30)
    assert orders.settings == {"max-length": "5000", "overflow": "reject-publish"}
    assert billing.broker is BrokerKind.RABBITMQ_QUORUM
    assert billing.settings == {"delivery-limit": "5"}
    (note,) = found.notes
    assert note == "f:6: a stream is not a queue: the row is passed over (audit)"


@pytest.mark.parametrize("text", ["Listing queues ...\norders\t12\nbilling\t0\n...done.\n", "orders\t12\nbilling\t0\n"])
def test_a_rabbitmq_listing_without_a_heading_has_names_and_messages(text: str) -> None:
    assert {name: each.waiting for name, each in queues(text).items()} == {"orders": 12, "billing": 0}


def test_of_a_limit_in_arguments_and_policy_the_lower_one_counts() -> None:
    found = queues(files.RABBITMQ_JSON)
    orders = found["orders"]
    assert orders.settings == {"max-length": "1000", "message-ttl": "60s", "overflow": "reject-publish"}
    assert (orders.waiting, orders.outstanding, orders.size_bytes) == (120, 30, 2048)
    assert (orders.arrivals_per_s, orders.arrived) == (25.5, 90_000)
    assert found["billing"].settings == {"delivery-limit": "7"}
    assert found["billing"].broker is BrokerKind.RABBITMQ_QUORUM


def test_of_definitions_the_policy_of_highest_priority_that_matches_holds() -> None:
    found = read_queues(files.DEFINITIONS.encode(), "f")
    eu, us, other = found.queues
    assert eu.settings == {"max-length": "8000", "delivery-limit": "3", "dead-letter-exchange": "dead"}
    assert us.settings == {"max-length": "100"}
    assert other.settings == {}, "a policy of another virtual host"
    (note,) = found.notes
    assert "not applied: its pattern is not understood (hard; found '^(a+)+$')" in note


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", ["", "a"], []),
        ("^eu\\.", ["eu.orders"], ["my.eu.orders", "euorders"]),
        ("orders$", ["orders", "eu.orders"], ["orders.eu"]),
        ("^a$", ["a"], ["aa", "ba"]),
        ("^(a|b.*)$", ["a", "b", "bc"], ["ac", "c"]),
        ("^a.*b.+c$", ["abxc", "axxbxxc"], ["abc", "abxcd"]),
        ("a.c", ["abc", "xabcx"], ["ac"]),
        ("^amq\\.", ["amq.gen"], ["amqp"]),
        ("^.*$", ["", "x"], []),
        ("^ab.*bc$", ["abbc", "ab-bc"], ["abc"]),
    ],
)
def test_a_policy_s_pattern_matches_as_a_regular_expression_does(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    import re

    read = read_pattern(pattern)
    assert read is not None
    for name in [*matching, *others]:
        assert read.is_in(name) == (name in matching) == (re.search(pattern, name) is not None), name


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "[ab]", "a{2}", "a?", "\\d", "(a)(b)", "a(b|c)d", "a\\", "x" * 2_000, "*"]
)
def test_a_pattern_with_more_than_that_is_not_understood(pattern: str) -> None:
    assert read_pattern(pattern) is None


@pytest.mark.timeout(60)  # a search that tries again from each place would take longer than the universe is old
def test_a_hostile_pattern_is_matched_without_trying_again() -> None:
    read = read_pattern("^" + ".*a" * 300 + "$")
    assert read is not None
    assert not read.is_in("a" * 10_000 + "b")


def test_a_consumer_has_the_limits_of_its_stream() -> None:
    (consumer,) = joined([read_queues(each.encode(), "f") for each in (files.CONSUMER, files.STREAM)]).queues
    assert (consumer.name, consumer.stream, consumer.broker) == ("billing", "ORDERS", BrokerKind.JETSTREAM)
    assert consumer.settings == {
        "ack_wait": "30s", "max_deliver": "unlimited", "max_ack_pending": "1000", "backoff": "1s, 5s",
        "ack_policy": "explicit", "max_msgs": "100000", "max_bytes": "unlimited", "max_age": "86400s",
        "discard": "new", "retention": "workqueue",
    }  # fmt: skip
    assert (consumer.waiting, consumer.outstanding, consumer.size_bytes) == (340, 12, 2000)
    assert consumer.arrivals_per_s == 3.0


def test_a_stream_alone_is_a_queue() -> None:
    (stream,) = joined([read_queues(files.STREAM.encode(), "f")]).queues
    assert (stream.name, stream.waiting, stream.is_stream) == ("ORDERS", 352, True)


def test_two_looks_at_a_stream_have_the_rate_between_them() -> None:
    later = json.loads(files.STREAM)
    later["state"]["last_seq"] += 600
    later["ts"] = "2026-03-01T12:01:00+00:00"
    parts = [read_queues(each.encode(), "f") for each in (files.STREAM, json.dumps(later))]
    assert joined(parts).queues[0].arrivals_per_s == 10.0
    assert joined(parts, seconds=6).queues[0].arrivals_per_s == 100.0, "the caller's interval counts"


def test_sqs_attributes_have_limits_and_depths() -> None:
    found = queues(files.SQS)["orders"]
    assert found.broker is BrokerKind.SQS
    assert found.settings == {
        "VisibilityTimeout": "45s", "MessageRetentionPeriod": "345600s", "DelaySeconds": "0s",
        "ReceiveMessageWaitTimeSeconds": "20s", "maxReceiveCount": "4",
    }  # fmt: skip
    assert (found.waiting, found.outstanding) == (203, 14)


@pytest.mark.parametrize("change", [{"FifoQueue": "true"}, {"QueueArn": "arn:aws:sqs:eu-west-1:1:orders.fifo"}])
def test_a_fifo_queue_of_sqs_has_its_own_preset(change: dict[str, str]) -> None:
    attributes = {**json.loads(files.SQS)["Attributes"], **change}
    (found,) = read_queues(json.dumps({"Attributes": attributes}).encode(), "f").queues
    assert found.broker is BrokerKind.SQS_FIFO


def test_a_kafka_group_has_a_queue_a_topic_with_the_lag_of_each_partition() -> None:
    orders, refunds = read_queues(files.KAFKA.encode(), "f").queues
    assert (orders.name, orders.broker, orders.consumers) == ("billing:orders", BrokerKind.KAFKA_GROUP, 2)
    assert orders.partitions == (60, 0, 40), "where nothing was committed, all of the log waits"
    assert (orders.waiting, orders.arrived) == (100, 290)
    assert (refunds.consumers, refunds.partitions) == (0, (0,))


def test_two_descriptions_of_a_kafka_group_have_the_rate_between_them() -> None:
    later = files.KAFKA.replace("160             60", "460             360")
    parts = [read_queues(each.encode(), "f") for each in (files.KAFKA, later)]
    assert [each.arrivals_per_s for each in joined(parts, seconds=60).queues] == [5.0, 0.0]
    assert joined(parts).queues[0].arrivals_per_s is None, "the files have no time"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("hello\n", "no queue is listed in it"),
        ('[{"name": "a", ', "the document cannot be read: it is cut, or no JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a": 1}', "the object is of another kind"),
        ("{}", "the object is of another kind"),
    ],
)
def test_a_file_without_a_queue_is_one_error_that_lists_the_known_forms(text: str, message: str) -> None:
    with pytest.raises(InvalidFile) as error:
        read_queues(text.encode(), "f")
    assert message in error.value.message


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "LIMIT_BYTES", 10)
    with pytest.raises(InvalidFile, match="too large"):
        read_queues(files.SQS.encode(), "f")


@pytest.mark.parametrize(
    ("found", "note"),
    [
        ({"VisibilityTimeout": "soon"}, "Attributes/VisibilityTimeout; found 'soon'"),
        ({"VisibilityTimeout": -1}, "found -1"),
        ({"VisibilityTimeout": True}, "found True"),
        ({"VisibilityTimeout": 1e300}, "found 1e+300"),
        ({"VisibilityTimeout": [30]}, "found [30]"),
        ({"RedrivePolicy": "["}, "the redrive policy is passed over"),
        ({"RedrivePolicy": '{"maxReceiveCount": 0}'}, "RedrivePolicy/maxReceiveCount; found 0"),
    ],
)
def test_a_value_that_cannot_be_read_costs_that_value(found: dict[str, object], note: str) -> None:
    attributes = {**json.loads(files.SQS)["Attributes"], **found}
    listed = read_queues(json.dumps({"Attributes": attributes}).encode(), "f")
    assert len(listed.queues) == 1
    assert note in listed.notes[0]
    assert listed.queues[0].settings["MessageRetentionPeriod"] == "345600s"


def test_several_documents_and_what_a_terminal_wrote_around_them_are_read() -> None:
    text = (
        f"$ nats consumer info ORDERS billing --json\n{files.CONSUMER}\n$ nats stream info\n{files.STREAM}{files.SQS}"
    )
    assert [each.name for each in read_queues(text.encode(), "f").queues] == ["billing", "ORDERS", "orders"]


def test_a_file_of_powershell_is_read() -> None:
    assert queues(files.RABBITMQ_TEXT) == {
        each.name: each for each in read_queues(files.RABBITMQ_TEXT.encode("utf-16"), "f").queues
    }
