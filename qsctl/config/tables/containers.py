"""Tables of what holds queues: domain participants, shared subscribers and sessions [QS Tables 3.10 to 3.13]."""

from __future__ import annotations

from qsctl.config.form import Element, QosElements, Repeated, Setting, Shape
from qsctl.config.tables.queue import DEAD_LETTER_QUEUE, QUEUE
from qsctl.config.tables.shared import SAMPLE_BUFFER, domain, thread
from qsctl.core.queue.settings import SessionSettings
from qsctl.core.settings import DomainParticipantSettings, SharedSubscriberSettings
from qsctl.declared.values import DURATION, text

SESSION = Element("session", (
    Setting("name", "name", text("name"), "Table 3.13", "Name that queues refer to.", Shape.ATTRIBUTE),
    Setting("dequeue_period", "dequeue_period_ns", DURATION, "Table 3.13",
            "Time after which samples that could not be sent are tried again.", Shape.DURATION, also_in="thread"),
    thread("Table 3.13"),
), SessionSettings)  # fmt: skip

SUBSCRIBER = Element("shared_subscriber", (
    Setting("name", "name", text("name"), "Table 3.11", "Name; consumers subscribe to TOPIC@NAME.", Shape.ATTRIBUTE),
    Repeated("sessions", (SESSION,), inside="session_settings"),
    QosElements(("publisher_qos", "subscriber_qos")),
    Repeated("queues", (QUEUE, DEAD_LETTER_QUEUE)),
), SharedSubscriberSettings)  # fmt: skip

PARTICIPANT = Element("domain_participant", (
    Setting("name", "name", text("name"), "Table 3.10", "Name in resource identifiers.", Shape.ATTRIBUTE),
    domain("that producers and consumers use"),
    SAMPLE_BUFFER,
    QosElements(("participant_qos",)),
    Repeated("subscribers", (SUBSCRIBER,)),
), DomainParticipantSettings)  # fmt: skip
