"""Commands against a cluster over DDS."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any

from typer.testing import CliRunner

from tests.commands import command_line
from tests.dds.service_process import ServiceProcess
from tests.patience import PATIENCE_S


class Shell:
    """Commands to the services of a domain."""

    def __init__(self, domain: int) -> None:
        self._service = ("--service", f"dds:{domain}")
        self._app = command_line()

    def __call__(self, *arguments: str) -> str:
        return CliRunner().invoke(self._app, [*arguments, *self._service]).stdout

    def status(self, *arguments: str) -> int:
        return CliRunner().invoke(self._app, [*arguments, *self._service]).exit_code

    def document(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))


def produced(qsctl: Shell, text: str, *options: str) -> tuple[int, int]:
    """How many samples of one were accepted, and rejected."""
    (queue,) = qsctl.document("produce", "Orders", "--text", text, *options)["queues"]
    return queue["accepted"], queue["rejected"]


def figures(service: ServiceProcess) -> dict[str, float]:
    """The gauges of the persistent queue for Prometheus; they are made once a second."""
    port = re.findall(r"metrics_port=(\d+)", service.log.read_text())[-1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r'qsctl_queue_(\w+){queue="P/S/Orders"} (\S+)', text)}


def replicas(qsctl: Shell) -> list[dict[str, Any]]:
    """The replicas of the persistent queue that answer."""
    found: list[dict[str, Any]] = qsctl.document("get", "replication", "Orders")
    return found
