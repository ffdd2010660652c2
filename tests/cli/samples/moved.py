"""What a move of samples leaves, and what it reports."""

from __future__ import annotations

from typing import Any

from tests.cli.shell import Outcome, Shell


def held(qsctl: Shell, queue: str) -> list[dict[str, Any]]:
    done = qsctl("get", "messages", queue, "-o", "json")
    assert done.status == 0, done.err
    rows: list[dict[str, Any]] = done.document
    return rows


def contents(qsctl: Shell, queue: str) -> list[str]:
    return [row["payload"] for row in held(qsctl, queue)]


def error_of(outcome: Outcome) -> str:
    return " ".join(outcome.err.split())
