"""Names of peers: resolved before the DDS library sees them, which would end the process on one that does not exist."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest

from qsctl.errors import NoAnswer, UsageError
from qsctl.transport.dds.peers import peer_addresses
from qsctl.transport.dds.peers.peer_addresses import addresses_of
from tests.processes import run


def answer(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    found: list[Any] = [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (address, 0)) for address in addresses]
    monkeypatch.setattr(peer_addresses.socket, "getaddrinfo", lambda *_: found)


def test_addresses_stay_as_they_are() -> None:
    assert addresses_of(["10.0.0.2", "10.0.0.3:7410", "10.0.0.2"]) == ("10.0.0.2", "10.0.0.3:7410")


def test_a_name_is_resolved_to_all_of_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "10.1.0.9", "10.1.0.7", "10.1.0.7")
    assert addresses_of(["queuing"]) == ("10.1.0.7", "10.1.0.9")
    assert addresses_of(["queuing:7410"]) == ("10.1.0.7:7410", "10.1.0.9:7410")


def test_the_addresses_of_a_name_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, *(f"10.1.{at // 250}.{at % 250}" for at in range(1_000)))
    assert len(addresses_of(["queuing"])) == peer_addresses.ADDRESSES_MAX


@pytest.mark.parametrize(
    "peer", ["", "a b", ":7410", "host:", "host:0", "host:65536", "host:x", "::1", "[::1]:7410", "a/b"]
)
def test_what_is_not_an_address_is_refused(peer: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        addresses_of([peer])


@pytest.mark.parametrize("host", ["nosuch.invalid", "999.1.1.1", "a" * 300, "."])
def test_a_name_that_cannot_be_resolved_is_an_error(host: str) -> None:
    with pytest.raises(NoAnswer, match="cannot be resolved"):
        addresses_of([host])


def test_a_command_with_a_wrong_peer_ends_with_an_error_and_without_a_signal() -> None:
    command = [sys.executable, "-m", "qsctl", "get", "data", "--service", "dds:7?peer=nosuch.invalid"]
    done = run(command)
    assert done.returncode == 8, done.stderr
    assert "the name of the peer nosuch.invalid cannot be resolved" in done.stderr
