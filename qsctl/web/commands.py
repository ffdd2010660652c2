"""Commands that the page runs: requeue, move, flush; only where the page may change queues.

Decides: what is run. The page sends fields, the server makes the command line of them, and shows it with what it would
hit. To run it, the page sends the fields with the line that was shown: the line is made again, and must be the same. It
runs as a process, without a shell, exactly as it is shown: a person who copies it runs the same.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import Any, Final, Literal

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from qsctl.cli.administer.snippets import checked_selector
from qsctl.errors import Refused, UsageError
from qsctl.web.context import PageView, WebContext
from qsctl.web.desk import ServiceDesk

_OUTPUT_CHARACTERS: Final = 65_536


class CommandFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a command, as the page sends them."""

    action: Literal["flush", "move", "requeue"]
    queue: str
    select: str = ""
    to: str = ""
    came_from: str = ""
    reason: Literal["", "LIFESPAN", "MAX_RETRIES"] = ""
    limit: int = 0
    line: str = ""
    """The line that was shown; empty: it is to be shown."""


def view(_context: WebContext) -> PageView | None:
    """Return None: commands belong to the page of a queue."""
    return None


def routes(context: WebContext) -> list[BaseRoute]:
    """Return the routes, where there is a service."""
    desk = context.desk
    if desk is None:
        return []
    running = anyio.Lock()

    async def trial(request: Request) -> Response:
        fields = await _fields_of(request, context)
        words = words_of(fields, desk)
        return JSONResponse({"line": line_of(words), **await _run([*words, "--dry-run"])})

    async def run(request: Request) -> Response:
        fields = await _fields_of(request, context)
        words = words_of(fields, desk)
        if fields.line != line_of(words):
            raise Refused("the command is not the one that was shown", remedy="Close the dialog and open it again.")
        try:
            running.acquire_nowait()
        except anyio.WouldBlock:
            raise Refused("another command of the page is running", remedy="Wait until it has ended.") from None
        try:
            return JSONResponse({"line": fields.line, **await _run(words)})
        finally:
            running.release()

    return [
        Route("/api/commands/trial", trial, methods=["POST"]),
        Route("/api/commands/run", run, methods=["POST"]),
    ]


async def _fields_of(request: Request, context: WebContext) -> CommandFields:
    """Return the fields of a request.

    Raises:
        Refused: the page may change nothing.
        UsageError: they are not those of a command.
    """
    if not context.allow_changes:
        context.refused["changes"] += 1
        raise Refused("this page changes nothing", remedy="Start `qsctl web` with --allow-changes.")
    try:
        return msgspec.json.decode(await request.body(), type=CommandFields)
    except msgspec.MsgspecError as error:
        raise UsageError(f"the request is no command: {error}", remedy="Reload the page.") from None


def words_of(fields: CommandFields, desk: ServiceDesk) -> list[str]:
    """Return the words of the command line, without the program.

    Raises:
        UsageError: a queue is not named, a name would be read as an option, or the selector is wrong.
    """
    for what, name in (("queue", fields.queue), ("queue to move to", fields.to), ("queue of --from", fields.came_from)):
        if name.startswith("-") or any(not character.isprintable() for character in name):
            raise UsageError(f"the {what} is {name!r}", remedy="Name a queue of the list.")
    if not fields.queue or (fields.action == "move" and not fields.to):
        raise UsageError("a queue is not named", remedy="Name it.")
    if fields.limit < 0:
        raise UsageError(f"the limit is {fields.limit}", remedy="Write 0 for all samples, or their largest number.")
    command = {"flush": "flush-queue"}.get(fields.action, fields.action)
    words = [command, fields.queue, *([fields.to] if fields.action == "move" else [])]
    if selector := checked_selector(fields.select):
        words += ["--select", selector]
    if fields.action == "flush":
        words += ["--yes"]
    elif fields.limit:
        words += ["--limit", str(fields.limit)]
    if fields.action == "requeue":
        words += ["--from", fields.came_from] if fields.came_from else []
        words += ["--reason", fields.reason] if fields.reason else []
    return [*words, *desk.words()]


def line_of(words: list[str]) -> str:
    """Return the command line as a shell reads it."""
    return shlex.join(["qsctl", *words])


async def _run(words: list[str]) -> dict[str, Any]:
    """Run the command and return its exit status, and what it printed."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    done = await anyio.run_process(
        [sys.executable, "-m", "qsctl", *words], stdin=subprocess.DEVNULL, check=False, env=environment
    )
    printed = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    return {"status": done.returncode, "printed": printed[:_OUTPUT_CHARACTERS]}
