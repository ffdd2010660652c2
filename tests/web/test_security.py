"""What the gate refuses, each with its status, its count, and words for the reader."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from qsctl.web._context import WebContext
from qsctl.web._security import BODY_OCTETS_MAX, POLICY, Gate, PageAccess
from tests.web.serving import served

JSON = {"content-type": "application/json"}

REFUSALS = {
    "a Host of DNS rebinding": ("GET", "/api/about", {"host": "evil.example:{port}"}, b"", 403, "Host header"),
    "a Host without the port": ("GET", "/api/about", {"host": "127.0.0.1"}, b"", 403, "Host header"),
    "a Host with another port": ("GET", "/api/about", {"host": "127.0.0.1:80"}, b"", 403, "Host header"),
    "another Origin": ("GET", "/api/about", {"origin": "https://evil.example"}, b"", 403, "Origin"),
    "an Origin of another port": ("GET", "/api/about", {"origin": "http://127.0.0.1:80"}, b"", 403, "Origin"),
    "the Origin null": ("GET", "/api/about", {"origin": "null"}, b"", 403, "Origin"),
    "a cross-site request": ("GET", "/api/about", {"sec-fetch-site": "cross-site"}, b"", 403, "Sec-Fetch-Site"),
    "a page of another port": ("GET", "/", {"sec-fetch-site": "same-site"}, b"", 403, "Sec-Fetch-Site"),
    "a wrong token": ("GET", "/api/about", {"x-qsctl-token": "wrong"}, b"", 403, "token"),
    "a token of other characters": ("GET", "/api/about", {"x-qsctl-token": "\xff\xe9"}, b"", 403, "token"),
    "no token": ("GET", "/api/about", {"x-qsctl-token": ""}, b"", 403, "token"),
    "a wrong token in the address": ("GET", "/?token=wrong", {}, b"", 403, "token"),
    "many parameters": ("GET", "/?" + "a=1&" * 5000, {}, b"", 403, "token"),
    "no cookie for a file": ("GET", "/static/app.js", {}, b"", 403, "token"),
    "a cookie that cannot be read": ("GET", "/static/app.js", {"cookie": "a b=;;=;;"}, b"", 403, "token"),
    "PUT": ("PUT", "/api/about", JSON, b"{}", 405, "method"),
    "DELETE": ("DELETE", "/api/about", {}, b"", 405, "method"),
    "POST of the page": ("POST", "/", JSON, b"{}", 405, "method"),
    "OPTIONS, as a browser asks for another origin": ("OPTIONS", "/api/about", {}, b"", 405, "method"),
    "a form": ("POST", "/api/about", {"content-type": "text/plain"}, b"{}", 415, "content type"),
    "a long body": ("POST", "/api/about", JSON, b" " * (BODY_OCTETS_MAX + 1), 413, "body"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_a_request_is_refused_counted_and_explained(case: str) -> None:
    method, path, headers, body, status, reason = REFUSALS[case]
    with served() as page:
        filled = {name: value.replace("{port}", str(page.access.port)) for name, value in headers.items()}
        answer = page.ask(method, path, {"x-qsctl-token": page.access.token, **filled}, body)
        assert answer.status == status
        assert page.context.refused == {reason: 1}
        assert page.context.answered_count == 0
        words = answer.document["error"]["message"] if path.startswith("/api/") else answer.body.decode()
        assert len(words) > 10
        assert answer.headers["content-security-policy"] == POLICY


def test_a_body_in_parts_is_bounded_as_well() -> None:
    parts = (b" " * 1024 for _ in range(BODY_OCTETS_MAX // 1024 + 1))
    with served() as page:
        headers = {"x-qsctl-token": page.access.token, **JSON, "transfer-encoding": "chunked"}
        assert page.ask("POST", "/api/about", headers, parts).status == 413


def test_a_peer_beyond_loopback_is_refused() -> None:
    context, access = WebContext(), PageAccess(80)

    async def unreachable(_scope: object, _receive: object, _send: object) -> None:
        raise AssertionError

    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    async def ask(client: tuple[str, int]) -> None:
        headers = [(b"host", b"127.0.0.1:80"), (b"x-qsctl-token", access.token.encode())]
        scope = {"type": "http", "method": "GET", "path": "/api/about", "headers": headers, "client": client}
        await Gate(unreachable, access, context)(scope, lambda: anyio.sleep(0), send)  # type: ignore[arg-type]

    # In a thread of its own: playwright, in the same worker, keeps an event loop in this one.
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(anyio.run, ask, ("192.0.2.1", 5)).result()
    assert context.refused == {"not loopback": 1}
    assert sent[0]["status"] == 403  # type: ignore[index]


def test_a_web_socket_is_closed() -> None:
    with served() as page:
        headers = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        answer = page.ask("GET", "/api/about", {**headers, "sec-websocket-key": "x3JJHMbDL1EzLkh9GBhXDw=="})
        assert answer.status == 403


def test_the_address_opens_the_page_and_its_cookie_the_files_but_no_data() -> None:
    with served() as page:
        opened = page.ask("GET", page.access.address.removeprefix(page.access.origin))
        assert opened.status == 200
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert page.access.token not in cookie
        headers = {"cookie": cookie.partition(";")[0]}
        for path in ("/", "/static/app.js", "/static/style.css"):
            assert page.ask("GET", path, headers).status == 200, path
        assert page.ask("GET", "/api/about", headers).status == 403
        assert page.get("/api/about").document["refused"] == {"token": 1}


@pytest.mark.parametrize("path", ["/static/..%2fserver.py", "/static/index.html", "/static/nothing.js", "/nothing"])
def test_only_the_files_of_the_page_are_served(path: str) -> None:
    with served() as page:
        cookie = f"{page.access.cookie}={page.access.page_secret}"
        assert page.ask("GET", path, {"cookie": cookie}).status == 404


def test_the_address_for_a_browser_works_once() -> None:
    with served() as page:
        path = page.access.ticket_address.removeprefix(page.access.origin)
        first = page.ask("GET", path)
        assert (first.status, first.headers["location"]) == (303, page.access.address)
        assert page.ask("GET", path).status == 403
        assert page.ask("GET", "/open?ticket=").status == 403


def test_secrets_differ_between_servers_and_from_each_other() -> None:
    with served() as one, served() as other:
        assert len({one.access.token, one.access.page_secret, other.access.token, other.access.page_secret}) == 4
