"""Resolution of the configured peers' names to addresses.

Decides: the addresses of a name. Cyclone DDS 11.0.1 ends the process with SIGABRT if it cannot resolve a name, and uses
only the first of several addresses. So names are resolved here, each to all of its addresses, and the library receives
numeric ones: the name of a headless service of Kubernetes covers all of its members.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from typing import Final

from qsctl.errors import NoAnswer, UsageError

_PEER: Final = re.compile(r"(?P<host>[^\s:/]+)(?::(?P<port>[0-9]{1,5}))?")
_PORT_MAX: Final = 65_535
ADDRESSES_MAX: Final = 64
"""Maximum number of addresses of one name; further ones are ignored."""


def addresses_of(peers: Iterable[str]) -> tuple[str, ...]:
    """Return peers, given as `address[:port]`, as numeric IPv4 addresses with their ports, without duplicates.

    Raises:
        UsageError: a peer is malformed.
        NoAnswer: a name cannot be resolved now.
    """
    found: dict[str, None] = {}
    for peer in peers:
        match = _PEER.fullmatch(peer)
        port = match["port"] if match is not None else None
        if match is None or (port is not None and not 0 < int(port) <= _PORT_MAX):
            raise UsageError(
                f"the peer {peer!r} is not an address",
                remedy="Write an IPv4 address or a host name, as in host or host:7410.",
            )
        for address in _resolved(match["host"]):
            found[f"{address}:{int(port)}" if port is not None else address] = None
    return tuple(found)


def _resolved(host: str) -> list[str]:
    try:
        return [str(ipaddress.IPv4Address(host))]
    except ValueError:
        pass
    try:
        answers = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise NoAnswer(
            f"the name of the peer {host} cannot be resolved: {reason}",
            remedy="Correct the name, or wait until it exists; an address needs no resolution.",
        ) from None
    return sorted({str(sockaddr[0]) for *_, sockaddr in answers})[:ADDRESSES_MAX]
