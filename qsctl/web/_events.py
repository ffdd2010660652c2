"""Responses with server-sent events.

Decides the cost of a slow reader. An event is built only when the connection has accepted the previous one; a slow
reader thus misses events, and none is buffered for it. A reader that accepts nothing for a while is disconnected.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import msgspec
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from qsctl.web._context import STREAMS_MAX, WebContext

_SLOWEST_S: Final = 20.0
"""Longest time until a reader must accept an event, in seconds."""


class EventStream(Response):
    """A response that streams events, each a JSON document.

    Args:
        events: yields the events; None where nothing is new: a keep-alive comment is sent, to detect a dead connection.
        context: limits and counts the streams.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[Any], context: WebContext) -> None:
        super().__init__(status_code=200)
        self._events = events
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the reader disconnects, is too slow, or the server ends."""
        if self._context.stream_count >= STREAMS_MAX:
            self._context.refused["streams"] += 1
            words = {"message": f"{STREAMS_MAX} pages are open already", "remedy": "Close one.", "status": 7}
            await JSONResponse({"error": words}, 503)(scope, receive, send)
            return
        self._context.stream_count += 1
        is_whole = False
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
                }
            )
            async with anyio.create_task_group() as tasks:

                async def until(left: Any) -> None:
                    await left()
                    tasks.cancel_scope.cancel()

                async def reader_left() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        pass

                tasks.start_soon(until, reader_left)
                tasks.start_soon(until, self._context.ending.wait)
                is_whole = await self._pass_on(send)
                tasks.cancel_scope.cancel()
            if is_whole or self._context.ending.is_set():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._context.stream_count -= 1

    async def _pass_on(self, send: Send) -> bool:
        """Send the events; return whether the reader accepted all of them."""
        async for event in self._events:
            octets = b": still here\n\n" if event is None else b"data: " + msgspec.json.encode(event) + b"\n\n"
            with anyio.move_on_after(_SLOWEST_S) as sending:
                await send({"type": "http.response.body", "body": octets, "more_body": True})
            if sending.cancelled_caught:
                self._context.refused["slow reader"] += 1
                return False  # the response has no end, so the server closes the connection
        return True
