"""Commands about state directories of earlier versions."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from tests.commands import command_line
from tests.earlier_formats import CONFIGURATION

QUEUES = {
    "created": ("DomainParticipant", "SharedSubscriber", ("InLog", "InDatabase", "Volatile")),
    "configured": ("P", "S", ("InLog", "InDatabase", "Volatile", "Created")),
}


def run(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(command_line(), list(arguments))
    assert done.exit_code == status, done.output
    return done.output


def location(kind: str, directory: Path) -> list[str]:
    service = "embedded:" if kind == "created" else f"embedded:{CONFIGURATION}"
    return ["--service", service, "--state-dir", str(directory)]


def assert_all_there(kind: str, directory: Path) -> None:
    """Three samples a queue, of which the first was delivered before; and what was rejected is a dead letter."""
    *_, queues = QUEUES[kind]
    for queue in queues:
        shown = run("peek", queue, "-n", "9", "-o", "{{ payload }}", *location(kind, directory))
        assert shown.split("\n")[:-1] == [f"{text} of {queue}" for text in ("held", "second", "third")], queue
    letters = run("peek", "Letters", "-n", "9", "-o", "{{ payload }}", *location(kind, directory))
    assert set(letters.split("\n")[:-1]) == {"refused of InLog", "refused of InDatabase"}
