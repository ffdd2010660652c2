"""Stored messages of an engine, and the commands of `qsctl engine` in this process."""

from __future__ import annotations

from click.testing import Result
from typer.testing import CliRunner

from qsctl.core.integration.message import Flag, Message, MessageId, State
from tests.commands import command_line

SECOND_NS = 10**9


def message(number: int, state: State, **more: object) -> Message:
    destination = "" if state < State.POST_TRANSLATION else "lab_out"
    values: dict[str, object] = {
        "serial": number, "mid": MessageId(0, 1, number), "source_mid": MessageId(0, 1, number), "state": state,
        "position": number, "process": "clinical", "owner": destination or "adt_in", "source": "adt_in",
        "destination": destination, "flags": Flag.USERDB, "created_at_ns": number * SECOND_NS,
        "entered_at_ns": number * SECOND_NS, "payload": f"MSH|{number}\r".encode(),
    }  # fmt: skip
    return Message(**{**values, **more})  # type: ignore[arg-type]


APP = command_line()


def run(*arguments: object, stdin: bytes | None = None) -> Result:
    done = CliRunner().invoke(APP, ["engine", *map(str, arguments)], input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done
