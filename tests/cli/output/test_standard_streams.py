"""Commands as processes whose standard streams fail, are closed, or know few characters: nothing is lost, no crash."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from qsctl.errors import ExitStatus
from tests.commands import command_line
from tests.patience import PATIENCE_S
from tests.processes import run, running

QSCTL = (sys.executable, "-m", "qsctl")
COUNT = 2000
FORMATS = ("table", "json", "jsonl", "yaml", "csv")
WORDS = "é € 😀 漢"

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    environment = {**os.environ, "QSCTL_STATE_DIR": str(tmp_path / "state"), "PYTHONIOENCODING": "utf-8"}
    command(environment, "create-queue", "Orders")
    return environment


@pytest.fixture
def qsctl(environment: dict[str, str]) -> Run:
    """A command with pipes, or what else is given, as its streams."""

    def run_qsctl(*arguments: str, encoding: str = "utf-8", **more: Any) -> subprocess.CompletedProcess[str]:
        variables = {**environment, "PYTHONIOENCODING": encoding}
        return run([*QSCTL, *arguments], env=variables, encoding=encoding, **more)

    return run_qsctl


@pytest.fixture
def shell(environment: dict[str, str]) -> Shell:
    """A line of bash in which `qsctl` is the program under test."""

    def run_line(line: str) -> subprocess.CompletedProcess[str]:
        script = f'qsctl() {{ "{sys.executable}" -m qsctl "$@"; }}\n{line}'
        return run(["bash", "-c", script], stdin=None, env=environment)

    return run_line


def command(environment: dict[str, str], *arguments: str, stdin: str | None = None) -> str:
    """A command in this process, for what surrounds the one under test; its output."""
    done = CliRunner().invoke(command_line(), list(arguments), input=stdin, env=environment)
    assert done.exit_code in (ExitStatus.DONE, ExitStatus.NO), done.stderr
    return done.stdout


def fill(environment: dict[str, str], count: int) -> None:
    command(environment, "produce", "Orders", "--lines", stdin="\n".join(map(str, range(count))))


def rest_of(environment: dict[str, str], queue: str = "Orders") -> list[dict[str, Any]]:
    lines = command(environment, "consume", queue, "--count", "0", "-o", "jsonl").splitlines()
    return [json.loads(line) for line in lines]


def numbers(rows: Sequence[dict[str, Any]]) -> list[int]:
    return [int(row["payload"]) for row in rows]


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("output", FORMATS)
def test_what_a_full_disk_did_not_take_comes_again(qsctl: Run, environment: dict[str, str], output: str) -> None:
    fill(environment, COUNT)
    with open("/dev/full", "w") as full:
        done = qsctl("consume", "Orders", "--count", "0", "-o", output, stdout=full)
    assert done.returncode == ExitStatus.OUTPUT_FAILED
    assert "standard output cannot be written: No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    rows = rest_of(environment)
    assert numbers(rows) == list(range(COUNT))
    assert rows[0]["redelivered"], "some of it may have been printed"


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("output", FORMATS)
def test_what_the_reader_of_a_pipe_left_comes_again(environment: dict[str, str], output: str) -> None:
    fill(environment, COUNT)
    command = [*QSCTL, "consume", "Orders", "--count", "0", "-o", output]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with running(command, env=environment, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        for _ in range(3):
            process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"", "it ends quietly"
        assert process.wait(PATIENCE_S) == ExitStatus.OUTPUT_CLOSED
    rows = rest_of(environment)
    assert numbers(rows) == list(range(COUNT))
    assert rows[0]["redelivered"]


def test_a_closed_output_takes_nothing_out_of_the_queue(environment: dict[str, str], shell: Shell) -> None:
    fill(environment, 3)
    done = shell("qsctl consume Orders --count 0 >&-")
    assert done.returncode == ExitStatus.OUTPUT_FAILED
    assert "standard output cannot be written: Bad file descriptor" in done.stderr
    assert numbers(rest_of(environment)) == [0, 1, 2]


def test_what_was_printed_before_the_disk_was_full_does_not_come_again(
    environment: dict[str, str], shell: Shell, tmp_path: Path
) -> None:
    """A limit of the file's size stands for the full disk: the output does not fit, the files of the service do."""
    fill(environment, COUNT)
    file = tmp_path / "out.jsonl"
    done = shell(f"trap '' XFSZ; ulimit -f 700; qsctl consume Orders --count 0 -o jsonl > {file}")
    assert done.returncode == ExitStatus.OUTPUT_FAILED
    written = [json.loads(line) for line in file.read_text().splitlines()[:1000]]
    again = rest_of(environment)
    assert numbers(written) == list(range(1000))
    assert numbers(again) == list(range(1000, COUNT)), "the batch that was printed whole is acknowledged"


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), ("get", "data"), ("completion", "bash")], ids=" ".join
)
def test_a_failing_output_is_one_error_in_every_command(qsctl: Run, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = qsctl(*arguments, stdout=full)
    assert done.returncode == ExitStatus.OUTPUT_FAILED
    assert done.stderr.splitlines() == [
        "Error: standard output cannot be written: No space left on device",
        "Send it to a file or a terminal that can be written.",
    ]


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "2>&- <&-"])
def test_without_standard_error_the_exit_status_is_the_same(
    environment: dict[str, str], shell: Shell, closed: str
) -> None:
    assert shell(f"qsctl consume Oders {closed}").returncode == ExitStatus.NOT_FOUND
    assert shell(f"qsctl no-such-command {closed}").returncode == ExitStatus.USAGE


