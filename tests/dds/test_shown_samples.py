"""`consume`, `request` and `reply` over DDS: nothing is acknowledged that was not shown, and names are as elsewhere."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from qsctl.errors import ExitStatus
from tests.commands import command_line
from tests.dds.domains import descriptors_of
from tests.dds.service_process import StartService
from tests.dds.shown_samples import QUEUES, command, fill, numbers, rest_of, rows_of
from tests.patience import PATIENCE_S
from tests.processes import run, running

QSCTL = (sys.executable, "-m", "qsctl")
QUOTES = """
<shared_reader_queue name="Quotes" session="s">
  <topic_name>QuoteTopic</topic_name><type_name>DDS::Octets</type_name>
  <reply_type>DDS::Octets</reply_type>
</shared_reader_queue>
"""

Qsctl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(domain: int) -> dict[str, str]:
    return {**os.environ, "QSCTL_SERVICE": f"dds:{domain}"}


@pytest.fixture
def qsctl(domain: int, environment: dict[str, str]) -> Qsctl:
    def run_qsctl(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return run([*QSCTL, *arguments], env=environment, pass_fds=descriptors_of(domain), **more)

    return run_qsctl


def status_of(domain: int) -> dict[str, Any]:
    (status,) = json.loads(command(domain, "get", "status", "Orders", "-o", "json"))
    assert isinstance(status, dict)
    return status


@pytest.mark.slow
def test_what_was_not_printed_comes_again_and_is_no_attempt(
    start_service: StartService, qsctl: Qsctl, environment: dict[str, str], domain: int
) -> None:
    """In a queue without retries: a failed delivery would be the end of a sample."""
    start_service(queues=QUEUES.format(retries=0))
    fill(domain, 3000)
    with open("/dev/full", "w") as full:
        done = qsctl("consume", "Orders", "--count", "0", stdout=full)
    assert done.returncode == ExitStatus.OUTPUT_FAILED
    line = f'"{sys.executable}" -m qsctl consume Orders --count 0 -o jsonl | head -n 3; exit ${{PIPESTATUS[0]}}'
    done = run(["bash", "-c", line], stdin=None, env=environment, pass_fds=descriptors_of(domain))
    assert (done.returncode, done.stderr) == (ExitStatus.OUTPUT_CLOSED, "")
    assert all(row["redelivered"] for row in rows_of(done.stdout)), "the first of them were nearly printed before"
    rows = rest_of(domain)
    assert numbers(rows) == list(range(3000))
    flagged = {int(row["payload"]) for row in rows if row["redelivered"]}
    assert {int(row["payload"]) for row in rows_of(done.stdout)} <= flagged


def test_without_acknowledgment_samples_come_again_and_no_attempt_is_counted(
    start_service: StartService, qsctl: Qsctl, domain: int
) -> None:
    start_service(queues=QUEUES.format(retries=0))
    fill(domain, 2)
    first = rows_of(qsctl("consume", "Orders", "--no-ack", "--timeout", "20s", "-o", "jsonl").stdout)
    assert [row["redelivered"] for row in first] == [False]
    rows = rest_of(domain)
    assert [(row["payload"], row["redelivered"]) for row in rows] == [("0", True), ("1", False)]


def test_each_sample_is_rejected_once_a_command_and_shown(
    start_service: StartService, qsctl: Qsctl, domain: int
) -> None:
    start_service(queues=QUEUES.format(retries=1))
    fill(domain, 3)
    shown: list[str] = []
    for count in ("0", "10"):
        done = qsctl("consume", "Orders", "--reject", "--count", count, "--timeout", "20s", "-o", "jsonl")
        shown += [row["payload"] for row in rows_of(done.stdout)]
    assert shown == ["0", "1", "2"] * 2
    status = status_of(domain)
    assert (status["current_message_count"], status["failed_delivery_message_count"]) == (0, 3)


def test_a_killed_consume_loses_nothing(start_service: StartService, environment: dict[str, str], domain: int) -> None:
    start_service(queues=QUEUES.format(retries=100))
    fill(domain, 3000)
    chance = random.Random(2)
    seen: dict[int, int] = {}
    for _ in range(3):
        with running(
            [*QSCTL, "consume", "Orders", "--count", "0", "--timeout", "20s", "-o", "jsonl"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, pass_fds=descriptors_of(domain),
        ) as process:  # fmt: skip
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randrange(1, 1000))]
            os.kill(process.pid, signal.SIGKILL)
            lines += process.stdout.readlines()
        count_rows(seen, [json.loads(line) for line in lines if line.endswith(b"\n")])
    deadline = time.monotonic() + 120
    # What the last one held comes when its lease is over, which may be after the rest was received.
    while status_of(domain)["current_message_count"] and time.monotonic() < deadline:
        count_rows(seen, rest_of(domain))
    assert sorted(seen) == list(range(3000)), "none is lost"
    assert max(seen.values()) > 1, "some were printed and not acknowledged"


def count_rows(seen: dict[int, int], rows: Sequence[dict[str, Any]]) -> None:
    """Count what was printed; what was printed before is marked as redelivered."""
    for row in rows:
        number = int(row["payload"])
        assert row["redelivered"] or number not in seen, "printed twice without the flag"
        seen[number] = seen.get(number, 0) + 1


@pytest.mark.slow
def test_request_and_reply_take_every_name_of_a_queue(
    start_service: StartService, qsctl: Qsctl, environment: dict[str, str], domain: int
) -> None:
    start_service(queues=QUOTES)
    for replying, asking in (("S/Quotes", "Quotes"), ("QuoteTopic@S", "P/S/Quotes")):
        with running(
            [*QSCTL, "reply", replying, "--text", "none for {}", "--count", "1", "--timeout", "60s"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, pass_fds=descriptors_of(domain),
        ) as replier:  # fmt: skip
            done = qsctl("request", asking, "--text", "EURUSD", "--timeout", "60s")
            assert (done.returncode, done.stdout, done.stderr) == (0, "none for EURUSD\n", "")
            assert replier.communicate(timeout=PATIENCE_S)[0] == b"1 answered, 0 rejected\n"
            assert replier.returncode == 0
    wrong = qsctl("request", "Quotess", "--text", "x")
    assert wrong.returncode == ExitStatus.NOT_FOUND
    assert "Did you mean P/S/Quotes" in wrong.stderr


@pytest.mark.slow
def test_a_reply_that_was_not_printed_waits_for_its_requester(
    start_service: StartService, qsctl: Qsctl, environment: dict[str, str], domain: int
) -> None:
    start_service(queues=QUOTES)
    with running(
        [*QSCTL, "reply", "Quotes", "--text", "none", "--count", "2", "--timeout", "60s"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment, pass_fds=descriptors_of(domain),
    ) as replier:  # fmt: skip
        with open("/dev/full", "w") as full:
            done = qsctl("request", "Quotes", "--text", "x", "--source-guid", "7", "--timeout", "60s", stdout=full)
        assert done.returncode == ExitStatus.OUTPUT_FAILED
        other = qsctl("request", "Quotes", "--text", "y", "--source-guid", "7", "--timeout", "60s")
        assert other.stdout == "none\n"
        assert replier.wait(PATIENCE_S) == 0
    nobody = qsctl("consume", "QuoteTopicReply@S", "--timeout", "1s")
    assert nobody.returncode == ExitStatus.NO, "it is not for whoever comes"
    done = qsctl(
        "consume", "QuoteTopicReply@S", "--source-guid", "7", "--timeout", "20s", "--count", "0", "-o", "jsonl"
    )
    (row,) = rows_of(done.stdout)
    assert (row["payload"], row["redelivered"]) == ("none", True)


def test_late_replies_wait_and_the_error_names_their_queue(start_service: StartService, qsctl: Qsctl) -> None:
    start_service(queues=QUOTES)
    done = qsctl("request", "Quotes", "--text", "x", "--source-guid", "7", "--timeout", "2s")
    assert done.returncode == ExitStatus.NO_ANSWER
    assert f"qsctl consume QuoteTopicReply@S --source-guid {'0' * 31}7" in done.stderr
    assert qsctl("reply", "Quotes", "--text", "late", "--count", "1", "--timeout", "20s").returncode == 0
    line = next(line for line in done.stderr.splitlines() if "qsctl consume" in line)
    words = line.partition("qsctl consume")[2].split()
    late = CliRunner().invoke(command_line(), ["consume", *words, "--timeout", "20s", "-o", "json"])
    assert [row["payload"] for row in json.loads(late.stdout)] == ["late"]
