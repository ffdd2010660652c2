"""The checklist of a move from RTI Queuing Service: what is the same, what differs, and what is not there."""

from pathlib import Path
from typing import Any

import pytest

from qsctl.cli.help._application_policies import ABSENT, DIFFERENT, SAME, judge_base, judge_policy
from qsctl.config.qos_libraries.dds_library import has_tcp
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
    subscriber = steps["P: datareader_qos/property[dds.data_reader.shared_subscriber_name]"]
    assert (subscriber["here"], subscriber["value"], "row 6" in subscriber["to_do"]) == ("not there", "S", True)


def test_each_setting_of_the_service_is_listed(steps: dict[str, Any]) -> None:
    here = {each["here"] for each in steps.values()}
    assert here == {"same", "different", "not there"}
    assert any("Two instances survive" in each["to_do"] for each in steps.values())


def test_profiles_alone_give_the_list_in_either_option(tmp_path: Path, shell: Shell) -> None:
    profiles = tmp_path / "profiles.xml"
    profiles.write_text(PROFILES, encoding="utf-8")
    lists = [shell("doctor", option, str(profiles), "-o", "json").document for option in ("--app", "--migrate")]
    assert lists[0] == lists[1]
    assert {each["here"] for each in lists[0]} == {"same", "different", "not there"}


def test_wrong_files_are_refused(tmp_path: Path, shell: Shell) -> None:
    wrong = tmp_path / "wrong.xml"
    wrong.write_text("<dds><queuing_service/></dds>")
    assert shell("doctor", "--migrate", str(wrong)).status == 1
    for option in ("--migrate", "--app"):
        assert shell("doctor", option, str(tmp_path / "none.xml")).status == 4
        (tmp_path / "empty.xml").write_text("<dds><types/></dds>")
        done = shell("doctor", option, str(tmp_path / "empty.xml"))
        assert (done.status, "no <qos_profile> in <dds>" in done.err) == (1, True), done.err
    assert shell("doctor", "--var", "DOMAIN=7").status == 2


def test_variables_are_replaced_in_both_files(tmp_path: Path, shell: Shell) -> None:
    service = shipped("fixtures/foreign/hello_world.xml").read_text(encoding="utf-8")
    assert "<domain_id>0</domain_id>" in service
    (tmp_path / "service.xml").write_text(service.replace("<domain_id>0<", "<domain_id>$(DOMAIN)<"))
    (tmp_path / "profiles.xml").write_text(PROFILES.replace("KEEP_LAST", "$(HISTORY)"))
    files = ("--migrate", str(tmp_path / "service.xml"), "--app", str(tmp_path / "profiles.xml"))
    assert shell("doctor", *files).status != 0
    assert shell("doctor", *files, "--var", "DOMAIN=7").status != 0, "the profiles have one, too"
    done = shell("doctor", *files, "--var", "DOMAIN=7", "--var", "HISTORY=KEEP_ALL", "-o", "json")
    assert done.status == 0, done.err
    values = {each["setting"]: (each["value"], each["here"]) for each in done.document}
    assert values["P: datawriter_qos/history/kind"] == ("KEEP_ALL_HISTORY_QOS", "same")
    assert ("7", "same") in [value for setting, value in values.items() if setting.endswith("/domain_id")]


def test_a_setting_below_what_is_reported_has_the_verdict_of_it(tmp_path: Path, shell: Shell) -> None:
    """The properties of a transport that is not served, and the children of a policy that is not used."""
    text = shipped("fixtures/foreign/example.xml").read_text(encoding="utf-8")
    text = text.replace(
        '<datawriter_qos base_name="Example_Library::Example_Profile"/>',
        "<datawriter_qos><protocol><push_on_write>true</push_on_write></protocol></datawriter_qos>",
    )
    file = tmp_path / "example.xml"
    file.write_text(text, encoding="utf-8")
    done = shell("doctor", "--migrate", str(file), "-o", "json")
    steps = {each["setting"]: each for each in done.document}
    port = steps["administration/participant_qos/property[dds.transport.tcp.server_bind_port]"]
    assert (port["value"], port["here"]) == ("15001", "not there" if not has_tcp() else "same")
    pushed = next(each for name, each in steps.items() if name.endswith("datawriter_qos/protocol/push_on_write"))
    assert (pushed["value"], pushed["here"]) == ("true", "different")
    base = next(each for each in done.document if each["value"] == "BuiltinQosLibExp::Generic.Participant.LargeData")
    assert base["here"] == "same"
    types = [each for name, each in steps.items() if name.endswith("/type_name")]
    assert [(each["here"], "taken from the first writer" in each["to_do"]) for each in types] == [("same", True)]


