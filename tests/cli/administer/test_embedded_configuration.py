"""What an embedded service starts with: a named file, the user's own file, or nothing but one subscriber."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from qsctl.shipped import shipped
from tests.commands import command_line

EXAMPLE = shipped("fixtures/config/manual/section_3.1.xml")


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_line(), list(arguments))


def topics(*arguments: str) -> set[str]:
    done = run("get", "data", "-o", "json", *arguments)
    assert done.exit_code == 0, done.stderr
    return {queue["topic_name"] for queue in json.loads(done.stdout)["queues"]}


def test_a_named_file_is_what_a_new_instance_starts_with() -> None:
    assert topics("--service", f"embedded:{EXAMPLE}#QueuingService_1") == {
        "DeadLetter",
        "HelloWorld",
        "HelloWorldReply",
    }


def test_an_instance_keeps_the_configuration_that_it_started_with() -> None:
    started_with = topics("--service", f"embedded:{EXAMPLE}")
    assert topics() == started_with
    assert run("shutdown").exit_code == 0
    assert topics() == set()


def test_the_file_that_init_writes_is_loaded_by_itself() -> None:
    assert run("init", "--template", "work-queue").exit_code == 0
    assert "Orders" in topics()


@pytest.mark.slow
def test_an_invalid_file_is_reported_and_nothing_is_started(empty_directory: Path) -> None:
    wrong = shipped("fixtures/config/wrong/five_faults.xml")
    done = run("get", "data", "--service", f"embedded:{wrong}")
    assert done.exit_code == 1
    assert "5 errors" in done.stderr
    assert not list(empty_directory.rglob("*.db"))
    assert topics() == set()


CONFIGURATION = """<dds><queuing_service name="{service}">
  <service_qos><persistence><kind>{kind}</kind></persistence></service_qos>
  <domain_participant name="P"><domain_id>0</domain_id>
    <shared_subscriber name="S"><session_settings><session name="s"/></session_settings>{queues}</shared_subscriber>
  </domain_participant></queuing_service></dds>
