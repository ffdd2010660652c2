"""An HTTP client for one origin, with bounds on deadlines, sizes, retries and the rate of requests, and verified TLS.

Decides the limits of a reply, which requests are retried, and which error each failure raises. The deadline of a
request covers everything from the connection to the last octet, however slowly a server sends. A request that was cut
off, refused temporarily (429, 5xx) or not answered is retried after a pause that doubles, with jitter, or after
Retry-After. A change is retried only where the server cannot have carried it out. Redirections are not followed, since
the credentials are for the given origin alone. At most ten requests a second are sent, the limit of a broker (the
vendor's "SEMP Polling Frequency Guidelines").
"""

from __future__ import annotations

import email.utils
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, NameResolutionError, NewConnectionError, SSLError, TimeoutError
from urllib3.util import Timeout

from qsctl.broker.access import NOBODY, Address, Credentials
from qsctl.errors import InvalidInput, NoAnswer, NotFound, QsctlError, Refused

_MEBIBYTE: Final = 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_WORDS_BYTES_MAX: Final = 64 * 1024
"""Limit on the octets of a refusal's body that are read."""
_WORDS_SHOWN: Final = 300
_LONG_ENOUGH: Final = 8
"""Encoded credentials of at least this length are removed from replies; shorter ones could match a name by accident."""
_LATER: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_UNTOUCHED: Final = frozenset({429, 503})
"""The statuses of `_LATER` after which the request was certainly not carried out."""
_REDIRECTIONS: Final = range(300, 400)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on time and size of one attempt, of one request with its retries, and of all requests of a client."""

    attempt_s: float = 10.0
    request_s: float = 60.0
    total_s: float = 600.0
    body_bytes: int = 32 * _MEBIBYTE
    total_bytes: int = 256 * _MEBIBYTE
    attempts: int = 4
    pause_s: float = 0.5
    """Pause before the first retry, in seconds; it doubles with each retry."""
    retry_after_s: float = 30.0
    """The longest Retry-After of a server that is obeyed, in seconds."""
    requests_per_second: float = 10.0


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class _NotSent(Exception):
    """The request did not reach the server."""


class _NotAnswered(Exception):
    """The server may have received the request, but no complete reply arrived."""


class _Deadline:
    """A timer's means to shut down the connection of an attempt at its deadline, even if the server sends slowly."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self.has_passed = False

    def watch(self, connected: socket.socket) -> None:
        """Make this connection, in place of the previous one, the one that the deadline shuts down."""
        with self._lock:
            self._release()
            self._socket = connected.dup()  # TLS takes the original over
            if self.has_passed:
                self._shut()

    def pass_(self) -> None:
        """Shut down the connection at the deadline; a thread that waits for the reply gets an error."""
        with self._lock:
            self.has_passed = True
            self._shut()

    def begin(self) -> None:
        """Begin another attempt, whose deadline has not passed."""
        with self._lock:
            self.has_passed = False

    def close(self) -> None:
        """Release the connection without shutting it down."""
        with self._lock:
            self._release()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class HttpClient:
    """A client that sends requests to one origin.

    Args:
        address: address of the server.
        credentials: credentials that every request carries.
        certificates: PEM file of trusted certificate authorities, in place of the system's; None: the system's.
        bounds: limits of time and size.
        sleep: waits for a number of seconds, before a retry and for the request rate.
    """

    def __init__(
        self,
        address: Address,
        credentials: Credentials = NOBODY,
        certificates: Path | None = None,
        bounds: Bounds = Bounds(),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.address = address
        self.bounds = bounds
        self._credentials = credentials
        self._sleep = sleep
        self._ends_at = time.monotonic() + bounds.total_s
        self._bytes_left = bounds.total_bytes
        self._allowance = Allowance(bounds.requests_per_second)
        self._deadline = _Deadline()
        self._pool = _pool(address, certificates, self._deadline)

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"HttpClient({str(self.address)!r})"

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()
        self._deadline.close()

    def begin(self) -> None:
        """Restart the limits on all requests of this client, before another query of the same server."""
        self._ends_at = time.monotonic() + self.bounds.total_s
        self._bytes_left = self.bounds.total_bytes

    def get(self, target: str) -> bytes:
        """Return the body of a resource.

        Args:
            target: path and query, relative to the address.

        Raises:
            NoAnswer: no reply arrived in time.
            NotFound: the server has no such resource.
            Refused: the server refused the request, or is not trusted.
            InvalidInput: the reply is too large, or is compressed.
        """
        return self._request("GET", target, None, "", is_change=False)

    def query(self, target: str, body: bytes, content_type: str) -> bytes:
        """Send a query in a POST body and return the body of the reply; raises as `get`."""
        return self._request("POST", target, body, content_type, is_change=False)

    def change(self, method: str, target: str, body: bytes, content_type: str) -> bytes:
        """Send a change and return the body of the reply; raises as `get`. A change that may have been made is not
        retried.
        """
        return self._request(method, target, body, content_type, is_change=True)

    def _request(self, method: str, target: str, body: bytes | None, content_type: str, *, is_change: bool) -> bytes:
        headers = {"Accept-Encoding": "identity", "User-Agent": "qsctl"}
        if content_type:
            headers["Content-Type"] = content_type
        if self._credentials.is_given:
            headers["Authorization"] = self._credentials.header()
        where = f"{method} {self.address}{target.partition('?')[0]}"
        ends_at = min(self._ends_at, time.monotonic() + self.bounds.request_s)
        attempt = 0
        while True:
            attempt += 1
            self._sleep(self._allowance.wait_s(time.monotonic()))
            try:
                answer = self._attempt(method, f"{self.address.path}{target}", headers, body, where, ends_at)
            except _NotSent as error:
                failure: QsctlError = NoAnswer(
                    f"{where}: {error}", remedy="Check the address, and that it is reachable."
                )
                may_repeat, pause_s = True, None
            except _NotAnswered as error:
                failure = self._unanswered(where, str(error), is_change=is_change)
                may_repeat, pause_s = not is_change, None
            else:
                if answer.status not in _LATER:
                    return self._accepted(answer, where)
                failure = self._put_off(answer, where)
                may_repeat = not is_change or answer.status in _UNTOUCHED
                pause_s = self._retry_after_s(answer)
            if pause_s is None:
                pause_s = self.bounds.pause_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)
            if not may_repeat or attempt >= self.bounds.attempts or time.monotonic() + pause_s >= ends_at:
                raise failure
            self._sleep(pause_s)

    def _attempt(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, where: str, ends_at: float
    ) -> _Answer:
        seconds = min(self.bounds.attempt_s, ends_at - time.monotonic())
        if seconds <= 0:
            raise _NotAnswered("it takes too long")
        self._deadline.begin()
        timer = threading.Timer(seconds, self._deadline.pass_)
        timer.daemon = True
        timer.start()
        response: urllib3.BaseHTTPResponse | None = None
        try:
            response = self._pool.urlopen(
                method, target, body=body, headers=headers, retries=False, redirect=False, preload_content=False,
                decode_content=False, timeout=Timeout(connect=seconds, read=seconds),
            )  # fmt: skip
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise InvalidInput(f"{where}: the answer is compressed, which was not asked for")
            content = self._body(response, where, is_refusal=response.status >= 300)
            answer = _Answer(response.status, dict(response.headers), content)
        except SSLError as error:
            raise self._distrust(error, seconds) from None
        except NewConnectionError as error:
            raise _NotSent(self._reason(error)) from None
        except (HTTPError, OSError, ValueError) as error:
            raise _NotAnswered(self._reason(error, seconds)) from None
        finally:
            timer.cancel()
            if response is not None and not response.closed:
                response.close()
        return answer

    def _body(self, response: urllib3.BaseHTTPResponse, where: str, *, is_refusal: bool) -> bytes:
        limit = _WORDS_BYTES_MAX if is_refusal else min(self.bounds.body_bytes, self._bytes_left)
        parts: list[bytes] = []
        size = 0
        for part in response.stream(_CHUNK_BYTES, decode_content=False):
            size += len(part)
            if size > limit and not is_refusal:
                raise InvalidInput(
                    f"{where}: the answer is larger than {limit:,} bytes", remedy="Ask for less, as with --message-vpn."
                )
            parts.append(part)
            if size > limit:
                break
        if not is_refusal:
            self._bytes_left -= size
        return b"".join(parts)

    def _accepted(self, answer: _Answer, where: str) -> bytes:
        """Return the body of a successful reply, without the credentials.

        Raises:
            QsctlError: the status of the reply is not a success.
        """
        status = answer.status
        if 200 <= status < 300:
            encoded = self._credentials.encoded().encode()
            return answer.body.replace(encoded, "…".encode()) if len(encoded) >= _LONG_ENOUGH else answer.body
        if status in _REDIRECTIONS:
            to = self._shown(answer.headers.get("Location", "elsewhere"))
            raise Refused(
                f"{where} is redirected to {to}, which is not followed: credentials are for {self.address.origin}",
                remedy="Give the other address, if it is the broker's.",
            )
        words = self._words(answer)
        if status == 401:
            raise Refused(f"{where}: 401, {words or 'the credentials are not accepted'}", remedy=_CREDENTIALS)
        if status == 403:
            raise Refused(
                f"{where}: 403, {words or 'this user may not do that'}",
                remedy="Ask for the right, or use another user.",
            )
        if status == 404:
            raise NotFound(f"{where}: 404, {words or 'not found'}", remedy="Check address and names.")
        raise Refused(f"{where}: {status}{f', {words}' if words else ''}")

    def _put_off(self, answer: _Answer, where: str) -> QsctlError:
        words = self._words(answer)
        what = {429: "it is asked too often"}.get(answer.status, "it cannot answer now")
        return NoAnswer(f"{where}: {answer.status}, {words or what}", remedy="Try again later.")

    def _words(self, answer: _Answer) -> str:
        """Return the server's explanation of a refusal, on one line of bounded length without credentials."""
        return self._shown(words_of(answer.body))

    def _shown(self, text: str) -> str:
        from qsctl.declared.problems import shown

        return shown(self._credentials.redacted(" ".join(text.split()))[:_WORDS_SHOWN])

    def _unanswered(self, where: str, reason: str, *, is_change: bool) -> QsctlError:
        if is_change:
            return NoAnswer(
                f"{where}: {reason}; whether it was carried out is not known",
                remedy="Check the broker before you repeat it.",
            )
        return NoAnswer(f"{where}: {reason}", remedy="Try again, or give it more time.")

    def _reason(self, error: Exception, seconds: float = 0.0) -> str:
        if isinstance(error, NameResolutionError):
            return f"the name {self.address.origin.host} is not known"
        is_late = isinstance(error, TimeoutError) and not isinstance(error, NewConnectionError)
        if self._deadline.has_passed or is_late:
            return f"no whole answer within {seconds:.3g} s" if seconds else "no connection in time"
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        return "the answer is cut, or is not HTTP"

    def _distrust(self, error: SSLError, seconds: float) -> Exception:
        """Return the error for a failed TLS handshake: Refused, or, if the deadline ended it, an error that permits a
        retry.
        """
        if self._deadline.has_passed:
            return _NotAnswered(self._reason(error, seconds))
        cause = error.args[0] if error.args else error
        reason = getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or "TLS failed"
        return Refused(
            f"{self.address.origin} is not trusted: {self._shown(str(reason))}",
            remedy="Name the authority's certificate: `qsctl help contexts`.",
        )

    def _retry_after_s(self, answer: _Answer) -> float | None:
        """Return the seconds of the reply's Retry-After header, limited by the bounds; None if it has none."""
        text = next((value for name, value in answer.headers.items() if name.lower() == "retry-after"), "").strip()
        if not text:
            return None
        if text.isascii() and text.isdigit() and len(text) <= 9:
            wanted = float(text)
        else:
            try:
                wanted = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
            except (ValueError, TypeError, OverflowError):
                return None
        return min(max(0.0, wanted), self.bounds.retry_after_s)


