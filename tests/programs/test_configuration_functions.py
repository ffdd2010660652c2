"""`qsctl.validate`, `render`, `diff` and `explain` give what the commands print, and print nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import qsctl
from qsctl.declared.problems import InvalidFile
from qsctl.errors import NotFound, UsageError
from tests.cli.shell import Shell
from tests.examples import run_all


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path / "state")


@pytest.fixture
def service(shell: Shell) -> str:
    done = shell("init", "--template", "work-queue", "service.xml")
    assert done.status == 0, done.err
    return "service.xml"


def as_json(value: object) -> object:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("module", ["configuration", "explanation"])
def test_the_docstrings_show_what_the_functions_do(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_all(f"qsctl.programs.{module}")


def test_validate_gives_the_command_s_document(shell: Shell, service: str, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = shell("validate", service, "-o", "json").document
    capfd.readouterr()
    found = qsctl.validate(service)
    assert capfd.readouterr() == ("", "")
    assert as_json(found.to_dict()) == wanted
    assert (found.content.valid, found.exit_status) == (True, 0)
    assert qsctl.validate(Path(service)).to_dict() == found.to_dict()


def test_a_file_that_is_not_valid_is_a_result_with_a_row_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "broken.xml"
    file.write_text("<dds><queuing_service name='A'>\n<nothing/></queuing_service></dds>")
    found = qsctl.validate(file)
    assert not found.content.valid
    assert ("error", 2) in [(row["severity"], row["line"]) for row in found]
    assert found.exit_status != 0
    assert found.to_arrow().column("message").null_count == 0


def test_render_gives_the_command_s_rows_and_its_notes_without_printing(
    shell: Shell, service: str, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted = shell("render", service, "--origins", "--path", "*redelivery*", "-o", "jsonl").out
    capfd.readouterr()
    found = qsctl.render(service, origins=True, path="*redelivery*")
    assert capfd.readouterr() == ("", "")
    assert as_json(list(found)) == [json.loads(line) for line in wanted.splitlines()]
    assert len(found) > 0
    with pytest.raises(NotFound, match="no value"):
        qsctl.render(service, path="nothing")


def test_render_hands_over_what_the_command_notes(shell: Shell, service: str) -> None:
    text = Path(service).read_text()
    transport = "<participant_qos><property><value><element><name>dds.transport.load_plugins</name><value>a</value>"
    Path("tcp.xml").write_text(
        text.replace("</domain_id>", f"</domain_id>{transport}</element></value></property></participant_qos>", 1)
    )
    found = qsctl.render("tcp.xml")
    printed = shell("render", "tcp.xml", "-o", "json").err
    assert [" ".join(note.split()) for note in found.notes] == [" ".join(line.split()) for line in printed.splitlines()]
    assert found.notes


def test_diff_gives_what_differs(shell: Shell, service: str) -> None:
    text = Path(service).read_text()
    Path("other.xml").write_text(text.replace("<domain_id>0<", "<domain_id>5<"))
    assert qsctl.diff(service, service).content.same
    found = qsctl.diff(service, "other.xml")
    assert not found.content.same
    assert {(row["change"], row["first"], row["second"]) for row in found} == {("changed", "0", "5")}
    assert as_json(found.to_dict()) == shell("diff", service, "other.xml", "-o", "json").document


def test_errors_are_those_of_the_commands(service: str) -> None:
    with pytest.raises(NotFound, match="there is no setting"):
        qsctl.explain("setting", "nothing_at_all")
    with pytest.raises(UsageError, match="cannot be explained"):
        qsctl.explain("weather", "x")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="no source"):
        qsctl.explain("discards")
    with pytest.raises(InvalidFile):
        qsctl.render('str://"<dds/>"')
    with pytest.raises(UsageError, match="NAME=VALUE"):
        qsctl.validate(service, variables={"not a name": "1"})


def test_explain_reads_a_capture(shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
    capture = Path(__file__).parents[2] / "fixtures" / "listings" / "discards.txt"
    wanted = shell("explain", "discards", str(capture), "-o", "json").document
    capfd.readouterr()
    found = qsctl.explain("discards", capture)
    assert capfd.readouterr() == ("", "")
    assert as_json(found.to_dict()) == wanted
    assert len(found) > 0


def test_importing_the_functions_starts_no_spark() -> None:
    script = "import sys, qsctl; qsctl.validate, qsctl.sweep, qsctl.explain; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
