"""How long a configuration takes: checking and loading a file of a thousand queues."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qsctl.config.load import judge_files, load_configuration

QUEUES = 1000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    queues = "".join(
        f"""
        <shared_reader_queue name="Q{at}" session="A{at % 4}">
          <topic_name>T{at}</topic_name>
          <type_name>Foo</type_name>
          <datareader_qos base_name="L::R"/>
          <queue_qos>
            <lifespan><duration><sec>{at + 1}</sec></duration></lifespan>
            <redelivery>
              <max_delivery_retries>3</max_delivery_retries>
              <response_timeout><duration><sec>10</sec><nanosec>0</nanosec></duration></response_timeout>
            </redelivery>
            <resource_limits>
              <queue_allocation_settings><max_count>{at + 1}</max_count></queue_allocation_settings>
            </resource_limits>
          </queue_qos>
        </shared_reader_queue>"""
        for at in range(QUEUES)
    )
    sessions = "".join(f'<session name="A{at}"/>' for at in range(4))
    path = tmp_path_factory.mktemp("config") / "large.xml"
    path.write_text(
        f"""<dds>
  <types><struct name="Foo"><member name="x" type="int32"/></struct></types>
  <qos_library name="L"><qos_profile name="R"><datareader_qos><resource_limits><max_samples>9</max_samples>
  </resource_limits></datareader_qos></qos_profile></qos_library>
  <queuing_service name="S">
    <domain_participant name="P">
      <domain_id>0</domain_id>
      <shared_subscriber name="U">
        <session_settings>{sessions}</session_settings>{queues}
      </shared_subscriber>
    </domain_participant>
  </queuing_service>
</dds>"""
    )
    return path


def options(path: Path) -> Any:
    return {"configuration_name": None, "variables": {}, "environment": {}, "working_directory": path.parent}


def test_check_a_file_of_a_thousand_queues(benchmark: Any, large: Path) -> None:
    assert benchmark(judge_files, [large], **options(large)).problems == ()


def test_load_a_file_of_a_thousand_queues(benchmark: Any, large: Path) -> None:
    loaded = benchmark(load_configuration, [large], **options(large))
    assert len(loaded.configuration.service.participants[0].subscribers[0].queues) == QUEUES


def test_validate_command_on_a_thousand_queues_in_two_seconds(benchmark: Any, large: Path) -> None:
    def validate() -> None:
        command = [sys.executable, "-m", "qsctl", "validate", str(large), "--no-default-files"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")

    benchmark.pedantic(validate, rounds=5)
    assert benchmark.stats.stats.median <= 2.0
