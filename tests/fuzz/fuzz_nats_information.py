"""`nats consumer info --json` and `nats stream info --json`, see `foreign_queues`."""

from __future__ import annotations

from tests.fuzz.foreign_queues import read_any

DICTIONARY = (
    b'"stream_name":',
    b'"config":',
    b'"ack_wait":',
    b'"backoff":[',
    b'"max_ack_pending":',
    b'"max_deliver":',
    b'"state":',
    b'"first_ts":',
    b"2026-03-01T10:00:00Z",
    b"0001-01-01T00:00:00Z",
    b"9999-12-31T23:59:59-23:59",
    b'"last_seq":',
    b"-1",
    b"1e999",
    b"18446744073709551615",
    b'"discard":"new"',
)
SHORT_COUNT = 100


def one_input(data: bytes) -> None:
    read_any(data)
