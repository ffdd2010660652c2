"""The brokers whose queues have a preset, by the names that `--broker` accepts."""

from __future__ import annotations

from enum import StrEnum


class BrokerKind(StrEnum):
    """A broker, or a kind of its queues where these have rules of their own."""

    RABBITMQ_CLASSIC = "rabbitmq-classic"
    RABBITMQ_QUORUM = "rabbitmq-quorum"
    SQS = "sqs"
    SQS_FIFO = "sqs-fifo"
    JETSTREAM = "jetstream"
    IBM_MQ = "ibm-mq"
    KAFKA_GROUP = "kafka-group"
    CELERY = "celery"
