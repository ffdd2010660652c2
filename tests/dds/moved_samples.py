"""Samples that commands move between queues of a service."""

from __future__ import annotations

from typing import Any

from qsctl.client.administration import Administration
from qsctl.client.transfer import Transfer
from qsctl.core.admin.reply import MessageData
from qsctl.resource import ResourceIdentifier, parse_resource
from tests.campaigns import trials

KILLS = trials("QSCTL_TEST_MOVE_KILLS", 0, 50)
_S = "/domain_participant/P/shared_subscriber/S"
ORDERS = parse_resource(f"{_S}/shared_reader_queue/Orders")
DEAD = parse_resource(f"{_S}/dead_letter_shared_reader_queue/Dead")
_PERSISTENT = "<queue_qos><persistence><kind>PERSISTENT</kind></persistence></queue_qos>"

QUEUES = f"""
<dead_letter_shared_reader_queue name="Dead" session="s"><topic_name>Dead</topic_name>{_PERSISTENT}
</dead_letter_shared_reader_queue>
<shared_reader_queue name="Orders" session="s" dead_letter_queue="Dead">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>{_PERSISTENT}
</shared_reader_queue>
<shared_reader_queue name="Quotes" session="quotes">
  <topic_name>Quotes</topic_name><type_name>DDS::Octets</type_name>{_PERSISTENT}
</shared_reader_queue>
"""

SESSIONS = '<session name="s"/><session name="quotes"/>'


def transfer(
    administration: Administration, source: ResourceIdentifier, target: ResourceIdentifier, **options: Any
) -> Transfer:
    def target_of(_sample: MessageData) -> ResourceIdentifier:
        return target

    moved = Transfer(administration, source, target_of, **options)
    for _ in moved.steps():
        pass
    return moved


def held(administration: Administration, queue: ResourceIdentifier) -> list[MessageData]:
    return [each.body for each in administration.messages(queue)]
