"""Attributes of SQS queues, see `foreign_queues`."""

from __future__ import annotations

from tests.fuzz.foreign_queues import read_any

DICTIONARY = (
    b'"Attributes":',
    b'"VisibilityTimeout":',
    b'"RedrivePolicy":',
    b'{\\"maxReceiveCount\\":3}',
    b'"FifoQueue":"true"',
    b'"QueueArn":',
    b"arn:aws:sqs:",
    b"43200",
    b"-1",
    b"\\ud800",
    b'"ApproximateNumberOfMessages":',
    b"1e999",
    b"9" * 30,
)
SHORT_COUNT = 100


def one_input(data: bytes) -> None:
    read_any(data)