_CREDENTIALS: Final = "Set user name and password, or a token, in the environment or a context: `qsctl help contexts`."


class Allowance:
    """A token bucket for requests: as many at once as the rate allows in a second, then the rate."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._left = per_second
        self._at: float | None = None

    def wait_s(self, now: float) -> float:
        """Count a request at the instant `now` (seconds); return the seconds to wait before it is sent."""
        if self._at is not None:
            self._left = min(self._per_second, self._left + max(0.0, now - self._at) * self._per_second)
        self._at = now
        self._left -= 1.0
        return max(0.0, -self._left / self._per_second)


def words_of(body: bytes) -> str:
    """Return the explanation in the body of a refusal: the description of SEMP v2, the reason of SEMP v1, the error of
    Prometheus; else an empty text.
    """
    import json
    import re

    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        reason = re.search(rb"<(?:parse-error|execute-result[^>]{0,200}reason=)\W{0,3}([^<\"']{1,300})", body)
        return reason[1].decode("utf-8", "replace") if reason else ""
    if not isinstance(found, dict):
        return ""
    meta = found.get("meta")
    error = meta.get("error") if isinstance(meta, dict) else found.get("error")
    words = error.get("description") if isinstance(error, dict) else error
    return words if isinstance(words, str) else ""


class _PlainConnection(HTTPConnection):
    def __init__(self, *arguments: object, deadline: _Deadline, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        self._deadline = deadline

    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        self._deadline.watch(connected)
        return connected


class _EncryptedConnection(HTTPSConnection):
    def __init__(self, *arguments: object, deadline: _Deadline, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        self._deadline = deadline

    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        self._deadline.watch(connected)
        return connected


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _EncryptedPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _EncryptedConnection


def _pool(address: Address, certificates: Path | None, deadline: _Deadline) -> urllib3.HTTPConnectionPool:
    """Return the connection pool for an origin, which holds one connection.

    Raises:
        InvalidInput: the file of certificates cannot be read, or contains no certificate.
    """
    origin = address.origin
    if origin.scheme == "http":
        return _PlainPool(origin.host, origin.port, maxsize=1, block=True, deadline=deadline)
    try:
        context = ssl.create_default_context(cafile=None if certificates is None else str(certificates))
    except (OSError, ssl.SSLError) as error:
        reason = "it has no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise InvalidInput(
            f"{certificates}: {reason}", remedy="Name a file with certificates in PEM, `-----BEGIN CERTIFICATE-----`."
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return _EncryptedPool(origin.host, origin.port, maxsize=1, block=True, ssl_context=context, deadline=deadline)
