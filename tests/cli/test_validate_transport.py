"""`qsctl validate` names the transport and security properties that DDS cannot meet (manual, chapter 9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.cli.validate_transport import transport_problems

CONFIGURATION = """
<dds><queuing_service name="A">
  <domain_participant name="P"><domain_id>1</domain_id>
    <participant_qos><property><value>{elements}</value></property></participant_qos>
    <shared_subscriber name="S"><session_settings><session name="s"/></session_settings></shared_subscriber>
  </domain_participant></queuing_service></dds>
"""


def problems(tmp_path: Path, **properties: str) -> list[tuple[str, str]]:
    elements = "".join(
        f"<element><name>{name.replace('__', '.')}</name><value>{value}</value></element>"
        for name, value in properties.items()
    )
    file = tmp_path / "a.xml"
    file.write_text(CONFIGURATION.format(elements=elements), encoding="utf-8")
    found = transport_problems(str(file), None, {}, default_files=False)
    return [(problem.found, problem.allowed) for problem in found]


def test_each_property_without_an_equivalent_is_named(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        dds__transport__load_plugins="dds.transport.tcp,dds.transport.tcp2",
        dds__transport__tcp__parent__classid="NDDS_TRANSPORT_CLASSID_TLSV4_WAN",
        dds__sec__auth__identity_ca="file:ca.pem",
    )
    names = [name for name, _ in found]
    assert names[0] == "dds.transport.load_plugins"
    assert {"dds.transport.tcp2", "dds.transport.tcp.parent.classid", "dds.sec.auth.identity_ca"} <= set(names)
    assert all(reason for _, reason in found)


def test_a_file_without_such_properties_has_no_such_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, some__thing="else") == []


QUEUE = """
<dds><queuing_service name="A">
  <domain_participant name="P"><domain_id>1</domain_id>
    <shared_subscriber name="S"><session_settings><session name="s"/></session_settings>
      <shared_reader_queue name="Q" session="s"><topic_name>T</topic_name><type_name>DDS::Octets</type_name>
        {qos}</shared_reader_queue>
    </shared_subscriber>
  </domain_participant></queuing_service></dds>
"""
QUEUE_PATH = "dds/queuing_service[A]/domain_participant[P]/shared_subscriber[S]/shared_reader_queue[Q]"


def problems_of_queue(tmp_path: Path, qos: str) -> list[tuple[str, str]]:
    file = tmp_path / "a.xml"
    file.write_text(QUEUE.format(qos=qos), encoding="utf-8")
    found = transport_problems(str(file), None, {}, default_files=False)
    return [(problem.path, problem.found) for problem in found]


def test_a_queues_policy_that_dds_lacks_is_named_and_one_that_it_has_is_not(tmp_path: Path) -> None:
    qos = """<datawriter_qos>
      <durability><kind>TRANSIENT_LOCAL_DURABILITY_QOS</kind></durability>
      <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
      <protocol><rtps_reliable_writer><max_send_window_size>40</max_send_window_size></rtps_reliable_writer></protocol>
    </datawriter_qos>"""
    assert problems_of_queue(tmp_path, qos) == [(f"{QUEUE_PATH}/datawriter_qos/protocol", "<protocol>")]


def test_a_queue_without_qos_has_no_such_problem(tmp_path: Path) -> None:
    assert problems_of_queue(tmp_path, "") == []


@pytest.mark.parametrize(
    "policy",
    [
        "<transport_priority><value>0x10</value></transport_priority>",
        "<durability/>",
        "<liveliness/>",
        "<ownership/>",
        "<destination_order/>",
    ],
)
def test_what_the_schema_lets_pass_the_endpoints_can_be_opened_with(tmp_path: Path, policy: str) -> None:
    assert problems_of_queue(tmp_path, f"<datareader_qos>{policy}</datareader_qos>") == []


@pytest.mark.parametrize("file", ["/nowhere.xml", 'str://"<dds/>"'])
def test_what_cannot_be_read_is_somebody_elses_problem(file: str) -> None:
    assert transport_problems(file, None, {}, default_files=False) == []
