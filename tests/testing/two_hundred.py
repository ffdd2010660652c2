"""Two hundred tests of an application in two forms, each with a queue, a producer, a consumer and a time-out.

Issue 55 states their bound: below ten seconds a form, as a whole process.
"""

from __future__ import annotations

REDELIVERED = """
import pytest
from qsctl.client import QueueConsumer, QueueProducer

@pytest.mark.qsctl_queue("Orders", max_delivery_retries=1, response_timeout="30s")
@pytest.mark.parametrize("number", range(200))
def test_it(qsctl_service, number):
    with QueueProducer("Orders", qsctl_service.domain_id) as producer:
        producer.write(b"%d" % number)
        assert producer.wait_for_acknowledgments() == 0
    with QueueConsumer("Orders", "SharedSubscriber", qsctl_service.domain_id) as consumer:
        (sample,) = consumer.receive(1)
        qsctl_service.advance("30s")
        assert sample.value == b"%d" % number
        (again,) = consumer.receive(1)
        assert again.redelivered
        again.acknowledge()
    assert qsctl_service.samples("Orders") == []
"""
"""One client after the other; the sample comes again after a time-out."""

DEAD_LETTERED = """
import pytest
from qsctl.client import QueueConsumer, QueueProducer

@pytest.mark.qsctl_queue("Orders", max_delivery_retries=2, response_timeout="30s")
@pytest.mark.parametrize("number", range(200))
def test_it(qsctl_service, number):
    domain_id = qsctl_service.domain_id
    with QueueProducer("Orders", domain_id) as producer, QueueConsumer("Orders", "SharedSubscriber", domain_id) as mute:
        producer.write(b"hopeless")
        producer.wait_for_acknowledgments()
        mute.receive(1)
        qsctl_service.advance("89s")
        assert qsctl_service.payloads("Orders") == [b"hopeless"]
        qsctl_service.advance("1s")
        (dead,) = qsctl_service.dead_letters("Orders")
        assert (dead.payload, dead.reason) == (b"hopeless", "MAX_RETRIES")
        assert qsctl_service.status("Orders")["timeout_message_count"] == [3]
"""
"""Two clients at a time, as on the page `testing`; the sample is dead after three time-outs."""

FORMS = {"redelivered": REDELIVERED, "dead-lettered": DEAD_LETTERED}

EMPTY = """
import pytest

@pytest.mark.parametrize("number", range(200))
def test_it(number):
    assert number < 200
"""
"""The cost of pytest itself."""
