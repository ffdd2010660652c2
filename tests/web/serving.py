"""The page on a free port of loopback, in a thread, and requests of any form."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from typing import Any

from qsctl.cli.top.look import Figure, Look
from qsctl.web._context import WebContext
from qsctl.web._feed import PolledSource
from qsctl.web._security import PageAccess
from qsctl.web._server import PageServer, bind, create_app


class MadeUpSource:
    """A source whose looks a test decides."""

    def __init__(self, look: Callable[[], Look]) -> None:
        self.make = look
        self.looked_count = 0

    def title(self) -> str:
        return "made up"

    def look(self, of: str = "") -> Look:
        self.looked_count += 1
        return self.make()

    def steer(self, speed_steps: int, seek_steps: int, *, is_stopped: bool) -> None:
        pass

    def close(self) -> None:
        pass


def look_of(*rows: dict[str, Any]) -> Look:
    return Look("Queue", (Figure("depth", "Depth", "Depth"), Figure("in_per_s", "In/s", "In/s")), rows)


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass
class Page:
    access: PageAccess
    context: WebContext

    def ask(self, method: str, path: str, headers: Mapping[str, str] = {}, body: Any = None) -> Answer:
        """Send exactly these headers, a Host of ours and the length of the body where they are not among them."""
        with contextlib.closing(self.connection()) as connection:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            all_headers = {"host": f"127.0.0.1:{self.access.port}", **headers}
            if isinstance(body, bytes) and body:
                all_headers.setdefault("content-length", str(len(body)))
            for name, value in all_headers.items():
                connection.putheader(name, value.encode("latin-1"))
            connection.endheaders(body if body else None, encode_chunked=not isinstance(body, bytes | None))
            response = connection.getresponse()
            return Answer(response.status, {n.lower(): v for n, v in response.getheaders()}, response.read())

    def get(self, path: str) -> Answer:
        return self.ask("GET", path, {"x-qsctl-token": self.access.token})

    def post(self, path: str, document: Any) -> Answer:
        headers = {"x-qsctl-token": self.access.token, "content-type": "application/json"}
        return self.ask("POST", path, headers, json.dumps(document).encode())

    def connection(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.access.port, timeout=30)

    @contextmanager
    def stream(self, path: str) -> Iterator[Stream]:
        with contextlib.closing(self.connection()) as connection:
            connection.request("GET", path, headers={"x-qsctl-token": self.access.token})
            with contextlib.closing(connection.getresponse()) as response:
                yield Stream(response)


@dataclass
class Stream:
    response: HTTPResponse

    def next(self) -> Any:
        while not (line := self.response.readline()).startswith(b"data: "):
            if not line:
                raise EOFError
        return json.loads(line[6:])


@contextmanager
def served(*feeds: PolledSource, **more: Any) -> Iterator[Page]:
    context = WebContext(feeds=feeds, **more)
    sockets = bind(0)
    access = PageAccess(sockets[0].getsockname()[1])
    server = PageServer(create_app(context, access), context)
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets})
    thread.start()
    try:
        yield Page(access, context)
    finally:
        server.should_exit = True
        thread.join()
        for each in sockets:
            each.close()
