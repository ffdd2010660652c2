"""A live service is recorded under a mixed load over DDS; its replay without a change is equal.

`QSCTL_TEST_LIVE_REPLAYS` is how many random configurations are tried, `QSCTL_TEST_LIVE_SECONDS` for how long each.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from qsctl.eventlog.run_folder import RunStatus, read_run_info
from qsctl.sim.replay.recording import read_recording
from qsctl.sim.replay.replay import replay
from tests.campaigns import trials
from tests.dds.mixed_load import Consumers, Load, Producers
from tests.dds.service_process import StartService
from tests.patience import PATIENCE_S, eventually
from tests.processes import running

CONFIGURATIONS = trials("QSCTL_TEST_LIVE_REPLAYS", 1, 20)
SECONDS = float(os.environ.get("QSCTL_TEST_LIVE_SECONDS", "1.5"))
ROOT = Path(__file__).parent.parent.parent

QUEUES = """
<dead_letter_shared_reader_queue name="Dead" session="s"><topic_name>Dead</topic_name></dead_letter_shared_reader_queue>
<shared_reader_queue name="Orders" session="s" dead_letter_queue="Dead">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos>
    <distribution><kind>ROUND_ROBIN</kind><property><value><element>
      <name>UNACKED_THRESHOLD</name><value>{threshold}</value></element></value></property></distribution>
    <redelivery><max_delivery_retries>{retries}</max_delivery_retries>
      <response_timeout><duration><sec>0</sec><nanosec>{timeout_ns}</nanosec></duration></response_timeout></redelivery>
    <resource_limits><queue_allocation_settings><max_count>{max_count}</max_count></queue_allocation_settings>
    </resource_limits>
  </queue_qos>
</shared_reader_queue>
<shared_reader_queue name="Jobs" session="t">
  <topic_name>Jobs</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos>
    <distribution><kind>ROUND_ROBIN</kind><property><value><element>
      <name>UNACKED_THRESHOLD</name><value>0</value></element></value></property></distribution>
    <resource_limits><queue_allocation_settings><max_count>{jobs_max_count}</max_count></queue_allocation_settings>
      <replacement_policy><kind>WAIT_WITHOUT_REPLACEMENT</kind></replacement_policy></resource_limits>
  </queue_qos>
</shared_reader_queue>
"""


@pytest.mark.slow
@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(1, CONFIGURATIONS + 1))
def test_replay_of_a_live_recording_is_equal(
    seed: int, tmp_path: Path, domain: int, start_service: StartService
) -> None:
    draw = random.Random(seed)
    queues = QUEUES.format(
        threshold=draw.choice([0, 1, 2, 5]),
        retries=draw.choice([0, 1, 3]),
        timeout_ns=draw.choice([30, 60, 150]) * 1_000_000,
        max_count=draw.choice([5, 20, 60]),
        jobs_max_count=draw.choice([3, 20]),
    )
    recording = tmp_path / "recording"
    service = start_service(
        "--record", str(recording), queues=queues, sessions='<session name="s"/><session name="t"/>'
    )
    load = Load(
        domain,
        seed,
        SECONDS,
        [
            Producers("Orders", 2, draw.choice([60.0, 90.0]), lifespan_ms=draw.choice([30, 100])),
            Producers("Jobs", 2, 50.0),
        ],
        [
            Consumers("Orders", draw.choice([2, 3]), 12.0, rejects=0.1, silent=0.02, leaves_after_s=SECONDS / 2),
            Consumers("Jobs", 2, 14.0),
        ],
        rest_s=0.5,
    )
    run_load(load, tmp_path)
    service.stop()
    assert eventually(lambda: read_run_info(recording).status is RunStatus.COMPLETE)
    rows = read_recording(recording)
    assert len(rows.deliveries) > 50 * SECONDS
    assert {row.answer for row in rows.deliveries} >= {"acknowledged", "rejected"}
    difference = replay(recording, tmp_path / "replay").difference
    assert difference.lines == ()
    assert difference.is_equal


def run_load(load: Load, directory: Path) -> None:
    """Run both programs of a load, from the same instant on, to their end."""
    file = directory / "load.json"
    file.write_bytes(msgspec.json.encode(load))
    programs: list[subprocess.Popen[str]] = []
    with_programs = [
        running(
            [sys.executable, "-m", "tests.dds.mixed_load", which, str(file)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )
        for which in ("consumers", "producers")
    ]  # fmt: skip
    with with_programs[0] as consumers, with_programs[1] as producers:
        programs += [consumers, producers]
        for each in programs:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in programs:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        for each in programs:
            assert each.wait(load.duration_s + PATIENCE_S) == 0
