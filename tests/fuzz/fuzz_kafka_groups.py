"""`kafka-consumer-groups --describe`, see `foreign_queues`."""

from __future__ import annotations

from tests.fuzz.foreign_queues import read_any

DICTIONARY = (
    b"GROUP TOPIC PARTITION LAG\n",
    b"LOG-END-OFFSET",
    b"CONSUMER-ID",
    b" - ",
    b"-1",
    b"18446744073709551616",
    b"Consumer group",
    b"\t",
    b"TOPIC",
    b"0 1 2",
    b"\xc2\xa0",
    b"\x1b[7m",
)
SHORT_COUNT = 100


def one_input(data: bytes) -> None:
    read_any(data)
