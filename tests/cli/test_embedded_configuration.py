"""What an embedded service starts with: a named file, the user's own file, or nothing but one subscriber."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from qsctl.cli.app import build_app
from qsctl.shipped import shipped

EXAMPLE = shipped("fixtures/config/manual/section_3.1.xml")


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), list(arguments))


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


def test_an_invalid_file_is_told_and_nothing_is_started(empty_directory: Path) -> None:
    wrong = shipped("fixtures/config/wrong/five_faults.xml")
    done = run("get", "data", "--service", f"embedded:{wrong}")
    assert done.exit_code == 1
    assert "5 errors" in done.stderr
    assert not list(empty_directory.rglob("*.db"))
    assert topics() == set()
