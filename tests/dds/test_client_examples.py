"""The examples of `qsctl.client` and `qsctl.client.aio`, run against a service."""

from __future__ import annotations

import pytest

from tests.dds.service_process import StartService
from tests.examples import run

QUEUE = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
</shared_reader_queue>
"""


@pytest.mark.slow
def test_programs_and_tasks_write_and_receive_as_shown(start_service: StartService, domain: int) -> None:
    start_service(queues=QUEUE, subscriber="Billing")
    run("qsctl.client", domain_id=domain)
    run("qsctl.client.aio", domain_id=domain)