"""


def write_configuration(name: str, *queues: str, kind: str = "VOLATILE", service: str = "A") -> str:
    elements = "".join(
        f'<shared_reader_queue name="{queue}" session="s"><topic_name>{queue}</topic_name>'
        "<type_name>DDS::String</type_name></shared_reader_queue>"
        for queue in queues
    )
    Path(name).write_text(CONFIGURATION.format(service=service, kind=kind, queues=elements), encoding="utf-8")
    return f"embedded:{name}"


def test_a_missing_file_is_an_error_with_and_without_an_instance(empty_directory: Path) -> None:
    for _ in range(2):
        done = run("get", "data", "--service", "embedded:nofile.xml")
        assert done.exit_code == 4
        assert "there is no file nofile.xml" in done.stderr
        assert run("create-queue", "Orders").exit_code in (0, 5)
    assert topics() == {"Orders"}


def test_another_file_than_the_one_that_the_instance_began_with_is_refused_and_changes_nothing() -> None:
    a, b = write_configuration("a.xml", "Orders", "Bills"), write_configuration("b.xml", "Orders", "Letters")
    assert topics("--service", a) == {"Orders", "Bills"}
    done = run("get", "data", "--service", b)
    assert done.exit_code == 7
    assert "b.xml is not what the service in .qsctl, which began with a.xml, is configured with" in done.stderr
    assert "queue P/S/Letters is not here; queue P/S/Bills is here and not in it" in done.stderr
    assert "qsctl shutdown --fresh --state-dir .qsctl" in done.stderr
    assert topics("--service", a) == topics() == {"Orders", "Bills"}


def test_an_edited_file_is_refused_until_it_is_begun_with_or_applied() -> None:
    a = write_configuration("a.xml", "Orders")
    assert topics("--service", a) == {"Orders"}
    write_configuration("a.xml", "Orders", "Bills")
    assert run("get", "data", "--service", a).exit_code == 7
    assert run("create-queue", "Bills", "--type", "DDS::String").exit_code == 0
    assert topics("--service", a) == {"Orders", "Bills"}
    write_configuration("a.xml", "Letters")
    assert run("get", "data", "--service", a).exit_code == 7
    assert run("shutdown", "--fresh", "--service", a).exit_code == 0
    assert topics("--service", a) == {"Letters"}


def test_an_edit_without_meaning_and_queues_created_since_are_no_difference() -> None:
    a = write_configuration("a.xml", "Orders")
    assert topics("--service", a) == {"Orders"}
    assert run("create-queue", "Bills", "--service", a).exit_code == 0
    Path("a.xml").write_text(Path("a.xml").read_text(encoding="utf-8") + "<!-- checked -->", encoding="utf-8")
    assert topics("--service", a) == {"Orders", "Bills"}


def test_the_users_own_file_that_has_changed_is_only_warned_of() -> None:
    write_configuration("USER_QUEUING_SERVICE.xml", "Orders")
    assert topics() == {"Orders"}
    write_configuration("USER_QUEUING_SERVICE.xml", "Bills")
    done = run("get", "data", "-o", "json")
    assert done.exit_code == 0
    assert "Warning: USER_QUEUING_SERVICE.xml is not what the service in .qsctl is configured with" in done.stderr
    assert [queue["topic_name"] for queue in json.loads(done.stdout)["queues"]] == ["Orders"]


def test_a_stored_configuration_that_takes_the_place_of_the_file_is_reported_and_can_be_forgotten() -> None:
    a = write_configuration("a.xml", "Orders", kind="PERSISTENT")
    assert topics("--service", a) == {"Orders"}
    write_configuration("a.xml", "Bills", kind="PERSISTENT")
    assert run("shutdown").exit_code == 0
    for _ in range(2):
        done = run("get", "data", "--service", a)
        assert done.exit_code == 7
        assert "queue P/S/Bills is not here" in done.stderr
    assert run("shutdown", "--fresh").exit_code == 0
    assert topics("--service", a) == {"Bills"}


def test_fresh_is_for_an_embedded_service_only() -> None:
    assert run("shutdown", "--fresh", "--service", "dds:7").exit_code == 2


def test_a_replicated_configuration_is_refused_and_nothing_is_begun(empty_directory: Path) -> None:
    assert run("init", "r.xml", "--template", "replicated").exit_code == 0
    for _ in range(2):
        done = run("get", "data", "--service", "embedded:r.xml")
        assert done.exit_code == 7
        assert "queue Orders is to be replicated [QS 7], and this service is not a member of a cluster" in done.stderr
        assert topics() == set()  # an instance of its own, so that the second time one is there


def test_a_configuration_is_shown_where_the_files_that_it_names_are_gone() -> None:
    """It is text of a service, of this machine or of another: nothing is opened by showing it."""
    Path("files").mkdir()
    assert run("key", "create", "admin.key").exit_code == 0
    Path("a.xml").write_text(
        '<dds><queuing_service name="A"><administration><domain_id>0</domain_id><key_file>admin.key</key_file>'
        "</administration><persistence_settings><filesystem><directory>files</directory></filesystem>"
        '</persistence_settings><domain_participant name="P"><domain_id>0</domain_id><shared_subscriber name="S">'
        '<session_settings><session name="s"/></session_settings></shared_subscriber></domain_participant>'
        "</queuing_service></dds>"
    )
    assert run("get", "data", "--service", "embedded:a.xml").exit_code == 0
    Path("admin.key").unlink()
    shown = run("get", "config", "-o", "xml", "--service", "embedded:")
    assert shown.exit_code == 0, shown.stderr
    assert "<directory>files</directory>" in shown.stdout
    assert "<key_file>admin.key</key_file>" in shown.stdout
    refused = run("get", "data", "--service", "embedded:a.xml", "--state-dir", "other")
    assert refused.exit_code == 1
    assert "there is no key file" in refused.stderr
