"""The raw form of commands, read and refused."""

from __future__ import annotations

import pytest

from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    FlushQueue,
    GetConfiguration,
    GetData,
    GetMessages,
    GetStatus,
    Shutdown,
    UpdateQueue,
)
from qsctl.core.admin.request import body_of_xml, command_of, xml_of_body
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import QsctlError, Refused, UsageError
from qsctl.resource import parse_resource

P = "/domain_participant/P"
S = f"{P}/shared_subscriber/S"
Q = f"{S}/shared_reader_queue/Q"
D = f"{S}/dead_letter_shared_reader_queue/D"


def read(action: str, resource: str, body: str = "") -> Command:
    return command_of(
        action,
        resource,
        body,
        read_queue=lambda xml: SharedReaderQueueSettings(xml, "T"),
        read_subscriber=SharedSubscriberSettings,
    )


@pytest.mark.parametrize(
    ("action", "resource", "body", "command"),
    [
        (
            "CREATE",
            S,
            'str://"<shared_reader_queue name="Q"/>"',
            CreateQueue(parse_resource(S), SharedReaderQueueSettings('<shared_reader_queue name="Q"/>', "T")),
        ),
        (
            "create",
            P,
            "<shared_subscriber/>",
            CreateSubscriber(parse_resource(P), SharedSubscriberSettings("<shared_subscriber/>")),
        ),
        ("DELETE", Q, "", DeleteQueue(parse_resource(Q))),
        ("DELETE", D, " ", DeleteQueue(parse_resource(D))),
        ("DELETE", S, "", DeleteSubscriber(parse_resource(S))),
        ("DELETE", Q, " only_if_empty ", DeleteQueue(parse_resource(Q), only_if_empty=True)),
        ("DELETE", S, "only_if_empty", DeleteSubscriber(parse_resource(S), only_if_empty=True)),
        ("UPDATE", Q, "<queue/>", UpdateQueue(parse_resource(Q), SharedReaderQueueSettings("<queue/>", "T"))),
        ("GET", "/configuration", "", GetConfiguration()),
        ("GET", "/configuration", "status", GetStatus(None)),
        ("DELETE", f"{Q}/message", "1 = 1", FlushQueue(parse_resource(f"{Q}/message"), "1 = 1")),
        ("GET", f"{Q}/status", "", GetStatus(parse_resource(f"{Q}/status"))),
        ("GET", "/status", "", GetStatus(parse_resource("/status"))),
        ("GET", "/data", "", GetData(parse_resource("/data"))),
        ("GET", f"{Q}/data", "", GetData(parse_resource(f"{Q}/data"))),
        ("GET", f"{D}/message", "", GetMessages(parse_resource(f"{D}/message"))),
        ("SHUTDOWN", "", "", Shutdown()),
        ("SHUTDOWN", "/", "", Shutdown()),
    ],
)
def test_a_request_means(action: str, resource: str, body: str, command: Command) -> None:
    assert read(action, resource, body) == command


@pytest.mark.parametrize(
    ("action", "resource", "body", "kind", "message"),
    [
        ("MOVE", Q, "", UsageError, "'MOVE' is not an action"),
        ("UPDATE", Q, "", UsageError, "UPDATE needs an XML snippet"),
        ("UPDATE", S, "<x/>", Refused, "UPDATE does not exist for"),
        ("GET", "/configuration", "x", UsageError, "GET accepts no body here"),
        ("CREATE", Q, "<x/>", Refused, "CREATE does not exist for"),
        ("CREATE", S, "", UsageError, "CREATE needs an XML snippet"),
        ("CREATE", S, "file:///etc/passwd", Refused, "the body is 'file:///etc/passwd'"),
        ("CREATE", S, "http://example.com/q.xml", Refused, "the body is 'http"),
        ("CREATE", S, 'str://"nothing"', UsageError, "CREATE needs an XML snippet"),
        ("DELETE", P, "", Refused, "DELETE does not exist for"),
        ("DELETE", f"{Q}/status", "", Refused, "DELETE does not exist for"),
        ("DELETE", Q, "1 = 1", UsageError, "the body of this DELETE is '1 = 1'"),
        ("GET", Q, "", Refused, "GET does not exist for"),
        ("GET", f"{Q}/status", "x", UsageError, "GET accepts no body here"),
        ("GET", "Q", "", UsageError, "'Q' is not a resource identifier"),
        ("SHUTDOWN", Q, "", UsageError, "SHUTDOWN accepts no resource"),
        ("SHUTDOWN", "", "now", UsageError, "SHUTDOWN accepts no body here"),
    ],
)
def test_a_wrong_request_is_refused(
    action: str, resource: str, body: str, kind: type[QsctlError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        read(action, resource, body)
    assert message in caught.value.message
    assert caught.value.remedy


def test_xml_may_hold_the_text_of_other_urls() -> None:
    xml = '<q a="http://www.w3.org/2001/XMLSchema-instance"/>'
    assert xml_of_body(xml) == xml
    assert xml_of_body(f"str://{xml}") == xml
    assert xml_of_body(f'  str://" {xml} "\n') == xml


@pytest.mark.parametrize(
    ("body", "xml"),
    [
        (r'str://"<q name=\"Q\" session=\"s\"><t>T</t></q>"', '<q name="Q" session="s"><t>T</t></q>'),
        (r'str://"<q name=\"Q\">\n  <t/>\n</q>"', '<q name="Q">\n  <t/>\n</q>'),
        (r"str://<q name=\"Q\"/>", '<q name="Q"/>'),
        (r'str://"<q a="\\d"/>"', r'<q a="\\d"/>'),
        (r'<q a="\\d"/>', r'<q a="\\d"/>'),
    ],
)
def test_a_body_is_read_as_it_is_printed_in_section_5_4_1(body: str, xml: str) -> None:
    assert xml_of_body(body) == xml


@pytest.mark.parametrize(
    "words", ["", r"\\server\share", r"a=\"b\"", r"=\'x\\y\'", '=\\"', r"say \"go\"; \n", '=\n\\"', "é\\"]
)
def test_a_body_that_is_sent_is_read_as_it_was_written(words: str) -> None:
    xml = f'<q name="Q"><value>{words}</value></q>'
    assert xml_of_body(body_of_xml(xml)) == xml
