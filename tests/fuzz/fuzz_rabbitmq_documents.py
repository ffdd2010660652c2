"""Listings of RabbitMQ in JSON and exported definitions, see `foreign_queues`."""

from __future__ import annotations

from tests.fuzz.foreign_queues import read_any

DICTIONARY = (
    b'"name":',
    b'"arguments":',
    b'"x-max-length":',
    b'"policies":',
    b'"pattern":"',
    b"^(a|b).*$",
    b".*",
    b"\\\\.",
    b'"priority":',
    b'"apply-to":',
    b'"definition":',
    b'"vhost":"/"',
    b'"queues":[',
    b'"rabbit_version":',
    b"1e999",
    b"null",
    b"-1",
    b"NaN",
    b'"effective_policy_definition":',
    b'"message_stats":',
)
SHORT_COUNT = 100


def one_input(data: bytes) -> None:
    read_any(data)
