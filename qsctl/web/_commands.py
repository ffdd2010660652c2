"""Commands that change queues from the page: requeue, move, flush; refused unless `--allow-changes` is given.

Decides which command line is run. The page sends fields; the server builds the command line from them and returns it
with the output of a dry run. To run it, the page sends the fields with the line that was shown: the line is built again
and must be equal. It runs as a process without a shell, so that a user who copies the line runs the same command.
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
from qsctl.web._context import PageView, WebContext
from qsctl.web._desk import ServiceDesk

_OUTPUT_CHARACTERS: Final = 65_536


class CommandFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a command, sent by the page."""

    action: Literal["flush", "move", "requeue"]
    queue: str
    select: str = ""
    to: str = ""
    came_from: str = ""
    reason: Literal["", "LIFESPAN", "MAX_RETRIES"] = ""
    limit: int = 0
    line: str = ""
    """The command line that the user confirmed; empty in the request for a dry run."""


def view(_context: WebContext) -> PageView | None:
    """Return None: the page of a queue shows the commands, so they have no view of their own."""
    return None


def routes(context: WebContext) -> list[BaseRoute]:
    """Return the routes of the dry run and the run; none without a service."""
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
    """Parse the fields of a command from a request.

    Raises:
        Refused: the server was started without `--allow-changes`.
        UsageError: the body is not a command.
    """
    if not context.allow_changes:
        context.refused["changes"] += 1
        raise Refused(
            "this page may not change queues, because `qsctl web` was started without --allow-changes",
            remedy="Start `qsctl web` with --allow-changes.",
        )
    try:
        return msgspec.json.decode(await request.body(), type=CommandFields)
    except msgspec.MsgspecError as error:
        raise UsageError(f"the request is not a command: {error}", remedy="Reload the page.") from None


def words_of(fields: CommandFields, desk: ServiceDesk) -> list[str]:
    """Return the arguments of the command line, without the program.

    Raises:
        UsageError: a queue is not named, a name would be parsed as an option, or the selector is invalid.
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
    """Return the arguments as a command line, quoted for a shell."""
    return shlex.join(["qsctl", *words])


async def _run(words: list[str]) -> dict[str, Any]:
    """Run the command; return its exit status and its output."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    done = await anyio.run_process(
        [sys.executable, "-m", "qsctl", *words], stdin=subprocess.DEVNULL, check=False, env=environment
    )
    printed = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    return {"status": done.returncode, "printed": printed[:_OUTPUT_CHARACTERS]}
