"""What recording costs a running service at message level: the same service recorded and not, in turns, in one run.

At full load the producers are as fast as they can be; at half load they write at half of what the service reached
without a recording. A processor's time is that of the service's process, from the system's accounts; the recorder is a
process of its own and shown beside. Run it alone: `pytest tests/benchmarks/test_recording_overhead.py -s`.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from statistics import median
from typing import Any, Final

from qsctl.client.administration import Administration
from qsctl.core.admin.command import StartRecording
from qsctl.eventlog.reader import open_run
from tests.benchmarks.brokers import DOMAINS, QUEUE, run_peers, stop_service
from tests.benchmarks.ratios import keep_ratio
from tests.dds.service_process import ServiceProcess, eventually

COUNT: Final = int(os.environ.get("QSCTL_BENCHMARK_COUNT", "100000"))
ROUNDS: Final = int(os.environ.get("QSCTL_BENCHMARK_ROUNDS", "3"))
SIZE_BYTES: Final = 256
OVERHEAD_MAX: Final = 1.10
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def processor_s(pid: int) -> float:
    """Seconds of processors that a process has used; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def measured(service: ServiceProcess, count: int, rate: float, recorder: int | None) -> dict[str, Any]:
    before = processor_s(service.pid)
    figures = run_peers(("qsctl", str(service.domain)), count, SIZE_BYTES, 1, rate)
    figures["us_per_sample"] = (processor_s(service.pid) - before) / count * 1e6
    figures["recorder_us"] = processor_s(recorder) / count * 1e6 if recorder else 0.0
    return figures


def in_turns(service: ServiceProcess, count: int, rate: float, level: str, name: str) -> dict[str, dict[str, float]]:
    """Rounds without and with a recording; the median of each figure."""
    administration = Administration(service.connection())
    found: dict[str, list[dict[str, Any]]] = {"plain": [], "recorded": []}
    for turn in range(ROUNDS):
        found["plain"].append(measured(service, count, rate, None))
        folder = service.directory / f"{name}-{turn}"
        administration.start_recording(StartRecording(str(folder), level))
        recorder = int(re.findall(r"'recording'.* pid=(\d+)", service.log.read_text())[-1])
        assert eventually(lambda: administration.recordings()[0].body.bytes > 0)
        found["recorded"].append(measured(service, count, rate, recorder))
        administration.stop_recording()
        assert eventually(lambda: administration.recordings()[0].body.is_complete)
        info = open_run(folder).info
        assert info.complete, info.recording
        assert info.delivered_messages == count
    return {kind: {key: median(each[key] for each in rows) for key in rows[0]} for kind, rows in found.items()}


def show(what: str, found: dict[str, dict[str, float]]) -> None:
    for kind, figures in found.items():
        sys.stdout.write(
            f"\n{what:>14} {kind:>9}: {figures['samples_per_second']:>7.0f}/s, p50 {figures['p50_ms']:.2f} ms, "
            f"p99 {figures['p99_ms']:.2f} ms, service {figures['us_per_sample']:.1f} us a sample, "
            f"recorder {figures['recorder_us']:.1f} us a sample"
        )
    sys.stdout.write("\n")


def test_recording_costs_at_most_a_tenth_at_half_load(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path, next(DOMAINS), queues=QUEUE.format(kind="VOLATILE"))
    try:
        measured(service, COUNT // 5, 0.0, None)  # the first samples are not like the others
        full = in_turns(service, COUNT, 0.0, "messages", "full")
        show("full load", full)
        rate = full["plain"]["samples_per_second"] / 2
        half = in_turns(service, COUNT, rate, "messages", "half")
        show("half load", half)
        counters = in_turns(service, COUNT, rate, "counters", "counters")
        show("half, counters", counters)
    finally:
        stop_service(service)
    assert half["recorded"]["samples_per_second"] > 0.95 * rate
    cost = half["recorded"]["us_per_sample"] / half["plain"]["us_per_sample"]
    keep_ratio("a recorded sample to one that is not", cost, higher_is_better=False)
    assert half["recorded"]["us_per_sample"] <= OVERHEAD_MAX * half["plain"]["us_per_sample"]
