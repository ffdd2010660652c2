"""The HTTP server of the page: its routes, files and sockets, and its shutdown.

Decides the parts of the page. A part is a module of this package with `routes(context)` and `view(context)`; the view
is None if the part has nothing to show. It is listed in `_PARTS`, and its ES module in `views` of `static/app.js`.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

import anyio
import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from qsctl.errors import ExitStatus, QsctlError, Refused
from qsctl.web import _about as about
from qsctl.web import _cluster as cluster
from qsctl.web import _commands as commands
from qsctl.web import _engines as engines
from qsctl.web import _live as live
from qsctl.web import _queue as queue
from qsctl.web import _what_if as what_if
from qsctl.web._context import WebContext
from qsctl.web._refusal_page import refusal_page
from qsctl.web._security import API, Gate, PageAccess

_PARTS: Final = (live, what_if, queue, commands, cluster, engines)
STATIC: Final = Path(__file__).parent / "static"
_KINDS: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_CONNECTIONS_MAX: Final = 128
_HTTP_STATUS: Final = {
    ExitStatus.USAGE: 400,
    ExitStatus.NO: 400,
    ExitStatus.NOT_FOUND: 404,
    ExitStatus.REFUSED: 403,
    ExitStatus.NO_ANSWER: 504,
}
_END_S: Final = 3
"""Longest time that requests have to end at the shutdown of the server, in seconds."""


def create_app(context: WebContext, access: PageAccess) -> ASGIApp:
    """Return the application behind its access control.

    Args:
        context: the state that the parts share.
        access: the address and the secrets.
    """
    views = [found for part in _PARTS if (found := part.view(context)) is not None]
    assembled: list[BaseRoute] = [*_pages(access), *about.routes(context, views)]
    for part in _PARTS:
        assembled += part.routes(context)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            for feed in context.feeds:
                tasks.start_soon(feed.poll)
            yield
            tasks.cancel_scope.cancel()
        for feed in context.feeds:
            feed.source.close()
        if context.desk is not None:
            context.desk.close()
        for close in context.closed:
            await anyio.to_thread.run_sync(close)

    async def explained(_request: Request, error: Exception) -> Response:
        assert isinstance(error, QsctlError)
        found = {"message": error.message, "remedy": error.remedy, "status": int(error.exit_status)}
        return JSONResponse({"error": found}, _HTTP_STATUS.get(error.exit_status, 500))

    async def failed(_request: Request, error: Exception) -> Response:
        context.refused["internal error"] += 1
        words = f"Internal error: {type(error).__name__}. This is a fault of qsctl: see the terminal."
        return JSONResponse({"error": {"message": words, "remedy": "", "status": 70}}, 500)

    async def unknown(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if request.url.path.startswith(API):
            words = f"There is nothing at {request.url.path[:100]} for {request.method[:8]} here."
            return JSONResponse({"error": {"message": words, "remedy": "", "status": 4}}, error.status_code)
        return Response(refusal_page("There is nothing at this address."), error.status_code, media_type="text/html")

    app = Starlette(
        routes=assembled,
        lifespan=lifespan,
        exception_handlers={QsctlError: explained, HTTPException: unknown, Exception: failed},
    )
    return Gate(app, access, context)


def _pages(access: PageAccess) -> list[BaseRoute]:
    """Return the routes of the page and its files, which are read once, so that no request's path reaches the disk."""
    page = (STATIC / "index.html").read_bytes()
    files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _KINDS}

    async def index(_request: Request) -> Response:
        return Response(page, media_type="text/html")

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            raise HTTPException(404)
        return Response(files[name], media_type=_KINDS[Path(name).suffix])

    async def opened(request: Request) -> Response:
        if not access.redeem(request.query_params.get("ticket", "")):
            return Response(
                refusal_page("This address was used already. Open the one that qsctl web printed."), 403,
                media_type="text/html",
            )  # fmt: skip
        return RedirectResponse(access.address, 303)

    return [Route("/", index), Route("/open", opened), Route("/static/{name}", file)]


def bind(port: int) -> list[socket.socket]:
    """Return listening sockets on a port of loopback: 127.0.0.1, and ::1 if the machine has it.

    Args:
        port: the port number; 0: a free one.

    Raises:
        Refused: another program uses the port.
    """
    first = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        first.bind(("127.0.0.1", port))
        first.listen()  # so that a browser that connects before the server runs waits
    except OSError as error:
        first.close()
        raise Refused(
            f"port {port} of 127.0.0.1 cannot be used: {error.strerror}", remedy="Leave --port out for a free one."
        ) from None
    sockets = [first]
    with suppress(OSError):  # without IPv6, or if the port is in use there; browsers also try 127.0.0.1
        second = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        sockets.append(second)
        second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        second.bind(("::1", first.getsockname()[1]))
        second.listen()
        return sockets
    for each in sockets[1:]:
        each.close()
    return sockets[:1]


class PageServer(uvicorn.Server):
    """A server that ends its open event streams when it stops; an interrupt is its regular end.

    Args:
        app: the application.
        context: has the event that ends the streams.
    """

    def __init__(self, app: ASGIApp, context: WebContext) -> None:
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            loop="asyncio",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS_MAX,
            timeout_graceful_shutdown=_END_S,
        )
        super().__init__(config)
        self._context = context

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown; a second interrupt ends the server at once."""
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # so that they are not raised again after the end

    async def main_loop(self) -> None:
        """Serve until a shutdown is requested, then end the streams."""
        await super().main_loop()
        self._context.ending.set()
