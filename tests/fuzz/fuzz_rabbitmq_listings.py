"""Listings of `rabbitmqctl list_queues` as text, see `foreign_queues`."""

from __future__ import annotations

from tests.fuzz.foreign_queues import read_any

DICTIONARY = (
    b"name\tmessages\n",
    b"Listing queues",
    b"\t",
    b"messages_ready",
    b"arguments",
    b"consumers",
    b'[{"x-max-length",long,5}]',
    b'{"x-queue-type","quorum"}',
    b"x-delivery-limit",
    b"-1",
    b"9223372036854775808",
    b"Timeout: 60",
    b"\x1b[0m",
    b"\r",
    b"x-overflow",
    b"reject-publish",
    b"x-message-ttl",
)
SHORT_COUNT = 100


def one_input(data: bytes) -> None:
    read_any(data)
