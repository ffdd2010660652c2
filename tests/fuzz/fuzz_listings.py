"""Captured listings and SEMP v1 replies: figures that are read back when they are printed, or one `InvalidFile`."""

from __future__ import annotations

from qsctl.declared.problems import SHOWN_MAX, InvalidFile
from qsctl.profiles.listings.model import PRIORITY_QUEUES, ClientQueues
from qsctl.profiles.listings.prometheus import prometheus_text
from qsctl.profiles.listings.read import read_listings
from qsctl.profiles.listings.write import write_clients, write_connections, write_neighbors, write_slow_subscribers

DICTIONARY = (
    b"Client: ", b"Neighbor: ", b"Type: ", b"Uptime: 0d 0h 2m 52s", b"Slow Subscriber: Yes", b"*** ", b" ***",
    b"Client Transmit Queues", b"Queue | Length", b"-------+---------", b"---- ----", b"G-1 | ", b"C-1 | ", b"| 0 ",
    b"Conn-1 ", b"Listed from lowest", b"Blocked %", b"unspecified", b"18446744073709551616", b"-1", b"\n", b"\r\n",
    b"Total Egress Discards: ", b"Transmit Congestion: ", b"router> ", b"<rpc-reply>", b"</rpc-reply>", b"<client>",
    b"# CLI command: show message-spool detail\n", b"Maximum Spool Usage:  75000 MB\n", b"Queue Name  Spool\n",
    b"Name : q\nMessage VPN : v\n", b"*** Egress Discards ***\n", b"--More--\r   \r", b"\b", b"{\"data\": [",
    b"\xff\xfe",
    b"<client-queue>", b"<more-cookie/>", b"<execute-result code=\"fail\"/>", b"<!DOCTYPE", b"\t", b"\x1b[2J",
)  # fmt: skip
SHORT_COUNT = 200


def one_input(data: bytes) -> None:
    try:
        found = read_listings(data, "f")
    except InvalidFile as error:
        assert 0 < len(error.problems) <= SHOWN_MAX
        assert len(error.message) < 100_000
        assert all(line.isprintable() for line in error.message.splitlines())
        return
    assert not found.is_empty or found.notes or b"<" in data
    prometheus_text(found)
    write_neighbors(found.neighbors)
    write_slow_subscribers(found.slow_subscribers)
    write_connections(found.connections)
    plain = [
        ClientQueues(f"client-{number}", queues=client.queues)
        for number, client in enumerate(found.clients)
        if tuple(each.queue for each in client.queues) == PRIORITY_QUEUES
    ]
    if plain:
        assert list(read_listings(write_clients(plain).encode(), "written").clients) == plain