@pytest.mark.parametrize(
    ("kind", "path", "value", "here"),
    [
        ("writer", "deadline/period", "1s", SAME),
        ("reader", "deadline/period", "2s", DIFFERENT),
        ("reader", "deadline/period", "INFINITE", SAME),
        ("reader", "liveliness/kind", "DDS_AUTOMATIC_LIVELINESS_QOS", SAME),
        ("reader", "liveliness/lease_duration", "3s", DIFFERENT),
        ("reader", "time_based_filter/minimum_separation", "0s", SAME),
        ("reader", "time_based_filter/minimum_separation", "0s 5ns", DIFFERENT),
        ("reader", "durability/kind", "TRANSIENT_LOCAL_DURABILITY_QOS", DIFFERENT),
        ("reader", "representation/compression_settings/compression_ids", "MASK_ALL", SAME),
        ("writer", "representation/compression_settings/compression_ids", "ZLIB", ABSENT),
        ("writer", "batch/enable", "false", SAME),
        ("writer", "batch/enable", "true", ABSENT),
        ("writer", "multi_channel/channels/element/filter_expression", "x > 1", ABSENT),
        ("writer", "property[dds.data_writer.enable_turbo_mode]", "1", ABSENT),
        ("publisher", "partition/name/element", "A", DIFFERENT),
        ("subscriber", "presentation/access_scope", "INSTANCE_PRESENTATION_QOS", SAME),
        ("subscriber", "presentation/access_scope", "TOPIC_PRESENTATION_QOS", DIFFERENT),
        ("participant", "transport_builtin/mask", "UDPv4 | SHMEM", SAME),
        ("participant", "transport_builtin/mask", "SHMEM", DIFFERENT),
        ("participant", "transport_builtin/mask", "MASK_NONE", DIFFERENT),
        ("participant", "property[dds.transport.load_plugins]", "dds.transport.tcp", DIFFERENT),
        ("participant", "property[dds.transport.UDPv4.builtin.parent.message_size_max]", "9000", SAME),
        ("participant", "property[dds.sec.auth.identity_ca]", "file:a.pem", ABSENT),
        ("participant", "property[dds.transport.tcp.tls.verify.ca_file]", "a.pem", ABSENT),
        ("participant", "wire_protocol/rtps_well_known_ports/port_base", "7400", SAME),
        ("participant", "wire_protocol/rtps_well_known_ports/port_base", "9000", DIFFERENT),
        ("participant", "discovery/initial_peers/element", "10.0.0.1", DIFFERENT),
    ],
)
def test_what_keeps_endpoints_apart_is_different(kind: str, path: str, value: str, here: str) -> None:
    verdict, to_do = judge_policy(kind, path, value)
    assert verdict == here
    assert bool(to_do) or here == SAME


@pytest.mark.parametrize(
    ("base", "here"),
    [
        ("BuiltinQosLibExp::Generic.StrictReliable", SAME),
        ("BuiltinQosLibExp::Generic.StrictReliable.HighThroughput", ABSENT),
        ("BuiltinQosLibExp::Generic.AutoTuning", ABSENT),
        ("BuiltinQosLib::Generic.Security", ABSENT),
        ("BuiltinQosLibExp::Generic.KeepLastReliable.TransientLocal", DIFFERENT),
        ("BuiltinQosLibExp::Pattern.Streaming", DIFFERENT),
        ("Own_Library::Profile", None),
    ],
)
def test_a_base_of_the_vendor_is_judged_by_what_it_sets(base: str, here: str | None) -> None:
    verdict = judge_base(base)
    assert (verdict and verdict[0]) == here


def test_defaults_count_where_a_profile_rests_on_none_and_secrets_are_not_shown(tmp_path: Path, shell: Shell) -> None:
    profiles = tmp_path / "profiles.xml"
    profiles.write_text(
        """<dds><qos_library name="L"><qos_profile name="P"><datareader_qos>
        <resource_limits><max_samples>5</max_samples></resource_limits></datareader_qos><domain_participant_qos><property><value><element>
        <name>dds.sec.auth.password</name><value>swordfish</value></element></value></property></domain_participant_qos>
        </qos_profile><qos_profile name="Q" base_name="P">
        <datareader_qos><deadline><period><sec>2</sec></period></deadline></datareader_qos></qos_profile></qos_library></dds>""",
        encoding="utf-8",
    )
    done = shell("doctor", "--app", str(profiles), "-o", "json")
    steps = {each["setting"]: each for each in done.document}
    assert "swordfish" not in done.out
    assert steps["P: domain_participant_qos/property[dds.sec.auth.password]"]["here"] == "not there"
    assert steps["P: datareader_qos/reliability/kind"]["value"] == "BEST_EFFORT_RELIABILITY_QOS, the default"
    assert steps["P: datareader_qos/history/kind"]["here"] == "different"
    assert [name for name in steps if name.startswith("Q: ")] == ["Q: datareader_qos/deadline/period"]
    assert steps["Q: datareader_qos/deadline/period"]["value"] == "2s"
