"""Named services: what the file holds, what counts when, and how an error says which service was meant."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from qsctl.cli.context.file import read_contexts
from qsctl.errors import ExitStatus, InvalidInput
from tests.cli.shell import Outcome
from tests.commands import command_line


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QSCTL_CONFIG", str(tmp_path / "own" / "config.toml"))
    for name in ("QSCTL_SERVICE", "QSCTL_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "own" / "config.toml"


def qsctl(*arguments: str, **variables: str) -> Outcome:
    from typer.testing import CliRunner

    done = CliRunner().invoke(command_line(), list(arguments), env=variables)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Outcome(done.exit_code, done.stdout, done.stderr)


def test_a_context_names_a_service_until_another_is_used(file: Path, tmp_path: Path) -> None:
    assert qsctl("context", "list").out.startswith("(no context")
    for name in ("one", "two"):
        added = qsctl("context", "add", name, "--service", "embedded:", "--state-dir", f"state-{name}")
        assert (added.status, added.out) == (ExitStatus.DONE, f"context {name} is added in {file}\n")
        assert qsctl("create-queue", name.capitalize(), "--context", name).status == ExitStatus.DONE
    assert qsctl("context", "use", "two").status == ExitStatus.DONE
    assert [each["queue_name"] for each in qsctl("get", "data", "-o", "json").document["queues"]] == [
        "DomainParticipant/SharedSubscriber/Two"
    ]
    assert "One" in qsctl("get", "data", QSCTL_CONTEXT="one").out
    assert "One" in qsctl("get", "data", QSCTL_STATE_DIR="state-one").out, "the environment comes first"
    assert "One" in qsctl("get", "data", "--state-dir", "state-one", QSCTL_STATE_DIR="state-two").out
    listed = qsctl("context", "list", "-o", "json").document
    assert [(each["name"], each["in_use"], each["state_dir"]) for each in listed] == [
        ("one", False, str(tmp_path / "state-one")),
        ("two", True, str(tmp_path / "state-two")),
    ]
    assert qsctl("context", "remove", "two").out == "context two is removed; no context is in use\n"
    assert qsctl("context", "use", "").out == "no context is in use\n"
    assert file.stat().st_mode & 0o077 == 0
    assert not (tmp_path / ".qsctl").exists()


def test_an_error_names_the_context_that_chose_the_service(file: Path) -> None:
    assert qsctl("context", "add", "local", "--service", "embedded:", "--use").status == ExitStatus.DONE
    failed = qsctl("delete-queue", "None")
    assert failed.err.splitlines()[-1] == "Context: local (service embedded:)"
    failed = qsctl("delete-queue", "None", "-o", "json")
    assert json.loads(failed.err)["error"]["context"] == "local (service embedded:)"
    told = qsctl("delete-queue", "None", "--context", "", "-o", "json")
    assert "context" not in json.loads(told.err)["error"]
    other = qsctl("delete-queue", "None", "--service", "embedded:nothing.xml", "-o", "json")
    assert "context" not in json.loads(other.err)["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "x", "--service", "nowhere"), "is not a service location"),
        (("add", "x", "--service", "dds:many"), "many"),
        (("add", "x y", "--service", "dds:1"), "'x y' is not a name for a context"),
        (("add", "x", "--service", "dds:1", "--timeout", "soon"), "--timeout"),
        (("use", "x"), "there is no context 'x'"),
        (("remove", "x"), "there is no context 'x'"),
    ],
)
def test_what_cannot_be_a_context_is_refused(file: Path, arguments: tuple[str, ...], message: str) -> None:
    refused = qsctl("context", *arguments)
    assert refused.status in (ExitStatus.USAGE, ExitStatus.NOT_FOUND)
    assert message in refused.err
    assert read_contexts().by_name == {}


@pytest.mark.parametrize("kind", ["a directory", "a pipe", "below a file"])
def test_what_is_not_a_file_is_named_by_every_command(
    kind: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.parent.mkdir()
    if kind == "a pipe":
        os.mkfifo(file)
    elif kind == "a directory":
        file.mkdir()
    else:
        file.write_text("")
        file = file / "config.toml"
        monkeypatch.setenv("QSCTL_CONFIG", str(file))
    for words in (("context", "list"), ("context", "add", "x", "--service", "dds:1"), ("get", "status")):
        refused = qsctl(*words)
        assert refused.status in (ExitStatus.NO, ExitStatus.USAGE)
        # A panel breaks a line where it is full, also within a long path.
        assert f"{file.name}cannotberead" in re.sub(r"[\s│]", "", refused.err)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contexts = 3", "contexts is 3"),
        ("[contexts.a]\nservice = 7", "[contexts.a] service is 7"),
        ("[contexts.a]\nservices = 'dds:1'", "[contexts.a] has 'services'"),
        ("other = 1", "the file has 'other'"),
        ("context = 'b'\n[contexts.a]", "context is 'b', which is not a context"),
        ("[", "cannot be read"),
        ("\xff", "cannot be read"),
    ],
)
def test_a_file_that_is_not_as_it_must_be_is_named_with_what_is_wrong(file: Path, text: str, message: str) -> None:
    file.parent.mkdir()
    file.write_text(text, encoding="latin-1")
    with pytest.raises(InvalidInput) as caught:
        read_contexts()
    assert caught.value.message.startswith(str(file))
    assert message in caught.value.message
    assert qsctl("get", "status").status == ExitStatus.USAGE
    assert qsctl("context", "add", "x", "--service", "dds:1").status == ExitStatus.NO
    assert file.read_text(encoding="latin-1") == text


def test_every_option_is_given_by_a_variable_too(file: Path) -> None:
    assert qsctl("create-queue", "Orders", QSCTL_CREATE_QUEUE_MAX_COUNT="3").status == ExitStatus.DONE
    assert "<max_count>3</max_count>" in qsctl("get", "config", QSCTL_GET_CONFIG_OUTPUT="xml").out
    assert qsctl("create-queue", "Orders", "--max-count", "3", QSCTL_CREATE_QUEUE_IDEMPOTENT="1").status == 0
    assert qsctl("get", "status", QSCTL_TIMEOUT="soon").status == ExitStatus.USAGE
    assert qsctl("get", "status", QSCTL_GET_STATUS_FORMAT_HELP="1", QSCTL_VERSION="1").out.startswith("Queue")
