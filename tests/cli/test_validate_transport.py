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


@pytest.mark.parametrize("file", ["/nowhere.xml", 'str://"<dds/>"'])
def test_what_cannot_be_read_is_somebody_elses_problem(file: str) -> None:
    assert transport_problems(file, None, {}, default_files=False) == []
