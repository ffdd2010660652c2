"""What the documents show is what the program prints: their tours are run, their tables are compared."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import filelock
import pytest
from typer.testing import CliRunner

from tests.commands import command_line
from tests.documents import README, ROOT, page, shown, tour

ADMINISTRATION = shown(page("administration"))
CONFIGURATION = shown(page("configuration"))
SIMULATION = shown(page("simulation"))
WORLDS = shown(page("worlds"))
ENGINE = shown(page("integration-engine"))
READS_FIXTURES = {
    command: output
    for name in ("configuration", "client-profiles", "listings", "rti-shop", "rti-differences", "solace-admin")
    for command, output in shown(page(name)).items()
}
TUTORIAL = tour(page("tutorial"))
WORLD = "qsctl simulate world"


def run(command: str) -> str:
    """What a person sees: standard output, or the error. What is not ours runs in a shell."""
    before, _, command = command.rpartition(" | ")
    given = subprocess.run(["bash", "-c", before], capture_output=True, text=True, check=True).stdout
    program, *arguments = shlex.split(command)
    assert program == "qsctl"
    done = CliRunner().invoke(command_line(), arguments, input=given)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return (done.stdout + done.stderr).rstrip("\n")


def without_what_varies(text: str) -> str:
    text = re.sub(r"[0-9a-f]{32}:\d+", "IDENTITY", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "INSTANT", text)


@pytest.mark.parametrize("name", ["backup", "production"])
def test_a_page_copies_the_files_of_a_service_once_it_has_ended(name: str) -> None:
    """The file of its process is removed at its end; the log has a line about it from --verbosity 3 on only."""
    (before,) = re.findall(r'kill "\$\(cat service\.pid\)"(.*?)^(?:\$ )?cp -a', page(name), re.DOTALL | re.MULTILINE)
    assert "while [ -e service.pid ]; do sleep 0.1; done" in before


@pytest.mark.parametrize("command", READS_FIXTURES)
def test_a_command_that_reads_fixtures_prints_what_its_page_shows(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(command) == READS_FIXTURES[command]


def test_the_administration_tour_prints_what_its_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(ADMINISTRATION) >= 4
    for command, output in ADMINISTRATION.items():
        assert without_what_varies(run(command)) == without_what_varies(output), command


def test_the_tutorial_prints_what_its_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NDDSHOME", raising=False)
    assert len(TUTORIAL) >= 12
    for command, output in TUTORIAL:
        if command.startswith("sed "):
            subprocess.run(["bash", "-c", command], check=True)
            continue
        if " simulate " not in command:
            assert without_what_varies(run(command)) == without_what_varies(output), command
            continue
        printed = [line.split() for line in run(command).splitlines()]
        lines = [line for line in output.splitlines() if line != " …" and "──" not in line]
        # The counters are the same everywhere; waits by percentile come with them.
        assert [line for line in lines if line.split() not in printed] == [], command


def test_the_readme_shows_parts_of_what_pages_show() -> None:
    """So that each of its commands is run by a test of its page."""
    pages = {**ADMINISTRATION, **CONFIGURATION, **SIMULATION, **READS_FIXTURES, **shown(page("brokers"))}
    readme = shown(README)
    assert {command.split()[1] for command in readme} >= {"create-queue", "consume", "explain", "simulate", "size"}
    for command, output in readme.items():
        lines = pages[command].splitlines()
        assert [line for line in output.splitlines() if line not in (" …", "") and line not in lines] == [], command
    (asked,) = re.findall(r"^```text\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert [line for line in asked.splitlines() if line not in page("replay").splitlines()] == []


def test_the_simulated_figures_are_the_ones_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = "qsctl simulate --spark"
    table = {
        cells[0]: [int(cell) for cell in cells[1:7]]
        for cells in (line.split() for line in SIMULATION[command].splitlines())
        if cells and re.fullmatch(r"[GDC]-\d", cells[0]) and len(cells) > 8
    }
    rows = json.loads(run("qsctl simulate --level counters -o json"))["queues"]
    names = ("length_messages", "length_work_units", "high_water_mark_work_units", "max_depth_work_units")
    names = (*names, "discarded_messages", "delivered_messages")
    assert table == {row["queue"]: [row[name] for name in names] for row in rows}


def test_the_world_ends_as_its_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "170")
    words = [line.split() for line in run(WORLD).splitlines()]
    missing = [
        line for line in WORLDS[WORLD].splitlines() if line != " …" and "──" not in line and line.split() not in words
    ]
    assert missing == []


def worked_examples(name: str = "guaranteed-delivery") -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines below it; `…` in a command stands for the one before it."""
    section = page(name)
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```text\n(.*?)```", section, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.rstrip("\n").splitlines()
            if "…" in command:
                command = f"{found[-1][0]} {command.partition('…')[2].strip()}"
            found.append((command, lines))
    return found


