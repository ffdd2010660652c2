"""Where the processes of a cluster under faults run: on the loopback, or each member in a network namespace of its own.

Namespaces need root and change the network of the machine; only there links are cut and lose datagrams.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from tests.dds.namespaces import bridged, ip
from tests.dds.nemesis.service import NAMESPACE
from tests.processes import run

_DEVICE: Final = "e0"
_CLIENTS: Final = "P"
_SLOTS: Final = "ABCDEFGH"
_LOST_RATE: Final = "200kbit"
"""What a link that loses datagrams lets pass."""

_FIRST_PORT: Final = 7410
_PORTS_PER_DOMAIN: Final = 250
_PARTICIPANTS: Final = 3
"""A member's participants: of its queues, its administration, and its replicated configuration."""


class Links(Protocol):
    """The links of members to each other and to the clients."""

    def cut(self, member: str, others: Sequence[str]) -> None:
        """Let no datagram of a member reach some others; "" are the clients."""

    def restore(self, member: str, other: str) -> None:
        """Let datagrams of a member reach another one again."""

    def lose(self, member: str) -> None:
        """Let a part of the datagrams that a member sends be lost."""

    def heal(self, member: str) -> None:
        """Let all datagrams of a member arrive."""


class Hosts:
    """Hosts of one machine: all that runs is on the loopback."""

    serve_words: tuple[str, ...] = ("--lease", "2s")
    interface = "lo"
    peers: tuple[str, ...] = ()
    namespace = ""
    """Of the clients."""
    links: Links | None = None
    """None: they cannot be cut."""

    def prepare(self, directory: Path) -> None:
        """Prepare a member's directory, which is named after the member."""

    def free(self, member: str) -> None:
        """Let another member have this one's host."""


class Namespaces(Hosts):
    """A namespace for each member and one for all clients, on a bridge."""

    interface = _DEVICE

    def __init__(self, tag: str, domain: int) -> None:
        self._tag = tag
        self._slots: dict[str, str] = {}
        first = _FIRST_PORT + _PORTS_PER_DOMAIN * domain
        ports = [first + 2 * index for index in range(_PARTICIPANTS)]
        # Members alone are asked by address and port: a peer without a port is asked at a hundred. Clients ask them.
        self.peers = tuple(f"{_address(slot)}:{port}" for slot in _SLOTS for port in ports)
        self.serve_words = (
            *Hosts.serve_words, "--interface", _DEVICE, *(word for peer in self.peers for word in ("--peer", peer)),
        )  # fmt: skip
        self.namespace = f"{tag}{_CLIENTS}"
        self.links = self

    def prepare(self, directory: Path) -> None:
        slot = next(each for each in _SLOTS if each not in self._slots.values())
        self._slots[directory.name] = slot
        (directory / NAMESPACE).write_text(f"{self._tag}{slot}", encoding="ascii")

    def free(self, member: str) -> None:
        del self._slots[member]

    def cut(self, member: str, others: Sequence[str]) -> None:
        # A neighbour of an address that no device has: what is sent there is lost, without an error for the sender.
        for each in others:
            words = ("lladdr", "02:00:00:00:00:fe", "nud", "permanent", "dev", _DEVICE)
            ip("-n", self._namespace(member), "neigh", "replace", _address(self._slots.get(each, _CLIENTS)), *words)

    def restore(self, member: str, other: str) -> None:
        if member in self._slots and other in self._slots:  # neither was replaced meanwhile
            run(["ip", "-n", self._namespace(member), "neigh", "del", _address(self._slots[other]), "dev", _DEVICE])

    def lose(self, member: str) -> None:
        words = ("root", "tbf", "rate", _LOST_RATE, "burst", "20kb", "limit", "40kb")
        done = run(["tc", "-n", self._namespace(member), "qdisc", "replace", "dev", _DEVICE, *words])
        assert done.returncode == 0, done.stderr

    def heal(self, member: str) -> None:
        name = self._namespace(member)
        run(["ip", "-n", name, "neigh", "flush", "nud", "permanent", "dev", _DEVICE])
        run(["tc", "-n", name, "qdisc", "del", "dev", _DEVICE, "root"])

    def _namespace(self, member: str) -> str:
        return f"{self._tag}{self._slots[member]}"


def _address(slot: str) -> str:
    return f"10.77.0.{(*_SLOTS, _CLIENTS).index(slot) + 1}"


@contextlib.contextmanager
def hosts(domain: int, *, is_networked: bool) -> Iterator[Hosts]:
    """Yield the hosts of a cluster in a domain."""
    if not is_networked:
        yield Hosts()
        return
    with bridged({slot: _address(slot) for slot in (*_SLOTS, _CLIENTS)}, lambda _: _DEVICE) as tag:
        yield Namespaces(tag, domain)
