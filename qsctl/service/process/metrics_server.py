"""The HTTP port of a service: metrics for Prometheus and probes for supervisors, off unless a port is given.

Decides: the responses. `/metrics` has the families of `metrics`, and those of the process; `/healthz` returns 200 as
long as the service's loop runs, `/readyz` as long as every queue accepts samples, else 503 with a line for each reason.
It listens on loopback unless an address is given. The number of connections, their idle time and the size of a request
are bounded: clients of this port use at most two threads.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from waitress import wasyncore
from waitress.server import create_server
from waitress.trigger import trigger

from qsctl.errors import Unavailable
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.service.process.metrics import ServiceFigures, families

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

STALE_NS: Final[Nanoseconds] = 10 * SECOND_NS
"""A loop that made no figures for so long hangs: it makes them every second."""

THREADS: Final = 2
CONNECTIONS_MAX: Final = 512
"""Further connections wait in the queue of the socket until one of these ends."""

IDLE_S: Final = 15
"""A connection without a request is closed then."""

HEADER_BYTES_MAX: Final = 8_192
_TEXT: Final = "text/plain; charset=utf-8"


class MetricsServer(Collector):
    """The HTTP port of one service.

    Args:
        figures: returns the figures of each process of the service; called in each request's thread.
        address: to listen on.
        port: to listen on; 0: any free one.

    Raises:
        Unavailable: the port is in use, or the address is not one of this machine.
    """

    def __init__(self, figures: Callable[[], Iterable[ServiceFigures]], address: str, port: int) -> None:
        self._figures = figures
        self._registry = CollectorRegistry()
        self._registry.register(self)
        for each in (ProcessCollector, PlatformCollector, GCCollector):
            each(registry=self._registry)
        listening = _listen(address, port)
        self.port: int = listening.getsockname()[1]
        quiet = logging.getLogger("waitress")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        self._map: dict[int, object] = {}
        self._trigger = trigger(self._map)
        self._server = create_server(
            self._answer,
            self._map,
            sockets=[listening],
            threads=THREADS,
            connection_limit=CONNECTIONS_MAX,
            channel_timeout=IDLE_S,
            cleanup_interval=IDLE_S // 3,
            max_request_header_size=HEADER_BYTES_MAX,
            max_request_body_size=HEADER_BYTES_MAX,
            ident=None,
            clear_untrusted_proxy_headers=True,
        )
        self._closes = False
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        self._thread.start()

    def collect(self) -> Iterator[Metric]:
        """Return the metric families of the service."""
        return families(list(self._figures()), time.time_ns())

    def close(self) -> None:
        """Stop serving."""
        self._closes = True
        self._trigger.pull_trigger()
        self._thread.join()

    def _serve(self) -> None:
        while not self._closes:
            wasyncore.loop(timeout=IDLE_S // 3, use_poll=True, map=self._map, count=1)
        self._server.task_dispatcher.shutdown()
        wasyncore.close_all(self._map, ignore_all=True)

    def _answer(self, asked: WSGIEnvironment, start: StartResponse) -> list[bytes]:
        """Respond to an HTTP request, as a WSGI application."""
        status, kind, body = self._found(asked["REQUEST_METHOD"], asked.get("PATH_INFO", "/"))
        headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")]
        start(status, headers)
        return [] if asked["REQUEST_METHOD"] == "HEAD" else [body]

    def _found(self, method: str, path: str) -> tuple[str, str, bytes]:
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", _TEXT, b"Only GET and HEAD are answered.\n"
        match path:
            case "/" | "/metrics":
                return "200 OK", CONTENT_TYPE_LATEST, generate_latest(self._registry)
            case "/healthz":
                return _probe(faults_of_health(self._figures(), time.monotonic_ns()))
            case "/readyz":
                return _probe(faults_of_readiness(self._figures(), time.monotonic_ns()))
            case _:
                return "404 Not Found", _TEXT, b"There is /metrics, /healthz and /readyz.\n"


def faults_of_health(parts: Iterable[ServiceFigures], now: Nanoseconds) -> list[str]:
    """Return the reasons for a supervisor to restart the service: its loop hangs at `now`, monotonic. Empty: none."""
    return [
        f"the service's loop has not turned for {(now - part.refreshed_at_ns) // SECOND_NS} s"
        for part in parts
        if part.state == "serving" and now - part.refreshed_at_ns > STALE_NS
    ]


def faults_of_readiness(parts: Iterable[ServiceFigures], now: Nanoseconds) -> list[str]:
    """Return the reasons why the service does not accept samples for all of its queues. Empty: it does."""
    parts = list(parts)
    faults = faults_of_health(parts, now)
    for part in parts:
        if part.state != "serving":
            faults.append(f"the service is {part.state}")
        if part.held_back:
            faults.append("producers are held back: the memory is at its limit")
        troubles = {1: "the disk is nearly full", 2: "its store has failed"}
        faults += [f"{queue}: {troubles[each]}" for queue, each in part.unstored.items() if each]
        faults += [f"{queue}: no quorum of its replicas" for queue, has in part.has_quorum.items() if not has]
        faults += [
            f"{queue}: its replica here is catching up" for queue, is_in in part.is_caught_up.items() if not is_in
        ]
    return faults


def _probe(faults: list[str]) -> tuple[str, str, bytes]:
    if faults:
        return "503 Service Unavailable", _TEXT, "".join(f"{each}\n" for each in faults).encode()
    return "200 OK", _TEXT, b"ok\n"


def _listen(address: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise Unavailable(
            f"metrics cannot be served on {address}:{port}: {error.strerror}",
            remedy="Give another --metrics-port, or another --metrics-address.",
        ) from error
    return listening