def test_every_worked_example_is_there() -> None:
    sections = page("guaranteed-delivery") + page("keeping-up")
    assert set(re.findall(r"W\d+", sections)) == {f"W{number}" for number in range(1, 15)}
    assert len(worked_examples()) >= 17


@pytest.mark.parametrize(("command", "lines"), worked_examples())
def test_a_worked_example_prints_what_its_page_shows(
    command: str, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    printed = [line.split() for line in run(command).splitlines()]
    assert_begin(lines, printed)


def assert_begin(lines: list[str], printed: list[list[str]]) -> None:
    """Each line is the beginning of one: tables are cut on the right, and sentences at an ellipsis."""
    for line in lines:
        words = line.removesuffix("…").split()
        assert any(found[: len(words)] == words for found in printed), line


def test_the_page_on_slow_subscribers_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    examples = worked_examples("keeping-up")
    assert len(examples) >= 9
    for command, lines in examples:
        assert lines, command
        assert_begin(lines, [line.split() for line in run(command).splitlines()])


def replays() -> list[tuple[str, list[str]]]:
    """Each command of the story from a recording to a decision that replays, with the lines below it."""
    section = page("replay")
    blocks = re.findall(r"```text\n\$ (qsctl replay .*?)```", section, re.DOTALL)
    return [(command, lines.splitlines()) for command, _, lines in (block.partition("\n") for block in blocks)]


@pytest.mark.parametrize(("command", "lines"), replays())
def test_a_replay_prints_what_its_page_shows(
    command: str, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    printed = [line.split() for line in run(command).splitlines()]
    missing = [line for line in lines if line != " …" and "──" not in line and line.split() not in printed]
    assert len(lines) > 8
    assert missing == []


def test_the_tour_of_a_site_prints_what_its_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lakeside"
    shutil.copytree(ROOT / "fixtures/netconfig/lakeside", folder)
    monkeypatch.chdir(folder)
    commands = tour(page("engine-site"))
    assert len(commands) == 5
    for command, output in commands:
        assert run(command) == output


def test_the_day_of_the_engine_s_operator_prints_what_its_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "fixtures" / "dumps", tmp_path / "fixtures" / "dumps")
    (corrected,) = re.findall(r"`corrected.txt` holds `(.*)`;", page("integration-engine"))
    Path("corrected.txt").write_text(f"{corrected}\n", encoding="utf-8")
    running: filelock.FileLock | None = None
    for command, output in ENGINE.items():
        if command.endswith(" &"):  # an engine in the background has its database to itself
            running = filelock.FileLock("ward.recovery.lock")
            running.acquire()
        elif command.startswith("kill "):
            assert running is not None
            running.release()
        elif command.split()[1] == "engine":
            assert _without_the_time_of_the_kill(run(command)) == _without_the_time_of_the_kill(output), command
    assert running is not None


def _without_the_time_of_the_kill(output: str) -> str:
    """What is the same whenever the engine was killed: of a run that went on behind that, only the end."""
    return output.splitlines()[-1] if "It began with" in output else output
