"""`qsctl bench`: what it reports, and that it leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qsctl.client.administration import Administration
from qsctl.errors import ExitStatus
from tests.cli.shell import Shell
from tests.dds.conftest import domain, start_service
from tests.dds.service_process import StartService

assert domain
assert start_service

SHORT = ("--duration", "200ms", "--warm-up", "50ms")


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "state")


def test_bench_of_the_embedded_service_counts_each_sample(qsctl: Shell) -> None:
    done = qsctl("bench", *SHORT, "--rate", "200", "--size", "100", "-o", "json")
    assert done.status == ExitStatus.DONE, done.err
    found = done.document
    counts = found["counts"]
    assert counts["written"] + counts["overdue"] == 50
    assert counts["accepted"] == counts["received"] == counts["written"]
    assert [counts[name] for name in ("rejected", "unanswered", "redelivered", "missing")] == [0, 0, 0, 0]
    assert found["to_consumer"]["p99_us"] >= found["to_acknowledgment"]["p50_us"] > 0
    assert qsctl("get", "data", "-o", "json").document["queues"] == [], "the queue that it made is gone"


def test_bench_fails_where_a_figure_is_not_reached(qsctl: Shell) -> None:
    done = qsctl("bench", *SHORT, "--rate", "100", "--min-rate", "1000", "--max-p99", "1ns", "--persistent")
    assert done.status == ExitStatus.NO
    assert "samples/s were received, wanted are 1000" in done.out
    assert "the 99th percentile to the consumer is" in done.out


def test_bench_leaves_samples_of_others_alone(qsctl: Shell) -> None:
    assert qsctl("create-queue", "Orders").status == 0
    assert qsctl("produce", "Orders", "--text", "mine").status == 0
    done = qsctl("bench", "Orders", *SHORT)
    assert done.status == ExitStatus.USAGE
    assert "Orders holds samples" in done.err
    assert qsctl("flush-queue", "Orders").status == 0
    assert qsctl("bench", "Orders", *SHORT, "--rate", "50").status == ExitStatus.DONE
    assert len(qsctl("get", "data", "-o", "json").document["queues"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--duration", "0s"), "are out of range"),
        (("--consumers", "2"), "one consumer at a time"),
        (("Orders", "--persistent"), "--persistent applies to a queue that the benchmark creates"),
        (("--max-p99", "soon"), "--max-p99"),
    ],
)
def test_wrong_options_are_usage_errors(qsctl: Shell, arguments: tuple[str, ...], message: str) -> None:
    done = qsctl("bench", *arguments)
    assert done.status == ExitStatus.USAGE
    assert message in done.err
    assert qsctl("get", "data", "-o", "json").document["queues"] == []


def test_benchmark_is_recorded_for_reports(qsctl: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert qsctl("bench", *SHORT, "--rate", "100", "--record", str(folder)).status == ExitStatus.DONE
    assert json.loads((folder / "run.json").read_text())["model"] == "shared_reader_queue"


@pytest.mark.slow
def test_bench_over_dds_counts_each_sample(qsctl: Shell, start_service: StartService) -> None:
    service = start_service()
    done = qsctl(
        *("bench", "--service", f"dds:{service.domain}", "--timeout", "60s", "--rate", "200", "--producers", "2"),
        *("--duration", "500ms", "--warm-up", "100ms", "-o", "json"),
    )
    assert done.status == ExitStatus.DONE, done.err
    counts = done.document["counts"]
    assert counts["written"] + counts["overdue"] == 120
    assert counts["accepted"] == counts["received"] == counts["written"]
    assert not counts["missing"]
    names = [queue.queue_name for queue in Administration(service.connection()).hosted().queues]
    assert names == ["P/S/Orders"]