@pytest.mark.slow
def test_a_closed_standard_input_is_one_error(environment: dict[str, str], shell: Shell) -> None:
    for command in ("produce Orders", "produce Orders --lines", "create-queue --file -"):
        done = shell(f"qsctl {command} <&-")
        assert (done.returncode, done.stderr.splitlines()[0]) == (
            ExitStatus.NO,
            "Error: standard input cannot be read: Bad file descriptor",
        )


@pytest.mark.slow
def test_a_descriptor_that_was_closed_is_no_file_of_the_service(environment: dict[str, str], shell: Shell) -> None:
    """What goes to standard error must not be written into a store that got its number."""
    assert shell("qsctl create-queue Kept --persistent <&- 2>&- >&-").returncode == ExitStatus.OUTPUT_FAILED
    assert shell("qsctl produce Kept --text x <&- 2>&- >/dev/null").returncode == 0
    assert [row["payload"] for row in json.loads(command(environment, "get", "messages", "Kept", "-o", "json"))] == [
        "x"
    ]


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(("output", "encoding"), [(each, "latin-1") for each in FORMATS] + [("json", "ascii")])
def test_text_that_the_terminal_does_not_know_is_escaped(
    qsctl: Run, environment: dict[str, str], output: str, encoding: str
) -> None:
    command(environment, "produce", "Orders", "--text", WORDS)
    done = qsctl("consume", "Orders", "-o", output, encoding=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    match output:
        case "json" | "jsonl":
            document = json.loads(done.stdout)
            assert (document[0] if output == "json" else document)["payload"] == WORDS
        case "yaml":
            assert yaml.safe_load(done.stdout)[0]["payload"] == WORDS
        case _:
            assert "\\u20ac \\U0001f600 \\u6f22" in done.stdout
    assert rest_of(environment) == [], "it was printed, so it is acknowledged"


@pytest.mark.slow
def test_an_argument_that_is_no_utf_8_is_shown_escaped(environment: dict[str, str], shell: Shell) -> None:
    done = shell("qsctl consume $'Or\\xff'")
    assert done.returncode == ExitStatus.NOT_FOUND
    assert done.stderr.startswith("Error: there is no queue 'Or\\udcff'")
    assert shell("qsctl produce Orders --text $'\\xff'").returncode == 0
    assert [row["payload"] for row in rest_of(environment)] == ["/w=="]


@pytest.mark.slow
def test_a_killed_consume_has_acknowledged_nothing_that_it_did_not_print(environment: dict[str, str]) -> None:
    """Each round is killed when it has printed some lines; what it printed is in the pipe, whatever else it did."""
    fill(environment, 3_000)
    chance = random.Random(1)
    seen: dict[int, int] = {}
    for _ in range(6):
        consume = [*QSCTL, "consume", "Orders", "--count", "0", "-o", "jsonl"]
        with running(consume, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randrange(1, 800))]
            os.kill(process.pid, signal.SIGKILL)
            lines += process.stdout.readlines()
        count_rows(seen, [json.loads(line) for line in lines if line.endswith(b"\n")])
    count_rows(seen, rest_of(environment))
    assert sorted(seen) == list(range(3_000)), "none is lost"
    assert max(seen.values()) > 1, "some were printed and not acknowledged"


def count_rows(seen: dict[int, int], rows: Sequence[dict[str, Any]]) -> None:
    """Count what was printed; what was printed before is marked as redelivered."""
    for row in rows:
        number = int(row["payload"])
        assert row["redelivered"] or number not in seen, "printed twice without the flag"
        seen[number] = seen.get(number, 0) + 1


def test_each_sample_is_rejected_once_a_command_and_shown(environment: dict[str, str]) -> None:
    limits = ("--max-delivery-retries", "1", "--unacked-threshold", "1")
    command(environment, "create-queue", "Retried", *limits)
    command(environment, "produce", "Retried", "--lines", stdin="a\nb\nc\n")
    shown: list[tuple[str, int]] = []
    for count in ("0", "10"):
        rows = json.loads(command(environment, "consume", "Retried", "--reject", "--count", count, "-o", "json"))
        shown += [(row["payload"], row["attempt"]) for row in rows]
    assert shown == [("a", 1), ("b", 1), ("a", 2), ("b", 2)], "a queue lets one consumer hold two, each once a command"
    (status,) = json.loads(command(environment, "get", "status", "Retried", "-o", "json"))
    assert (status["failed_delivery_message_count"], status["current_message_count"]) == (2, 1)


def test_what_comes_through_a_slow_pipe_is_written_as_it_comes(environment: dict[str, str]) -> None:
    store = Path(environment["QSCTL_STATE_DIR"])
    produce = [*QSCTL, "produce", "Orders", "--lines"]
    with running(produce, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"one\ntwo\nhalf")
        process.stdin.flush()
        deadline = 6000
        while not any(b"two" in file.read_bytes() for file in store.rglob("*.db*") if file.is_file()):
            deadline -= 1
            assert deadline and process.poll() is None
            signal.sigtimedwait([], 0.02)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE_S) == ExitStatus.INTERRUPTED
        said = process.stderr.read().decode()
    # They are on the disk before the command knows of it; which moment it is interrupted in is the machine's choice.
    stated = re.fullmatch(
        r"Error: interrupted after (\d) samples(; (\d) more were on their way and may be written)?\n", said
    )
    assert stated, said
    assert int(stated[1]) + int(stated[3] or 0) == 2
    assert [row["payload"] for row in rest_of(environment)] == ["one", "two"]
