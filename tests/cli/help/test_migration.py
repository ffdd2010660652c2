"""The checklist of a move from RTI Queuing Service: what is the same, what differs, and what is not there."""

from pathlib import Path
from typing import Any

import pytest

from qsctl.shipped import shipped
from tests.cli.shell import Shell

PROFILES = """<dds><qos_library name="L"><qos_profile name="P">
<datawriter_qos>
  <reliability><kind>RELIABLE_RELIABILITY_QOS</kind>
    <acknowledgment_kind>APPLICATION_EXPLICIT_ACKNOWLEDGMENT_MODE</acknowledgment_kind></reliability>
  <history><kind>KEEP_LAST_HISTORY_QOS</kind></history>
  <resource_limits><max_samples>5</max_samples></resource_limits>
</datawriter_qos>
<datareader_qos><property><value><element>
  <name>dds.data_reader.shared_subscriber_name</name><value>S</value><propagate>true</propagate>
</element></value></property></datareader_qos>
</qos_profile></qos_library></dds>"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def steps(tmp_path: Path, shell: Shell) -> dict[str, Any]:
    profiles = tmp_path / "profiles.xml"
    profiles.write_text(PROFILES, encoding="utf-8")
    file = shipped("fixtures/config/vendor/orders.xml")
    done = shell("doctor", "--migrate", str(file), "--app", str(profiles), "-o", "json")
    assert done.status == 0, done.err
    found: dict[str, Any] = {}
    for each in done.document:
        found.setdefault(each["setting"], each)
    return found


def test_each_policy_of_an_application_is_judged(steps: dict[str, Any]) -> None:
    writer = "P: datawriter_qos"
    verdicts = {
        "reliability/kind": "same",
        "reliability/acknowledgment_kind": "not there",
        "history/kind": "different",
        "resource_limits/max_samples": "same",
    }
    assert {name: steps[f"{writer}/{name}"]["here"] for name in verdicts} == verdicts
    assert steps[f"{writer}/history/kind"]["place"].endswith(":5")
    assert "KEEP_ALL" in steps[f"{writer}/history/kind"]["to_do"]
    subscriber = steps["P: datareader_qos/property/value/element/name"]
    assert (subscriber["here"], "row 6" in subscriber["to_do"]) == ("not there", True)


def test_each_setting_of_the_service_is_listed(steps: dict[str, Any]) -> None:
    here = {each["here"] for each in steps.values()}
    assert here == {"same", "different", "not there"}
    assert any("two instances survive" in each["to_do"] for each in steps.values())


def test_profiles_alone_and_wrong_files_are_refused(tmp_path: Path, shell: Shell) -> None:
    assert shell("doctor", "--app", "profiles.xml").status == 2
    wrong = tmp_path / "wrong.xml"
    wrong.write_text("<dds><queuing_service/></dds>")
    assert shell("doctor", "--migrate", str(wrong)).status == 1
    assert shell("doctor", "--migrate", str(tmp_path / "none.xml")).status == 4
