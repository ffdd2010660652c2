"""Addresses and credentials of brokers.

Decides which addresses are allowed (HTTP or HTTPS, without credentials in them), which HTTP header carries which
credentials, and that secrets are never printed.
"""

from __future__ import annotations

import base64
import urllib.parse
from dataclasses import dataclass
from typing import Final

from qsctl.errors import UsageError

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
CHARACTERS_MAX: Final = 4096
"""Largest length of an address, a user name, a password or a token, in characters."""


class Secret:
    """A password or a token; only `reveal` returns the text, `repr` and `str` hide it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Secret()"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def reveal(self) -> str:
        """Return the secret text, for use in a request's header and in the file of contexts alone."""
        return self._text


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name with a password, or a bearer token; with neither, requests are anonymous."""

    username: str = ""
    password: Secret = Secret("")
    token: Secret = Secret("")

    def __post_init__(self) -> None:
        for name, text in (("user name", self.username), ("password", self.password.reveal()),
                           ("token", self.token.reveal())):  # fmt: skip
            if len(text) > CHARACTERS_MAX or not all(each.isprintable() for each in text):
                raise UsageError(
                    f"the {name} for the broker is not printable text of at most {CHARACTERS_MAX:,} characters",
                    remedy="Check the variable or the context that it is from.",
                )
        if ":" in self.username:
            raise UsageError("a user name for HTTP has no colon", remedy="Give it without; a token as the token.")
        if self.token and not self.token.reveal().isascii():
            raise UsageError("the token for the broker is not ASCII", remedy="Copy it again.")

    @property
    def is_given(self) -> bool:
        """Return whether requests carry credentials."""
        return bool(self.username or self.token)

    def header(self) -> str:
        """Return the value of the HTTP header `Authorization`; empty for anonymous requests."""
        if self.token:
            return f"Bearer {self.token.reveal()}"
        return f"Basic {self._basic()}" if self.username else ""

    def _basic(self) -> str:
        return base64.b64encode(f"{self.username}:{self.password.reveal()}".encode()).decode("ascii")

    def encoded(self) -> str:
        """Return the credentials in the encoding of the header: the token, or user name and password in base64; else
        empty.
        """
        return self.token.reveal() or (self._basic() if self.username else "")

    def redacted(self, text: str) -> str:
        """Return a text of the server in which credentials that the server sent back are replaced by an ellipsis."""
        for each in (self.encoded(), self.password.reveal()):
            text = text.replace(each, "…") if each else text
        return text


NOBODY: Final = Credentials()


@dataclass(frozen=True, slots=True)
class HttpOrigin:
    """Scheme, host and port of a server; credentials are sent to this origin alone."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def is_encrypted(self) -> bool:
        """Return whether third parties cannot read the traffic: it uses TLS, or stays on this machine."""
        return self.scheme == "https" or self.host in _LOOPBACK


@dataclass(frozen=True, slots=True)
class Address:
    """An origin with the path prefix of its resources: `""`, or `/prefix` without a trailing slash."""

    origin: HttpOrigin
    path: str = ""

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


def origin_of(text: str) -> HttpOrigin:
    """Return the origin of an absolute address.

    Raises:
        ValueError: the address is not an HTTP or HTTPS address with a host, or contains credentials.
    """
    parts = urllib.parse.urlsplit(text)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        raise ValueError(text)
    return HttpOrigin(parts.scheme, parts.hostname.lower(), parts.port or _DEFAULT_PORTS[parts.scheme])


def parse_address(text: str, option: str = "--broker") -> Address:
    """Parse the address that a user gave, such as https://broker.example:943; a trailing `/SEMP` is removed.

    Raises:
        UsageError: the text is not such an address, or contains credentials, which the message does not repeat.
    """
    remedy = "Write it as in https://broker.example:943."
    if "@" in text:
        raise UsageError(
            f"{option}: credentials do not belong into an address",
            remedy="Put them into QSCTL_BROKER_USERNAME and QSCTL_BROKER_PASSWORD, or into a context.",
        )
    if len(text) > CHARACTERS_MAX or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(
            f"{option} is not an address: it has blanks, other characters than ASCII, or too many", remedy=remedy
        )
    try:
        origin = origin_of(text)
        parts = urllib.parse.urlsplit(text)
    except ValueError:
        raise UsageError(f"{option} {text!r} is not an address of HTTP or HTTPS", remedy=remedy) from None
    if parts.query or parts.fragment:
        raise UsageError(f"{option}: an address has no query and no fragment", remedy=remedy)
    path = parts.path.rstrip("/")
    return Address(origin, path.removesuffix("/SEMP"))
