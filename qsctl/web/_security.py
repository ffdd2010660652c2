"""The access control of the page: which requests are accepted, and the security headers of every response.

The server listens on loopback alone, but every process and every page in a browser on this machine can reach it.
Therefore a request needs

- a Host header that names loopback and our port: other names, which an attacker may resolve to 127.0.0.1, are refused
  (DNS rebinding);
- no Origin, or ours, and by `Sec-Fetch-Site` a page of ours or the user's own navigation: other sites, also those on
  other ports of this machine, are refused;
- for the page and its files, a cookie with a secret (HttpOnly, SameSite=Strict), which is set by the address with the
  token;
- for data, the token itself in a header. Cookies are sent to every port of a host, so that another user's server here
  could collect one; the page keeps the token where only scripts of our own origin read it. A form or a link of another
  site cannot send the header, and none of our answers permits another origin to.

A refused request is counted by reason, and its response states the reason.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Final, NamedTuple
from urllib.parse import parse_qs

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qsctl.web._context import WebContext
from qsctl.web._refusal_page import refusal_page

API: Final = "/api/"
"""Prefix of the paths whose responses contain data."""
TOKEN_HEADER: Final = "x-qsctl-token"
BODY_OCTETS_MAX: Final = 64 * 1024
_PARAMETERS_MAX: Final = 8
"""Largest number of query parameters in the page's own address."""
_BODY_S: Final = 10.0
"""Longest time until a request's body must arrive, in seconds."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class PageAccess:
    """The address of one server and its secrets, which are drawn at the start.

    Args:
        port: the port on which the server listens.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.token = secrets.token_urlsafe(32)
        self.cookie = f"qsctl-{port}"
        """Name of the cookie; it contains the port, since browsers share the cookies of a host between its ports."""
        self.page_secret = secrets.token_urlsafe(32)
        self.hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        self.origins = frozenset(f"http://{host}" for host in self.hosts)
        self._ticket = secrets.token_urlsafe(32)

    @property
    def origin(self) -> str:
        """Return the address without the token."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        """Return the address that opens the page, with the token."""
        return f"{self.origin}/?token={self.token}"

    @property
    def ticket_address(self) -> str:
        """Return an address that opens the page once, for the command line of the browser, which other users can
        read.
        """
        return f"{self.origin}/open?ticket={self._ticket}"

    def redeem(self, ticket: str) -> bool:
        """Return whether `ticket` is the valid one-time ticket, and invalidate it if so."""
        is_right = bool(self._ticket) and _equal(ticket, self._ticket)
        if is_right:
            self._ticket = ""
        return is_right


class TurnedAway(NamedTuple):
    """A refused request: the HTTP status, the reason under which it is counted, and the text of the response."""

    status: int
    reason: str
    words: str


def _equal(found: str, right: str) -> bool:
    return secrets.compare_digest(found.encode("utf-8", "surrogateescape"), right.encode())


class Gate:
    """The ASGI middleware that accepts or refuses every request.

    Args:
        app: the application that answers accepted requests.
        access: address and secrets of the server.
        context: has the counters of accepted and refused requests.
    """

    def __init__(self, app: ASGIApp, access: PageAccess, context: WebContext) -> None:
        self._app = app
        self._access = access
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or refuse it; close a web socket."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            self._context.refused["web socket"] += 1
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        refused = self._judged(scope, headers)
        body = b""
        if refused is None:
            refused, body = await _read_body(receive, headers)
        if refused is not None:
            self._context.refused[refused.reason] += 1
            await _answer(refused, scope)(scope, receive, _with_headers(send))
            return
        self._context.answered_count += 1
        is_page = scope["path"] == "/"
        cookie = self._set_cookie() if is_page else ""
        await self._app(scope, _replayed(body, receive), _with_headers(send, cookie))

    def _judged(self, scope: Scope, headers: Headers) -> TurnedAway | None:
        client = scope.get("client")
        if client is not None and client[0] not in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
            return TurnedAway(403, "not loopback", "This page is for this machine alone.")
        if headers.getlist("host") not in ([host] for host in self._access.hosts):
            return TurnedAway(
                403,
                "Host header",
                "The address in the browser is not the one that qsctl web printed: its host must be 127.0.0.1, "
                "localhost or [::1], with the port.",
            )
        origins: Sequence[str] = headers.getlist("origin")
        if any(origin not in self._access.origins for origin in origins):
            return TurnedAway(403, "Origin", "Another site sent this request.")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return TurnedAway(403, "Sec-Fetch-Site", "Another site sent this request: type or paste the address.")
        is_data = scope["path"].startswith(API)
        if scope["method"] not in (("GET", "HEAD", "POST") if is_data else ("GET", "HEAD")):
            return TurnedAway(405, "method", f"{scope['method'][:16]} is not allowed here.")
        if not self._is_known(scope, headers, is_data=is_data):
            return TurnedAway(
                403,
                "token",
                "The token is missing or wrong. Open the whole address that qsctl web printed when it started; "
                "each start has its own.",
            )
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and content_type != "application/json":
            return TurnedAway(415, "content type", "A body must be application/json.")
        return None

    def _is_known(self, scope: Scope, headers: Headers, *, is_data: bool) -> bool:
        if is_data:
            return _equal(headers.get(TOKEN_HEADER, ""), self._access.token)
        asked = (
            parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=_PARAMETERS_MAX)
            if _is_short(scope)
            else {}
        )
        if scope["path"] == "/" and "token" in asked:
            return _equal(asked["token"][0], self._access.token)
        if scope["path"] == "/open":
            return True  # the handler of the address checks the ticket
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self._access.cookie)
        return found is not None and _equal(found.value, self._access.page_secret)

    def _set_cookie(self) -> str:
        return f"{self._access.cookie}={self._access.page_secret}; HttpOnly; SameSite=Strict; Path=/"


def _is_short(scope: Scope) -> bool:
    query: bytes = scope.get("query_string", b"")
    return query.count(b"&") < _PARAMETERS_MAX


async def _read_body(receive: Receive, headers: Headers) -> tuple[TurnedAway | None, bytes]:
    """Read the whole body of a request; return a refusal instead if it is too long or arrives too slowly."""
    too_long = TurnedAway(413, "body", f"A body may have {BODY_OCTETS_MAX} octets.")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 9 or int(length) > BODY_OCTETS_MAX:
        return too_long, b""
    if length == "0" and "transfer-encoding" not in headers:
        return None, b""
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(_BODY_S):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return TurnedAway(400, "cut off", "The request was cut off."), b""
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > BODY_OCTETS_MAX:
                return too_long, b""
            if not message.get("more_body", False):
                return None, b"".join(parts)
    return TurnedAway(408, "slow body", f"The body did not arrive within {_BODY_S:g} s."), b""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` function that yields the body that was read, and then waits for the disconnection."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _with_headers(send: Send, cookie: str = "") -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if cookie:
                headers["set-cookie"] = cookie
        await send(message)

    return sending


def _answer(refused: TurnedAway, scope: Scope) -> Response:
    connection = HTTPConnection({**scope, "type": "http"})
    if connection.scope["path"].startswith(API):
        return JSONResponse({"error": {"message": refused.words, "remedy": "", "status": 7}}, refused.status)
    return Response(refusal_page(refused.words), refused.status, media_type="text/html")
