"""Samples a second of programs in C through a queue, beside the wrappers' frames and a bare topic, in one run.

The same orders go from one producer to one consumer: over a topic without a service; as plain samples and with numbers
of their own through a volatile queue, each acknowledged by a program in C; and in the wrappers' frames through the same
queue. In turns; medians count. The service's processor time a sample is shown beside, for it depends less on what else
the machine does. Run it alone: `pytest tests/benchmarks/test_foreign.py -s`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import pytest

from tests.benchmarks.ratios import keep_ratio
from tests.dds.c_peer import COMPILER, needs_c
from tests.dds.domains import claim_domain, release_domain
from tests.dds.foreign import FOREIGN_ENVIRONMENT, ForeignService, build_c
from tests.patience import PATIENCE_S
from tests.processes import run, running

HERE = Path(__file__).parent
COUNT = int(os.environ.get("QSCTL_BENCHMARK_FOREIGN", "50000"))
ROUNDS = 5
TIMES_A_FRAME = 20
"""A plain sample is a message of its own, as is each acknowledgment; a frame carries hundreds."""


class VolatileService(ForeignService):
    """The fixture's queue, which keeps nothing on the disk: what is measured is the way."""

    @staticmethod
    def changed(text: str) -> str:
        return text.replace("PERSISTENT", "VOLATILE").replace("<value>500<", "<value>1000<")


@pytest.fixture
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("foreign")
    made = build_c(directory, "consumer", "producer", "plain_producer")
    source = str(HERE / "bare_topic.c")
    command = [str(COMPILER), "-O1", f"-I{directory}", "-o", "bare_topic", source, "order.c", "-lddsc"]
    run(command, cwd=directory, check=True)
    return made | {"bare_topic": directory / "bare_topic"}


def samples_a_second(consumer: Sequence[object], producer: Sequence[object]) -> float:
    """From the first sample to the last, as the consumer prints them."""
    pipe = subprocess.PIPE
    with running([str(each) for each in consumer], env=FOREIGN_ENVIRONMENT, stdout=pipe, stderr=pipe) as consuming:
        assert consuming.stderr is not None
        assert consuming.stdout is not None
        assert consuming.stderr.readline() == b"ready\n"
        with running([str(each) for each in producer], env=FOREIGN_ENVIRONMENT, stdout=subprocess.DEVNULL) as producing:
            lines = iter(consuming.stdout.readline, b"")
            next(lines)
            begun = time.monotonic()
            for at, _ in enumerate(lines, start=2):
                if at == COUNT:
                    break
            spent_s = time.monotonic() - begun
            assert producing.wait(PATIENCE_S) == 0
    return (COUNT - 1) / spent_s


def processor_s(process_id: int) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@needs_c
def test_c_through_a_queue_beside_frames_and_a_bare_topic(tmp_path: Path, domain: int, built: dict[str, Path]) -> None:
    service = VolatileService(tmp_path, domain)
    peer = [sys.executable, str(HERE / "wrapper_peer.py")]
    consumer = [built["consumer"], domain, "Orders", "Desk"]
    ways: dict[str, tuple[list[object], list[object]]] = {
        "bare topic, C to C": (
            [built["bare_topic"], "read", domain, COUNT],
            [built["bare_topic"], "write", domain, COUNT],
        ),
        "queue, plain samples, C to C": (consumer, [built["plain_producer"], domain, "Orders", COUNT]),
        "queue, numbered samples, C to C": (consumer, [built["producer"], domain, "Orders", COUNT]),
        "queue, frames of the wrappers": ([*peer, "consume", domain, COUNT], [*peer, "produce", domain, COUNT]),
    }
    rates: dict[str, list[float]] = {way: [] for way in ways}
    costs: dict[str, list[float]] = {way: [] for way in ways}
    try:
        for _ in range(ROUNDS):
            for way, (consuming, producing) in ways.items():
                before_s = processor_s(service.pid)
                rates[way].append(samples_a_second(consuming, producing))
                costs[way].append((processor_s(service.pid) - before_s) / COUNT)
        assert service.stop() == 0
    finally:
        service.end()
    bare = median(rates["bare topic, C to C"])
    for way, each in rates.items():
        sys.stdout.write(
            f"\n{way:>34}: {median(each):>9,.0f} samples/s, {median(each) / bare:.3f} of the bare topic; "
            f"{median(costs[way]) * 1e6:5.1f} µs of the service a sample"
        )
    costs_of_frames = median(costs["queue, frames of the wrappers"])
    times = median(costs["queue, plain samples, C to C"]) / costs_of_frames
    sys.stdout.write(f"\na plain sample costs the service {times:.1f} times what one in a frame does\n")
    keep_ratio("a plain sample to one in a frame", times, higher_is_better=False)
    assert times <= TIMES_A_FRAME
