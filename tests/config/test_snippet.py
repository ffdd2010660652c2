"""Bodies of CREATE commands: what they may hold, what they inherit, what is refused."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import pytest

from qsctl.config.snippet import read_queue_snippet, read_subscriber_snippet
from qsctl.config.tables.queue import QUEUE as QUEUE_TABLE
from qsctl.config.writer import write
from qsctl.declared.problems import InvalidFile, Severity

QUEUE = '<shared_reader_queue name="Q" session="A"><topic_name>T</topic_name><type_name>DDS::Octets</type_name>{}</shared_reader_queue>'


@pytest.fixture
def service(text: Any, load: Any) -> Any:
    inherited = (
        "<monitoring><domain_id>1</domain_id><status_publication_period><sec>8</sec></status_publication_period></monitoring>"
        "<statistics><historical_statistics><up_time>true</up_time></historical_statistics></statistics>"
        "<service_qos><shared_reader_queue_replication/></service_qos>"
    )
    return load(text(service=inherited, dds='<qos_library name="L"><qos_profile name="R"><datareader_qos><resource_limits><max_samples>3</max_samples></resource_limits></datareader_qos></qos_profile></qos_library>').xml()).configuration  # fmt: skip


def quoted(xml: str) -> str:
    return 'str://"' + xml.replace('"', '\\"') + '"'


@pytest.mark.parametrize("wrap", [str, quoted, lambda xml: 'str://"' + xml + '"'])
def test_a_queue_is_read_as_xml_or_as_a_literal(wrap: Any, service: Any) -> None:
    queue = read_queue_snippet(wrap(QUEUE.format("")), service, source="body")
    assert (queue.name, queue.topic_name, queue.session) == ("Q", "T", "A")


def test_a_created_queue_is_the_same_as_one_of_the_file(service: Any) -> None:
    assert (
        read_queue_snippet(QUEUE.format(""), service, source="body")
        == service.service.participants[0].subscribers[0].queues[0]
    )
    assert (
        read_queue_snippet(QUEUE.format(""), service.service, source="body").monitoring.status_publication_period_ns
        == 8_000_000_000
    )


def test_what_the_body_leaves_out_comes_from_the_service(service: Any) -> None:
    queue = read_queue_snippet(QUEUE.format(""), service, source="body")
    assert queue.monitoring.enabled
    assert queue.statistics.historical.up_time
    assert queue.replication.enabled


def test_profiles_of_the_service_can_be_used(service: Any) -> None:
    queue = read_queue_snippet(QUEUE.format('<datareader_qos base_name="L::R"/>'), service, source="body")
    assert queue.limits.waiting_count_max == 3


def test_a_queue_written_as_xml_is_read_back(service: Any) -> None:
    from lxml import etree

    queue = service.service.participants[0].subscribers[0].queues[0]
    assert (
        read_queue_snippet(etree.tostring(write(QUEUE_TABLE, queue), encoding="unicode"), service, source="body")
        == queue
    )


def test_a_subscriber_with_its_queues(service: Any) -> None:
    body = f'<shared_subscriber name="V"><session_settings><session name="A"/></session_settings>{QUEUE.format("")}</shared_subscriber>'
    subscriber = read_subscriber_snippet(quoted(body), service, source="body")
    assert [queue.topic_name for queue in subscriber.queues] == ["T"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "the file is empty"),
        ("hello", "this is not XML"),
        ("<dds/>", "this is not the root element"),
        (QUEUE.format("<x/>"), "<x> is not allowed"),
        (QUEUE.format("<reply_type>$(HOME)</reply_type>"), "variables are not expanded in the XML of a command"),
        ("<!DOCTYPE a>" + QUEUE.format(""), "a document type declaration"),
        ("file:///etc/passwd", "a command cannot name a file"),
        (QUEUE.format("<queue_qos><lifespan>"), "<lifespan> of line 1 is closed by"),
        (QUEUE.format("<a>" * 70 + "</a>" * 70), "elements are nested too deeply"),
        ("x" * 3_000_000, "the body is too large"),
        (QUEUE.format("<!-- " + "x" * 1_100_000 + " -->"), "the XML is too large"),
        (QUEUE.format("").replace('session="A"', ""), "<shared_reader_queue> needs the attribute session"),
        (QUEUE.format('<datareader_qos base_name="L::Q"/>'), "there is no QoS profile L::Q"),
        (QUEUE.format("<queue_qos><resource_limits><queue_allocation_settings><initial_count>2</initial_count><max_count>1</max_count></queue_allocation_settings></resource_limits></queue_qos>"), "<initial_count> is greater"),
    ],
)  # fmt: skip
def test_a_body_that_is_refused(body: str, message: str, service: Any) -> None:
    with pytest.raises(InvalidFile) as raised:
        read_queue_snippet(body, service, source="body")
    assert message in raised.value.problems[0].message


def test_references_are_looked_up_in_the_subscriber(service: Any) -> None:
    subscriber = service.service.participants[0].subscribers[0]
    body = QUEUE.format("").replace('session="A"', 'session="B" dead_letter_queue="D"')
    with pytest.raises(InvalidFile) as raised:
        read_queue_snippet(body, service, source="body", subscriber=subscriber)
    errors = [problem for problem in raised.value.problems if problem.severity is Severity.ERROR]
    assert [problem.found for problem in errors] == ['session="B"', 'dead_letter_queue="D"']


def test_a_profile_that_is_not_there_is_a_problem_of_its_body_alone(service: Any) -> None:
    """The libraries are the service's, and outlive each body that is read with them."""
    wrong = QUEUE.format('<datareader_qos base_name="L::Nobody"/>')
    for _ in range(2):
        with pytest.raises(InvalidFile) as raised:
            read_queue_snippet(wrong, service, source="body")
        errors = [problem for problem in raised.value.problems if problem.severity is Severity.ERROR]
        assert [problem.found for problem in errors] == ['base_name="L::Nobody"']
    assert read_queue_snippet(QUEUE.format(""), service, source="body").name == "Q"


def test_a_body_names_no_file(service: Any) -> None:
    with pytest.raises(InvalidFile, match="cannot name a file"):
        read_queue_snippet("file:///etc/hostname", service, source="body")
