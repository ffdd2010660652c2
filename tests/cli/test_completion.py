"""Completion: words that can be listed are offered, quickly, and nothing that goes wrong reaches the user's line."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import typing
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from qsctl.cli import _completers as completers
from qsctl.cli._completers import COMPLETERS
from qsctl.cli.app import build_app
from qsctl.shipped import shipped
from tests.cli.help_text import leaves
from tests.commands import command_line


def offered(line: str, env: dict[str, str] | None = None, app: typer.Typer | None = None) -> list[str]:
    """What bash is given for the last word of a line."""
    words = line.split(" ")
    asked = {"_QSCTL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), **(env or {})}
    return CliRunner().invoke(app or command_line(), [], prog_name="qsctl", env=asked).stdout.split()


def qsctl(*arguments: str) -> None:
    done = CliRunner().invoke(command_line(), list(arguments))
    assert done.exit_code == 0, done.output


@pytest.fixture
def _service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    qsctl("create-subscriber", "Billing")
    for queue, subscriber in (("Orders", "SharedSubscriber"), ("Orders", "Billing"), ("Bills", "Billing")):
        qsctl("create-queue", queue, "--subscriber", subscriber, "--topic", f"{queue}Topic{subscriber}")


@pytest.mark.usefixtures("_service")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("qsctl delete-queue B", ["Billing/Orders", "Bills"]),
        ("qsctl delete-queue Bills", ["Bills"]),
        ("qsctl delete-queue ", ["SharedSubscriber/Orders", "Billing/Orders", "Bills"]),
        ("qsctl get messages Billing/", ["Billing/Orders", "Billing/Bills"]),
        ("qsctl consume BillsTopicBilling@", ["BillsTopicBilling@Billing"]),
        ("qsctl produce BillsT", ["BillsTopicBilling"]),
        ("qsctl create-queue X --subscriber B", ["Billing"]),
        ("qsctl delete-subscriber S", ["SharedSubscriber"]),
        ("qsctl create-queue X --dead-letter Bills", ["Bills"]),
        ("qsctl shutdown --target q", ["qsctl"]),
        ("qsctl send GET qsctl /da", ["/data"]),
    ],
)
def test_what_the_service_hosts_is_offered(line: str, expected: list[str]) -> None:
    assert sorted(offered(line)) == sorted(expected)


@pytest.mark.usefixtures("_service")
def test_a_resource_identifier_is_offered_with_what_can_be_read_of_it() -> None:
    container = "/domain_participant/DomainParticipant/shared_subscriber/Billing"
    queue, *leaves_of_it = offered(f"qsctl send GET qsctl {container}/shared_reader_queue/Bi")
    assert leaves_of_it == [f"{queue}/{leaf}" for leaf in ("status", "data", "message")]


def test_the_state_directory_is_the_command_line_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    qsctl("create-queue", "Elsewhere", "--state-dir", "other")
    assert offered("qsctl flush-queue --state-dir other E") == ["Elsewhere"]
    assert offered("qsctl flush-queue E", {"QSCTL_STATE_DIR": "other"}) == ["Elsewhere"]


def test_the_service_is_that_of_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QSCTL_CONFIG", "contexts.toml")
    qsctl("create-queue", "Elsewhere", "--state-dir", "other")
    qsctl("context", "add", "far", "--service", "embedded:", "--state-dir", "other")
    assert offered("qsctl flush-queue --context far E") == ["Elsewhere"]
    assert offered("qsctl flush-queue E", {"QSCTL_CONTEXT": "far"}) == ["Elsewhere"]
    assert offered("qsctl flush-queue E") == []
    qsctl("context", "use", "far")
    assert offered("qsctl flush-queue E") == ["Elsewhere"]
    assert offered("qsctl context use f") == ["far"]
    Path("contexts.toml").write_text("[", encoding="utf-8")
    assert offered("qsctl flush-queue E") == []


@pytest.mark.usefixtures("_service")
def test_types_are_offered_also_where_there_is_no_service() -> None:
    qsctl("create-queue", "Typed", "--type", "Shop::Order", "--subscriber", "Billing")
    assert "Shop::Order" in offered("qsctl create-queue X --type Sh")
    assert "Shop::Order" not in offered("qsctl create-queue X --state-dir none --type Sh")
    assert "DDS" in offered("qsctl create-queue X --state-dir none --type DD")[0]


def test_completion_creates_no_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert offered("qsctl delete-queue ") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_service")
def test_a_large_state_directory_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completers, "MOST_STATE_BYTES", 10)
    assert offered("qsctl delete-queue ") == []


def test_scenarios_and_their_files_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "burst-two.xml").write_text("<scenario/>", encoding="utf-8")
    (tmp_path / "bursts").mkdir()
    (tmp_path / "burst.txt").write_text("", encoding="utf-8")
    assert offered("qsctl simulate burst") == ["burst", "burst-two.xml", "bursts/"]


def test_the_paths_of_the_named_scenario_are_offered() -> None:
    assert "horizon=" in offered("qsctl simulate burst --set ho")
    assert "horizon=" not in offered("qsctl simulate ./none.xml --set ho")
    found = offered("qsctl size burst --vary profile[trading]/queue[D-1]")
    assert "profile[trading]/queue[D-1]/max-depth" in found


def test_run_folders_and_sweeps_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("qsctl-runs/burst-1/run.json", "qsctl-sweeps/burst/sweep.json"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("{}", encoding="utf-8")
    (tmp_path / "qsctl-runs" / "no-run").mkdir()
    (tmp_path / "elsewhere" / "monday").mkdir(parents=True)
    (tmp_path / "elsewhere" / "monday" / "run.json").write_text("{}", encoding="utf-8")
    assert offered("qsctl report elsewhere/m") == ["elsewhere/monday"]
    for line in ("qsctl summarize ", "qsctl report ", "qsctl compare ", "qsctl show client x stats queue --run "):
        assert offered(f"{line}qsctl-") == ["qsctl-runs/burst-1", "qsctl-sweeps/burst"]


def test_settings_of_client_profiles_are_offered() -> None:
    assert offered("qsctl client-profile set x.json queueDirect1Max") == ["queueDirect1MaxDepth="]
    assert offered("qsctl client-profile reset x.json queueDirect1Max") == ["queueDirect1MaxDepth"]


@pytest.mark.parametrize(
    "line",
    [
        "qsctl simulate no-such-scenario --set h",
        "qsctl simulate --var =7 --set h",
        "qsctl delete-queue --service dds:9999 Q",
        "qsctl delete-queue --service nonsense Q",
        "qsctl delete-queue --state-dir /dev/null Q",
    ],
)
def test_what_goes_wrong_offers_nothing_and_prints_nothing(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert offered(line) == []


def test_a_fault_of_a_completer_is_silent_unless_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(typed: typer.Context, incomplete: str) -> list[str]:
        raise ZeroDivisionError

    monkeypatch.setitem(COMPLETERS, "SCENARIO", fail)
    app = build_app()  # with this completer
    assert offered("qsctl simulate b", app=app) == []
    monkeypatch.setenv("QSCTL_DEBUG", "1")
    done = CliRunner().invoke(
        app, [], prog_name="qsctl",
        env={"_QSCTL_COMPLETE": "complete_bash", "COMP_WORDS": "qsctl simulate b", "COMP_CWORD": "2"},
    )  # fmt: skip
    assert isinstance(done.exception, ZeroDivisionError)


def test_every_completer_is_reached_by_a_command() -> None:
    metavars = {
        word
        for _, command in leaves()
        for each in command.params
        for word in (each.metavar or "").strip("[]").split("|")
    }
    assert set(COMPLETERS) <= metavars


def test_a_completer_documents_what_it_offers() -> None:
    for completer in COMPLETERS.values():
        assert inspect.getdoc(completer)
        assert typing.get_type_hints(completer)["return"] == list[str]


def test_completing_a_word_that_needs_no_service_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom qsctl.cli.app import build_app\n"
        "try:\n    build_app()(prog_name='qsctl')\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        env={**os.environ, "_QSCTL_COMPLETE": "complete_bash", "COMP_WORDS": "qsctl simu", "COMP_CWORD": "1"},
    )  # fmt: skip
    assert done.stdout.split() == ["simulate"]
    assert not {"numpy", "pyarrow", "lxml", "cyclonedds", "pyspark"} & set(done.stderr.split())


def test_the_script_of_zsh_begins_with_its_directive() -> None:
    """zsh completes by a file of its fpath only where that is the first line."""
    assert shipped("completions/qsctl.zsh").read_text(encoding="utf-8").startswith("#compdef qsctl\n")
