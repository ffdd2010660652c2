"""An engine to be watched: its database, and listings that a timer takes."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from qsctl.core.integration.database import stored
from qsctl.core.integration.message import Flag, Message, MessageId, State
from qsctl.core.integration.records import STREAM, Started
from qsctl.sim.engine.recovery_store import RecoveryStore
from tests.commands import command_line

SECOND_NS = 10**9


def message(number: int, state: State = State.OUTBOUND_POST_TPS, **more: object) -> Message:
    mid = MessageId(0, 1, number)
    values: dict[str, object] = {
        "serial": number, "mid": mid, "source_mid": mid, "state": state, "position": number, "process": "p",
        "owner": "lab", "source": "adt", "destination": "lab", "flags": Flag.USERDB, "payload": b"x" * 2048,
        "created_at_ns": number * SECOND_NS, "entered_at_ns": number * SECOND_NS,
    }  # fmt: skip
    return Message(**{**values, **more})  # type: ignore[arg-type]


def site(path: Path) -> Path:
    """Store ten messages for a laboratory, one before translation, and five that failed; the clock is at 60 s."""
    store = RecoveryStore(path)
    held = [
        *(message(number) for number in range(1, 11)),
        message(11, State.PRE_TRANSLATION, owner="p_xlate", destination="", source="orders"),
        *(message(number, error=303 if number < 15 else 405) for number in range(12, 17)),
    ]
    store.append([Started(STREAM, 1, 1, 60 * SECOND_NS), *map(stored, held)])
    store.close()
    return path


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(command_line(), [str(each) for each in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def timer(folder: Path, depths: list[int]) -> Path:
    """Write a listing a minute: `depths` messages, the oldest of which went out since the one before."""
    folder.mkdir()
    for minute, depth in enumerate(depths):
        lines = [f"12:00:00 [0.0.{1000 - each}] P D N 5120 11 594 adt lab\n" for each in range(depth)]
        file = folder / f"rec-20261122-12{minute:02}.txt"
        file.write_text("".join([*lines, "\n", f"Total: {depth} messages\n"]), encoding="utf-8")
    return folder
