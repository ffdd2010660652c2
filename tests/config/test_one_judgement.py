"""`validate` and `serve` are one judgement: every service of every file that comes with qsctl is tried with both.

`serve` is run as far as the first socket: its transport is replaced by one that says that it was reached.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest
from typer.testing import CliRunner

from qsctl.config.load import judge_files
from qsctl.declared.problems import Severity, has_errors
from qsctl.errors import ExitStatus
from qsctl.shipped import shipped
from tests.commands import command_line

ROOT = shipped("fixtures/config")
VARIABLES = {"QUEUE_NAME": "orders", "DOMAIN": "7"}
FILES = sorted(ROOT.rglob("*.xml"))


class Reached(Exception):
    """The service was about to open its first socket."""


@pytest.fixture(autouse=True)
def no_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def reached(*_arguments: Any, **_options: Any) -> NoReturn:
        raise Reached

    monkeypatch.setattr("qsctl.service.process.daemon.ServiceTransport", reached)
    monkeypatch.setattr("qsctl.service.sessions.coordinator.ServiceTransport", reached)


def served(path: Path, name: str | None = None) -> ExitStatus:
    """What `qsctl serve` exits with before its first socket; DONE: it gets there."""
    words = ["serve", str(path), *(["-cfgName", name] if name is not None else [])]
    words += [word for key, value in VARIABLES.items() for word in ("--var", f"{key}={value}")]
    from qsctl.cli._rti_options import in_our_spelling

    done = CliRunner().invoke(command_line(), in_our_spelling(words))
    if isinstance(done.exception, Reached):
        return ExitStatus.DONE
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code != 0
    return ExitStatus(done.exit_code)


def test_there_are_files_of_each_kind() -> None:
    assert len(FILES) > 50
    assert {path.parent.name for path in FILES} >= {"field", "manual", "starter", "unserved", "vendor", "wrong"}


@pytest.mark.slow(beyond=25)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_serve_starts_exactly_the_services_that_validate_reports(path: Path, tmp_path: Path) -> None:
    judgement = judge_files([path], variables=VARIABLES, environment={}, working_directory=tmp_path)
    for name, is_served in judgement.services.items():
        status = served(path, name)
        assert (status is ExitStatus.DONE) is is_served, (name, status, judgement.problems)
        if status is ExitStatus.REFUSED:
            assert not has_errors(judgement.problems)
    if not judgement.services:
        assert served(path) is ExitStatus.NO


PROFILES = '<qos_library name="L"><qos_profile name="P"><datareader_qos/></qos_profile>{}</qos_library>'
SERVICE = (
    '<queuing_service name="{}"><domain_participant name="P"><domain_id>7</domain_id><shared_subscriber name="S">'
    '<session_settings><session name="s"/></session_settings><shared_reader_queue name="Q" session="s">'
    "<topic_name>T</topic_name><type_name>DDS::String</type_name>{}</shared_reader_queue></shared_subscriber>"
    "</domain_participant></queuing_service>"
)
WRONG = {
    "schema": "<bogus/>",
    "profile": '<datareader_qos base_name="L::Nobody"/>',
    "rule": "<queue_qos><resource_limits><queue_allocation_settings><initial_count>5</initial_count>"
    "<max_count>3</max_count></queue_allocation_settings></resource_limits></queue_qos>",
}


@pytest.mark.parametrize("names", ["AB", "BA"])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_in_one_service_stops_no_other_one(wrong: str, names: str, tmp_path: Path) -> None:
    path = tmp_path / "two.xml"
    services = [SERVICE.format(name, WRONG[wrong] if name == "A" else "") for name in names]
    path.write_text(f"<dds>{PROFILES.format('')}{''.join(services)}</dds>")
    judgement = judge_files([path], variables={}, environment={}, working_directory=tmp_path)
    assert judgement.services == {"A": False, "B": True}
    assert served(path, "A") is ExitStatus.NO
    assert served(path, "B") is ExitStatus.DONE
    for name, status in (("A", 1), ("B", 0)):
        assert CliRunner().invoke(command_line(), ["validate", str(path), "--config-name", name]).exit_code == status


def test_a_wrong_profile_that_no_service_uses_stops_every_service(tmp_path: Path) -> None:
    path = tmp_path / "unused.xml"
    wrong = '<qos_profile name="Unused" base_name="Nobody"><datareader_qos/></qos_profile>'
    path.write_text(f"<dds>{PROFILES.format(wrong)}{SERVICE.format('A', '')}</dds>")
    judgement = judge_files([path], variables={}, environment={}, working_directory=tmp_path)
    assert judgement.services == {"A": False}
    assert served(path) is ExitStatus.NO


@pytest.mark.parametrize("path", sorted((ROOT / "unserved").glob("*.xml")), ids=lambda path: path.name)
def test_a_valid_file_that_is_not_served_is_refused_with_the_words_of_validate(path: Path, tmp_path: Path) -> None:
    validated = CliRunner().invoke(command_line(), ["validate", str(path)])
    refused = CliRunner().invoke(command_line(), ["serve", str(path)])
    judgement = judge_files([path], variables={}, environment={}, working_directory=tmp_path)
    found = [problem for problem in judgement.problems if problem.severity is Severity.UNSUPPORTED]
    assert found
    assert (validated.exit_code, refused.exit_code) == (1, 7)
    for problem in found:
        assert str(problem) in validated.stdout
        assert str(problem) in refused.stderr
    assert validated.stdout.endswith("1 file valid (0 errors, 0 warnings), and not to be served here: Service\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_validate_exits_with_0_exactly_where_every_service_would_start(path: Path, tmp_path: Path) -> None:
    words = ["validate", str(path), *(word for each in VARIABLES.items() for word in ("--var", "=".join(each)))]
    done = CliRunner().invoke(command_line(), words)
    judgement = judge_files([path], variables=VARIABLES, environment={}, working_directory=tmp_path)
    good = all(judgement.services.values()) and not has_errors(judgement.problems)
    assert done.exit_code == (0 if good else 1)
