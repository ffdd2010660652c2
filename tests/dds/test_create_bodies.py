"""Bodies of CREATE over DDS: read by the service, as printed in section 5.4.1, and refused without a trace."""

# ruff: noqa: E501

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from qsctl.client.administration import Administration
from qsctl.client.desired.execution import live_configuration
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.settings import queues_by_name
from qsctl.instant import SECOND_NS
from qsctl.resource import parse_resource
from tests.dds.service_process import ServiceProcess, StartService
from tests.processes import run

SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
PROFILES = (
    '<dds><qos_library name="L"><qos_profile name="P"><datareader_qos><deadline><period><sec>9</sec></period></deadline>'
    "</datareader_qos></qos_profile></qos_library></dds>"
)
PRINTED = (
    r'str://"<shared_reader_queue name=\"Printed\" session=\"s\">\n  <topic_name>Printed</topic_name>'
    r"<type_name>DDS::String</type_name>"
    r'<datareader_qos base_name=\"L::P\"/></shared_reader_queue>"'
)
QUEUE = (
    '<shared_reader_queue name="Q" session="s"><topic_name>{topic}</topic_name><type_name>DDS::String</type_name>'
    "{more}</shared_reader_queue>"
)
FILTERED = (
    "<datareader_qos><deadline><period><sec>1</sec></period></deadline><time_based_filter><minimum_separation><sec>2</sec>"
    "</minimum_separation></time_based_filter></datareader_qos>"
)


def reply_to(service: ServiceProcess, body: str) -> Reply:
    replies = Administration(service.connection(), service.name).create_from_body(SUBSCRIBER, body)
    assert replies is not None
    (answered,) = replies
    return answered.reply


def test_a_raw_create_is_read_by_the_service_with_its_own_profiles(start_service: StartService, tmp_path: Path) -> None:
    (tmp_path / "USER_QOS_PROFILES.xml").write_text(PROFILES)
    service = start_service()
    elsewhere = tmp_path / "client"
    elsewhere.mkdir()
    words = ("send", "CREATE", service.name, str(SUBSCRIBER), PRINTED, "--service", f"dds:{service.domain}")
    sent = run([sys.executable, "-m", "qsctl", *words], cwd=elsewhere)
    assert sent.returncode == 0, sent.stderr
    data = Administration(service.connection(), service.name).hosted()
    assert "Printed" in str(data)
    refused = reply_to(service, PRINTED.replace("L::P", "L::Nobody"))
    assert refused.retcode is ReturnCode.ERROR
    assert "L::Nobody" in refused.text


REFUSED = {
    QUEUE.format(topic="Q", more=FILTERED): "the deadline is shorter than the separation",
    QUEUE.format(
        topic="Q",
        more="<datareader_qos><resource_limits><max_samples>0</max_samples></resource_limits></datareader_qos>",
    ): "<resource_limits/max_samples> is out of range",
    QUEUE.format(topic="a$b", more=""): "<topic_name> has a value that is not allowed",
    QUEUE.format(topic="DCPSTopic", more=""): "the topic is used for something else",
    QUEUE.format(topic="Q", more="<reply_type>$(HOME)</reply_type>"): "variables are not expanded",
    QUEUE.format(topic="t" * 254, more=""): "too long together",
}


@pytest.mark.slow
def test_a_create_that_cannot_be_costs_its_sender_the_request(start_service: StartService) -> None:
    service = start_service()
    for body, said in REFUSED.items():
        refused = reply_to(service, body)
        assert refused.retcode is ReturnCode.ERROR
        assert said in refused.text
        assert refused.text.count("error:") == 1
    created = reply_to(service, QUEUE.format(topic="Fine", more=""))
    assert created.retcode is ReturnCode.OK, created.text


INHERITED = (
    "<monitoring><domain_id>{}</domain_id></monitoring><statistics><historical_statistics><up_time>true</up_time>"
    "</historical_statistics></statistics>"
)
ITS_OWN = (
    '<datareader_qos base_name="L::P"/><statistics><historical_statistics><up_time>false</up_time></historical_statistics>'
    "</statistics><entity_monitoring><enabled>true</enabled><status_publication_period><sec>4</sec>"
    "</status_publication_period></entity_monitoring>"
)


def test_a_queue_of_a_body_is_as_the_body_has_it_whatever_it_would_inherit(
    start_service: StartService, domain: int, tmp_path: Path
) -> None:
    (tmp_path / "USER_QOS_PROFILES.xml").write_text(PROFILES)
    service = start_service(service=INHERITED.format(domain))
    elsewhere = tmp_path / "client"
    elsewhere.mkdir()
    queue = QUEUE.format(topic="Q", more=ITS_OWN)
    (elsewhere / "queue.xml").write_text(queue)
    sessions = '<session_settings><session name="s"/></session_settings>'
    (elsewhere / "subscriber.xml").write_text(f'<shared_subscriber name="New">{sessions}{queue}</shared_subscriber>')
    for command, file in (("create-queue", "queue.xml"), ("create-subscriber", "subscriber.xml")):
        words = (command, "--file", file, "--target", service.name, "--service", f"dds:{service.domain}")
        sent = run([sys.executable, "-m", "qsctl", *words], cwd=elsewhere)
        assert sent.returncode == 0, sent.stderr
    _, configuration = live_configuration(Administration(service.connection(), service.name))
    for name in ("P/S/Q", "P/New/Q"):
        created = queues_by_name(configuration.service)[name]
        assert not created.statistics.historical.up_time
        assert created.monitoring.enabled
        assert created.monitoring.status_publication_period_ns == 4 * SECOND_NS
        assert "<sec>9</sec>" in created.qos["datareader_qos"]
    lifespan = "<queue_qos><lifespan><duration><sec>5</sec></duration></lifespan></queue_qos>"
    changed = f'str://"{QUEUE.format(topic="Q", more=ITS_OWN + lifespan)}"'
    place = ("--service", f"dds:{service.domain}")
    words = ("send", "UPDATE", service.name, f"{SUBSCRIBER}/shared_reader_queue/Q", changed, *place)
    sent = run([sys.executable, "-m", "qsctl", *words], cwd=elsewhere)
    assert sent.returncode == 0, sent.stdout + sent.stderr
    _, configuration = live_configuration(Administration(service.connection(), service.name))
    assert queues_by_name(configuration.service)["P/S/Q"].lifespan_ns == 5 * SECOND_NS
    words = ("send", "UPDATE", service.name, f"{SUBSCRIBER}/shared_reader_queue/Q/message", changed, *place)
    assert run([sys.executable, "-m", "qsctl", *words], cwd=elsewhere).returncode == 7
