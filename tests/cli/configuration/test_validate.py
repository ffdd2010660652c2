"""`qsctl validate`, `render`, `diff` and `init` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from qsctl.config.qos_libraries.dds_library import has_tcp
from qsctl.shipped import shipped
from tests.commands import command_line

EXAMPLE = str(shipped("fixtures/config/manual/section_3.1.xml"))
TRANSPORTS = str(shipped("fixtures/config/manual/section_9.2.xml"))
MISPRINT = str(shipped("fixtures/config/misprints/section_3.1.xml"))
WRONG = shipped("fixtures/config/wrong")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: Any) -> Any:
    monkeypatch.chdir(tmp_path)
    app = command_line()
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_a_good_file_is_valid_with_status_0(run: Any) -> None:
    done = run("validate", EXAMPLE)
    assert (done.exit_code, done.stdout) == (0, "1 file valid (0 errors, 0 warnings)\n")


def test_a_bad_file_has_status_1_and_names_place_fault_and_remedy(run: Any) -> None:
    done = run("validate", MISPRINT)
    assert done.exit_code == 1
    assert f"{MISPRINT}:40: error: <reponse_timeout> is not allowed in <redelivery>" in done.stdout
    assert "Did you mean response_timeout?" in done.stdout
    assert done.stdout.endswith("not valid: 1 error, 0 warnings in 1 file\n")


def test_all_problems_of_all_files_come_in_one_run_as_json(run: Any) -> None:
    done = run("validate", str(WRONG / "five_faults.xml"), EXAMPLE, MISPRINT, "-o", "json")
    document = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (document["valid"], document["file_count"], document["error_count"]) == (False, 3, 6)
    problem = document["problems"][-1]
    assert problem == {
        "severity": "error",
        "file": MISPRINT,
        "line": 40,
        "path": "dds/queuing_service[QueuingService_1]/domain_participant[DomainParticipant_1]"
        "/shared_subscriber[SharedSubscriber_1]/shared_reader_queue/queue_qos/redelivery/reponse_timeout",
        "message": "<reponse_timeout> is not allowed in <redelivery>",
        "found": "<reponse_timeout>",
        "allowed": "<max_delivery_retries>, <response_timeout>",
        "suggestion": "Did you mean response_timeout?",
    }


@pytest.mark.parametrize(
    "name", ["external_entity.xml", "billion_laughs.xml", "unclosed.xml", "undefined_variable.xml"]
)
def test_hostile_and_broken_files_have_status_1(name: str, run: Any) -> None:
    done = run("validate", str(WRONG / name))
    assert done.exit_code == 1
    assert name in done.stdout


def test_a_missing_file_a_directory_and_an_empty_one_have_status_1(run: Any, tmp_path: Path) -> None:
    (tmp_path / "empty.xml").touch()
    done = run("validate", "none.xml", str(tmp_path), "empty.xml")
    assert done.exit_code == 1
    for message in ("there is no such file", "this is a directory", "the file is empty"):
        assert message in done.stdout


def test_no_file_or_a_wrong_variable_is_a_usage_error(run: Any) -> None:
    assert run("validate").exit_code == 2
    assert run("validate", EXAMPLE, "--var", "no-equals-sign").exit_code == 2


def test_variables_and_a_configuration_name_are_taken(run: Any) -> None:
    variables = str(shipped("fixtures/config/manual/section_3.4.xml"))
    assert run("validate", variables).exit_code == 1
    assert run("validate", variables, "--var", "DOMAIN=7", "--var", "QUEUE_NAME=q").exit_code == 0
    assert run("validate", EXAMPLE, "--config-name", "Other").exit_code == 1


def test_strict_makes_warnings_errors(run: Any) -> None:
    warned = str(shipped("fixtures/config/manual/table_3.3.xml"))
    assert run("validate", warned).exit_code == 0
    assert run("validate", warned, "--strict").exit_code == 1


def test_default_files_of_the_working_directory_are_loaded_unless_switched_off(run: Any, tmp_path: Path) -> None:
    (tmp_path / "USER_QOS_PROFILES.xml").write_text("<dds><broken></dds>")
    assert run("validate", EXAMPLE).exit_code == 1
    assert run("validate", EXAMPLE, "--no-default-files").exit_code == 0


def test_problems_as_csv_have_a_row_each(run: Any) -> None:
    done = run("validate", MISPRINT, "-o", "csv")
    assert done.stdout.splitlines()[0] == "severity,file,line,path,message,found,allowed,suggestion"
    assert len(done.stdout.splitlines()) == 2


def test_render_shows_the_origin_of_each_value(run: Any) -> None:
    done = run("render", EXAMPLE, "--origins", "-o", "json", "--path", "*redelivery*")
    values = {
        row["path"].rpartition("/")[2]: row for row in json.loads(done.stdout)["values"] if "HelloWorld" in row["path"]
    }
    assert values["response_timeout"]["value"] == "10s"
    assert values["response_timeout"]["origin"] == f"{EXAMPLE}:41"
    dead = run("render", EXAMPLE, "--origins", "-o", "json", "--path", "*dead_letter*retries")
    assert json.loads(dead.stdout)["values"][0]["origin"] == "default of Table 3.15"


def test_rendered_qos_is_structured_in_json_and_yaml(run: Any) -> None:
    document = json.loads(run("render", TRANSPORTS, "-o", "json").stdout)
    qos = document["configuration"]["administration"]["qos"]["participant_qos"]
    assert {"name": "dds.transport.tcp.server_bind_port", "value": "15002"} in qos["property"]["value"]["element"]
    assert "<" not in run("render", TRANSPORTS, "-o", "yaml").stdout


def test_rendered_xml_renders_to_itself(run: Any, tmp_path: Path) -> None:
    once = run("render", EXAMPLE, "-o", "xml").stdout
    (tmp_path / "rendered.xml").write_text(once)
    assert run("validate", "rendered.xml", "--strict").exit_code == 0
    assert run("render", "rendered.xml", "-o", "xml").stdout == once


def test_render_as_table_json_and_yaml(run: Any) -> None:
    table = run("render", EXAMPLE).stdout
    assert "queue_qos/lifespan" in table
    assert "120s" in table
    document = json.loads(run("render", EXAMPLE, "-o", "json").stdout)
    queues = document["configuration"]["service"]["participants"][0]["subscribers"][0]["queues"]
    assert queues[1]["redelivery"] == {"max_delivery_retries": 10, "response_timeout_ns": 10_000_000_000}
    assert yaml.safe_load(run("render", EXAMPLE, "-o", "yaml").stdout) == document


def test_rendering_a_bad_file_fails_with_its_problems(run: Any) -> None:
    done = run("render", MISPRINT)
    assert done.exit_code == 1
    assert "Did you mean response_timeout?" in done.stderr


def test_configurations_that_differ_only_in_order_spelling_and_defaults_are_the_same(run: Any, tmp_path: Path) -> None:
    text = Path(EXAMPLE).read_text()
    other = text.replace("<nanosec>0</nanosec>", "").replace("<sec>120</sec>", "<sec>0x78</sec>")
    other = other.replace("<max_delivery_retries>10</max_delivery_retries>", "").replace(
        "<redelivery>", "<redelivery><max_delivery_retries> 10\n</max_delivery_retries>"
    )
    (tmp_path / "other.xml").write_text(other)
    done = run("diff", EXAMPLE, "other.xml")
    assert (done.exit_code, done.stdout) == (0, "The configurations are the same.\n")


def test_a_difference_has_status_1_and_both_values(run: Any, tmp_path: Path) -> None:
    text = Path(EXAMPLE).read_text().replace("<sec>120</sec>", "<sec>60</sec>").replace("Foo", "Fob")
    (tmp_path / "other.xml").write_text(text)
    done = run("diff", EXAMPLE, "other.xml", "-o", "json")
    assert done.exit_code == 1
    changes = {row["path"].rpartition("/")[2]: row for row in json.loads(done.stdout)["differences"]}
    assert (changes["lifespan"]["first"], changes["lifespan"]["second"]) == ("120s", "60s")
    assert changes["type_name"]["change"] == "changed"
    unified = run("diff", EXAMPLE, "other.xml", "--unified").stdout
    assert "-          <type_name>Foo</type_name>" in unified
    assert "+          <type_name>Fob</type_name>" in unified


@pytest.mark.parametrize("template", ["minimal", "work-queue", "persistent", "request-reply", "monitored"])
def test_a_starter_file_is_valid_and_not_overwritten(template: str, run: Any) -> None:
    done = run("init", "my.xml", "--template", template)
    assert (done.exit_code, "serve" in done.stdout) == (0, False)
    assert run("validate", "my.xml", "--strict").exit_code == 0
    again = run("init", "my.xml")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert run("init", "my.xml", "--force").exit_code == 0


def test_a_starter_file_that_is_not_served_is_marked_when_written(run: Any, monkeypatch: Any) -> None:
    assert json.loads(run("init", "-", "-t", "replicated", "-o", "json").stdout)["refusals"] == []
    words = "the configuration is to be replicated"
    monkeypatch.setattr("qsctl.config.rules.replication.unequal_instances", lambda *_: words)
    done = run("init", "my.xml", "--template", "replicated")
    assert done.exit_code == 0
    assert "qsctl serve refuses this file:" in done.stdout
    assert words in done.stdout
    validated = run("validate", "my.xml", "--strict")
    assert validated.exit_code == 1
    assert "1 file valid (0 errors, 0 warnings), and not to be served here: QueuingService" in validated.stdout
    document = json.loads(run("init", "-", "-t", "replicated", "-o", "json").stdout)
    assert [words in each for each in document["refusals"]] == [True]


def test_validate_reports_by_service_what_would_be_served(run: Any) -> None:
    done = run("validate", str(shipped("fixtures/config/vendor/orders.xml")), "-o", "json")
    document = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (document["valid"], document["served"], document["error_count"]) == (True, False, 0)
    assert {each["name"]: each["served"] for each in document["services"]} == {
        "OrdersOverTcp": has_tcp(),
        "OrdersReplicated": False,
        "OrdersOverUdp": True,
    }
    over_udp = json.loads(
        run("validate", "--without-tcp", str(shipped("fixtures/config/vendor/orders.xml")), "-o", "json").stdout
    )
    assert {each["name"]: each["served"] for each in over_udp["services"]}["OrdersOverTcp"] is True
    by_consent = [each for each in over_udp["problems"] if "--without-tcp" in each["message"]]
    assert {each["severity"] for each in by_consent} == {"warning"}


def test_a_file_of_profiles_alone_is_identified_with_status_0(run: Any) -> None:
    done = run("validate", str(shipped("fixtures/config/vendor/USER_QOS_PROFILES.xml")))
    assert done.exit_code == 0
    assert "note: this file holds QoS profiles and no service" in done.stdout
    assert run("validate", 'str://"<dds/>"').exit_code == 1


def test_the_directory_of_the_vendor_loads_as_it_is_shipped(run: Any, tmp_path: Path) -> None:
    for name in ("USER_QOS_PROFILES.xml", "orders.xml"):
        (tmp_path / name).write_bytes(shipped(f"fixtures/config/vendor/{name}").read_bytes())
    assert run("validate", "orders.xml", "--config-name", "OrdersOverUdp").exit_code == 0
    rendered = run("render", "orders.xml", "--config-name", "OrdersReplicated")
    assert rendered.exit_code == 0
    refused = "qsctl serve refuses this configuration:" in rendered.stderr
    assert refused is not has_tcp(), rendered.stderr


def test_a_starter_file_can_be_printed(run: Any, tmp_path: Path) -> None:
    done = run("init", "-", "-t", "minimal")
    assert done.stdout.startswith("<?xml")
    assert list(tmp_path.iterdir()) == []


def test_the_file_that_init_writes_is_loaded_by_itself(run: Any) -> None:
    assert run("init").exit_code == 0
    assert "QueuingService" in run("render", 'str://"<dds/>"').stdout


def test_a_pattern_that_matches_no_path_is_not_found(run: Any) -> None:
    done = run("render", EXAMPLE, "--path", "nope")
    assert (done.exit_code, done.stdout) == (4, "")
    assert "'nope'" in done.stderr
