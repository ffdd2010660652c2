"""A broker's SEMP interface on loopback: SEMP v2 in pages, `show` of SEMP v1, changes of profiles, faults.

It answers as the public description of SEMP v2 (monitor and config) has it, for what qsctl asks; nothing of it is a
broker. A fault is a function of the request's handler, which answers in the server's place.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from qsctl.profiles.listings._columns import CONNECTION_COLUMNS
from qsctl.profiles.listings.labels import COUNT
from qsctl.profiles.listings.model import ClientConnection, ClientQueues
from qsctl.profiles.ranges import BY_SEMP_V2, SETTINGS
from qsctl.profiles.setting import ValueKind

USERNAME, PASSWORD = "ops", "s3cr3t-of-ops"
Fault = Callable[[Any], None]


@dataclass
class BrokerState:
    """What the broker has. Objects of SEMP v2 by message VPN and collection; listings of SEMP v1 from the models."""

    vpns: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=lambda: {"default": {}})
    queues: list[ClientQueues] = field(default_factory=list)
    connections: list[ClientConnection] = field(default_factory=list)
    stats: str = ""
    """Of `show stats client`: elements below `<stats>` of the reply."""

    def add_profile(self, vpn: str, name: str, **attributes: object) -> dict[str, Any]:
        made = {"clientProfileName": name, "msgVpnName": vpn}
        made |= {
            each.semp_v2: each.default
            for each in SETTINGS
            if each.kind is not ValueKind.THRESHOLD and each.default is not None
        }
        made |= attributes
        self.vpns.setdefault(vpn, {}).setdefault("clientProfiles", []).append(made)
        return made


def client_object(name: str, vpn: str = "default", **more: object) -> dict[str, Any]:
    """A client of SEMP v2 monitoring."""
    return {
        "clientName": name, "msgVpnName": vpn, "clientProfileName": "default", "clientUsername": "default",
        "clientAddress": "192.0.2.1:51022", "slowSubscriber": False, "eliding": False, "elidingTopicCount": 0,
        "elidingTopicPeakCount": 0, "txDiscardedMsgCount": 0, "rxDiscardedMsgCount": 0,
        "noSubscriptionMatchRxDiscardedMsgCount": 0, "dataTxMsgCount": 0, "dataTxByteCount": 0, "dataRxMsgCount": 0,
        "dataRxByteCount": 0, "averageTxMsgRate": 0, "averageTxByteRate": 0, "uptime": 60, **more,
    }  # fmt: skip


class BrokerServer:
    """The interface, while it is open.

    Args:
        state: what it shows and changes.
        tls: certificate and key; None: plain HTTP.
        is_open: whether it asks for no credentials.
    """

    def __init__(self, state: BrokerState, tls: tuple[Path, Path] | None = None, *, is_open: bool = False) -> None:
        self.state = state
        self.is_open = is_open
        self.requests: list[tuple[str, str]] = []
        self.headers: list[Mapping[str, str]] = []
        self.bodies: list[bytes] = []
        self.faults: list[Fault] = []
        """One a request, until they are used up."""
        self.always: Fault | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                outer.handle(self)

            do_POST = do_PATCH = do_GET

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> BrokerServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def handle(self, request: Any) -> None:
        self.requests.append((request.command, request.path))
        self.headers.append(dict(request.headers))
        body = request.rfile.read(int(request.headers.get("Content-Length", "0")))
        self.bodies.append(body)
        fault = self.faults.pop(0) if self.faults else self.always
        if fault is not None:
            fault(request)
            return
        expected = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        if not self.is_open and request.headers.get("Authorization") != f"Basic {expected}":
            answer(request, 401, refusal(401, "credentials are missing or wrong"))
            return
        path, _, query = request.path.partition("?")
        parts = [urllib.parse.unquote(each) for each in path.strip("/").split("/")]
        if parts == ["SEMP"] and request.command == "POST":
            self._show(request, body)
        elif parts[:3] == ["SEMP", "v2", "monitor"] and request.command == "GET":
            self._monitor(request, parts[3:], path, urllib.parse.parse_qs(query))
        elif parts[:3] == ["SEMP", "v2", "config"]:
            self._config(request, parts[3:], path, urllib.parse.parse_qs(query), body)
        else:
            answer(request, 404, refusal(6, "could not find match for the path"))

    def _monitor(self, request: Any, parts: list[str], path: str, query: Mapping[str, list[str]]) -> None:
        vpns = self.state.vpns
        if parts == ["msgVpns"]:
            self._page(request, [self._vpn(name) for name in vpns], path, query)
        elif len(parts) in {2, 3} and parts[0] == "msgVpns" and parts[1] not in vpns:
            answer(request, 400, refusal(6, f"message VPN {parts[1]} not found"))
        elif len(parts) == 2:
            answer(request, 200, {"data": self._vpn(parts[1]), "meta": {"responseCode": 200}})
        elif len(parts) == 3 and parts[2] in {"clients", "queues", "topicEndpoints"}:
            self._page(request, vpns[parts[1]].get(parts[2], []), path, query)
        elif len(parts) == 5 and parts[2] == "clients" and parts[4] == "txFlows":
            flows = [each for each in vpns[parts[1]].get("txFlows", []) if each["clientName"] == parts[3]]
            self._page(request, flows, path, query)
        else:
            answer(request, 400, refusal(6, "no such collection"))

    def _vpn(self, name: str) -> dict[str, Any]:
        lost = sum(int(each.get("txDiscardedMsgCount", 0)) for each in self.state.vpns[name].get("clients", []))
        return {"msgVpnName": name, "discardedTxMsgCount": lost, "discardedRxMsgCount": 0, "state": "up"}

    def _config(
        self, request: Any, parts: list[str], path: str, query: Mapping[str, list[str]], body: bytes
    ) -> None:  # fmt: skip
        if len(parts) not in {3, 4} or parts[0] != "msgVpns" or parts[2] != "clientProfiles":
            answer(request, 400, refusal(6, "no such collection"))
            return
        profiles = self.state.vpns.get(parts[1], {}).setdefault("clientProfiles", [])
        if request.command == "GET" and len(parts) == 3:
            self._page(request, profiles, path, query)
            return
        change = json.loads(body)
        name = parts[3] if len(parts) == 4 else change.pop("clientProfileName", "")
        found = [each for each in profiles if each["clientProfileName"] == name]
        wrong = next((key for key, value in change.items() if not allowed(key, value)), "")
        if wrong:
            answer(request, 400, refusal(11, f"problem with {wrong}: value is not allowed"))
        elif request.command == "POST" and found:
            answer(request, 400, refusal(10, f"{name} already exists"))
        elif request.command == "POST":
            made = self.state.add_profile(parts[1], name, **change)
            answer(request, 200, {"data": made, "meta": {"responseCode": 200}})
        elif not found:
            answer(request, 400, refusal(6, f"client profile {name} not found"))
        else:
            found[0].update(change)
            answer(request, 200, {"data": found[0], "meta": {"responseCode": 200}})

    def _page(self, request: Any, objects: list[dict[str, Any]], path: str, query: Mapping[str, list[str]]) -> None:
        count = min(int(query.get("count", ["10"])[0]), 100)
        first = int(query.get("cursor", ["0"])[0])
        meta: dict[str, Any] = {"count": len(objects), "responseCode": 200}
        if first + count < len(objects):
            uri = f"{self.url}{path}?count={count}&cursor={first + count}"
            meta["paging"] = {"cursorQuery": str(first + count), "nextPageUri": uri}
        page = objects[first : first + count]
        answer(request, 200, {"data": page, "links": [{} for _ in page], "meta": meta})

    def _show(self, request: Any, body: bytes) -> None:
        show = ElementTree.fromstring(body).find("show")
        assert show is not None, "qsctl asks SEMP v1 for nothing but listings"
        kinds = {each.tag for each in show.iter()}
        if "stats" in {each.tag for each in show}:
            reply(request, f"<stats><client><global><stats>{self.state.stats}</stats></global></client></stats>")
            return
        name = show.findtext("client/name") or "*"
        number = int(show.findtext("client/num-elements") or "100")
        first = int(show.findtext("client/cursor") or "0")
        chosen: Iterable[str]
        if "queues" in kinds:
            chosen = [queues_element(each) for each in self.state.queues if fits(name, each.name)]
        else:
            chosen = [connection_element(each) for each in self.state.connections if fits(name, each.name)]
        chosen = list(chosen)
        more = ""
        if first + number < len(chosen):
            words = "<stats/><queues/>" if "queues" in kinds else "<connections/><wide/>"
            more = (
                f"<more-cookie><rpc><show><client><name>{escape(name)}</name>{words}<count/><num-elements>{number}"
                f"</num-elements><cursor>{first + number}</cursor></client></show></rpc></more-cookie>"
            )
        clients = "".join(chosen[first : first + number])
        inside = f"<client><primary-virtual-router>{clients}</primary-virtual-router></client>"
        reply(request, inside, more)


def fits(pattern: str, name: str) -> bool:
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern)


def allowed(attribute: str, value: object) -> bool:
    setting = BY_SEMP_V2.get(attribute)
    if setting is None:
        return attribute == "msgVpnName"
    try:
        return setting.kind is ValueKind.THRESHOLD or setting.read(value) is not None
    except ValueError:
        return False


def queues_element(client: ClientQueues) -> str:
    rows = "".join(
        f"<client-queue><queue-priority>{each.queue}</queue-priority><length-msgs>{each.length_messages}</length-msgs>"
        f"<length-work>{each.length_work_units}</length-work>"
        f"<high-water-mark-work>{each.high_water_mark_work_units}</high-water-mark-work>"
        f"<max-work>{each.max_depth_work_units}</max-work><discards-msgs>{each.discarded_messages}</discards-msgs>"
        f"<delivered-msgs>{each.delivered_messages}</delivered-msgs></client-queue>"
        for each in client.queues
    )
    vpn = escape(client.message_vpn or "default")
    slow = "true" if client.slow_subscriber else "false"
    return (
        f"<client><name>{escape(client.name)}</name><message-vpn>{vpn}</message-vpn>"
        f"<profile>{escape(client.client_profile or 'default')}</profile>"
        f"<slow-subscriber>{slow}</slow-subscriber>{rows}</client>"
    )


def connection_element(connection: ClientConnection) -> str:
    values = []
    for column in CONNECTION_COLUMNS:
        value = getattr(connection, column.field)
        if column.field not in {"name", "message_vpn"} and column.element and value is not None:
            kind = column.element_kind or column.kind
            values.append(
                f"<{column.element}>{escape(kind.write(value) if kind is not COUNT else str(value))}</{column.element}>"
            )
    vpn = escape(connection.message_vpn or "default")
    return (
        f"<client><name>{escape(connection.name)}</name><message-vpn>{vpn}</message-vpn>"
        f"<connection>{''.join(values)}</connection></client>"
    )


def refusal(code: int, description: str) -> dict[str, Any]:
    error = {"code": code, "description": description, "status": "INVALID"}
    return {"meta": {"error": error, "responseCode": 400}}


def answer(request: Any, status: int, document: object, **headers: str) -> None:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)


def reply(request: Any, inside: str, more: str = "") -> None:
    text = (
        f'<rpc-reply semp-version="soltr/10_0"><rpc><show>{inside}</show></rpc>{more}'
        '<execute-result code="ok"/></rpc-reply>'
    )
    answer(request, 200, text.encode())


def status(code: int, **headers: str) -> Fault:
    """It answers with a status, and words."""
    return lambda request: answer(request, code, refusal(code, f"status {code} of the test"), **headers)


def cut(request: Any) -> None:
    """It promises more than it sends, and goes away."""
    request.send_response(200)
    request.send_header("Content-Length", "100000")
    request.end_headers()
    request.wfile.write(b'{"data": [')
    request.wfile.flush()
    request.close_connection = True


def slow(seconds: float) -> Fault:
    """It is silent for this long, then answers nothing."""

    def fault(request: Any) -> None:
        time.sleep(seconds)
        request.close_connection = True

    return fault


def dripping(seconds: float) -> Fault:
    """It sends an octet now and then, each within any time-out of one read."""

    def fault(request: Any) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "100000")
        request.end_headers()
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            request.wfile.write(b" ")
            request.wfile.flush()
            time.sleep(0.05)
        request.close_connection = True

    return fault


def body(data: bytes) -> Fault:
    """It answers with these octets."""
    return lambda request: answer(request, 200, data)


def huge(size: int) -> Fault:
    """It sends octets without end."""

    def fault(request: Any) -> None:
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        chunk = b" " * 65536
        for _ in range(size // len(chunk)):
            request.wfile.write(chunk)
        request.close_connection = True

    return fault


def redirect(to: str) -> Fault:
    return lambda request: answer(request, 302, {}, Location=to)


def paging_to(uri: Callable[[Any], str], cursor: str = "") -> Fault:
    """Every page has a next one."""

    def fault(request: Any) -> None:
        paging = {"nextPageUri": uri(request)} | ({"cursorQuery": cursor} if cursor else {})
        answer(request, 200, {"data": [client_object("c")], "meta": {"responseCode": 200, "paging": paging}})

    return fault


def certificate(folder: Path, name: str = "IP:127.0.0.1") -> tuple[Path, Path]:
    """Make a certificate for an address, signed by itself, and its key."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=broker", "-addext", f"subjectAltName={name}", "-keyout", str(key), "-out", str(made)],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key


@contextmanager
def serving(state: BrokerState | None = None, **named: Any) -> Iterator[BrokerServer]:
    with BrokerServer(state or BrokerState(), **named) as server:
        yield server
