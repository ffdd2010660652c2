"""A service with a process for each session."""

from __future__ import annotations

import re
from pathlib import Path

from qsctl.client import QueueConsumer, QueueProducer
from tests.dds.service_process import ServiceProcess

QUEUES = """
<dead_letter_shared_reader_queue name="Dead" session="s"><topic_name>Dead</topic_name></dead_letter_shared_reader_queue>
<shared_reader_queue name="Orders" session="orders" dead_letter_queue="Dead">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><persistence><kind>PERSISTENT</kind></persistence></queue_qos>
</shared_reader_queue>
<shared_reader_queue name="Quotes" session="quotes">
  <topic_name>Quotes</topic_name><type_name>DDS::Octets</type_name><reply_type>DDS::Octets</reply_type>
</shared_reader_queue>
"""

SESSIONS = '<session name="orders"/><session name="quotes"/>'
KEEPS_STATE = "<service_qos><persistence><kind>PERSISTENT</kind></persistence></service_qos>"


class SeveralSessions(ServiceProcess):
    """The configuration above: Orders and its dead letters in one process, Quotes with its replies in another."""

    def __init__(self, directory: Path, domain: int, *arguments: str) -> None:
        super().__init__(directory, domain, *arguments, queues=QUEUES, service=KEEPS_STATE)

    def start(self) -> None:
        text = self.file.read_text(encoding="utf-8")
        if SESSIONS not in text:
            self.file.write_text(text.replace('<session name="s"/>', f'<session name="s"/>{SESSIONS}'))
        super().start()

    def processes(self) -> dict[str, int]:
        found = re.findall(r"'started'.*processes=\{(.*?)\}", self.log.read_text())[-1]
        return {name: int(pid) for name, pid in re.findall(r"'([^']+)': (\d+)", found)}


def write(domain: int, topic: str, *payloads: bytes) -> None:
    with QueueProducer(topic, domain) as producer:
        producer.wait_for_queue()
        for payload in payloads:
            producer.write(payload)
        assert producer.wait_for_acknowledgments() == 0


def take(domain: int, queue_name: str, count: int) -> list[bytes]:
    with QueueConsumer(queue_name, "S", domain) as consumer:
        consumer.wait_for_queue()
        samples = consumer.receive(count)
        consumer.acknowledge_all()
        return [sample.value for sample in samples]
