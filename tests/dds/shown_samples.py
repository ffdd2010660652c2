"""Samples of one queue that commands over DDS print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from typer.testing import CliRunner

from qsctl.errors import ExitStatus
from tests.commands import command_line

QUEUES = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><redelivery><max_delivery_retries>{retries}</max_delivery_retries></redelivery></queue_qos>
</shared_reader_queue>
"""


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def command(domain: int, *arguments: str, stdin: str | None = None) -> str:
    """A command in this process, for what surrounds the one under test; its output."""
    done = CliRunner().invoke(command_line(), list(arguments), input=stdin, env={"QSCTL_SERVICE": f"dds:{domain}"})
    assert done.exit_code in (ExitStatus.DONE, ExitStatus.NO), done.stderr
    return done.stdout


def rest_of(domain: int) -> list[dict[str, Any]]:
    return rows_of(command(domain, "consume", "Orders", "--count", "0", "-o", "jsonl", "--timeout", "20s"))


def fill(domain: int, count: int) -> None:
    command(domain, "produce", "Orders", "--lines", stdin="\n".join(map(str, range(count))))


def numbers(rows: Sequence[dict[str, Any]]) -> list[int]:
    return sorted(int(row["payload"]) for row in rows)
