"""Options by the words of other programs: the names in RTI, Solace, Kafka and RabbitMQ for the options here.

Decides which option is suggested for an unknown one. By its letters `--limit` resembles `--timeout`; by its meaning it
is `--count`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "--limit": ("--count", "--limit"),
    "--max-messages": ("--count", "--limit"),  # kafka-console-consumer
    "--num": ("--count",),
    "--number": ("--count",),
    "--all": ("--count",),
    "--domain": ("--service",),  # RTI
    "--domain-id": ("--service",),
    "--domainId": ("--service",),
    "--host": ("--service",),  # rabbitmqadmin
    "--broker": ("--service",),
    "--broker-list": ("--service",),
    "--bootstrap-server": ("--service",),  # Kafka
    "--url": ("--service",),
    "--vhost": ("--service",),  # RabbitMQ
    "--node": ("--target",),  # rabbitmqctl
    "--app-name": ("--target",),  # RTI
    "--appName": ("--target",),
    "--requeue": ("--no-ack",),  # rabbitmqadmin get
    "--ackmode": ("--no-ack", "--reject"),
    "--no-acknowledge": ("--no-ack",),
    "--nack": ("--reject",),
    "--payload": ("--text",),
    "--message": ("--text",),
    "--body": ("--text",),
    "--ttl": ("--lifespan",),  # Solace, RabbitMQ
    "--message-ttl": ("--lifespan",),
    "--max-ttl": ("--lifespan",),
    "--expiration": ("--lifespan",),
    "--durable": ("--persistent",),  # RabbitMQ
    "--max-length": ("--max-count",),
    "--max-depth": ("--max-count",),
    "--max-length-bytes": ("--max-bytes",),
    "--quota": ("--max-bytes",),  # Solace
    "--max-spool-usage": ("--max-bytes",),
    "--overflow": ("--when-full",),
    "--prefetch": ("--unacked-threshold",),
    "--prefetch-count": ("--unacked-threshold",),
    "--max-unacked": ("--unacked-threshold",),
    "--max-delivered-unacked-msgs-per-flow": ("--unacked-threshold",),
    "--delivery-limit": ("--max-delivery-retries",),
    "--max-redelivery": ("--max-delivery-retries",),
    "--max-redelivery-count": ("--max-delivery-retries",),
    "--ack-timeout": ("--response-timeout",),
    "--consumer-timeout": ("--response-timeout",),
    "--dead-letter-exchange": ("--dead-letter",),
    "--dead-message-queue": ("--dead-letter",),  # Solace
    "--dmq": ("--dead-letter",),
    "--dlq": ("--dead-letter",),
    "--filter": ("--select",),
    "--selector": ("--select",),
    "--format": ("--output",),
    "--from-offset": ("--after",),  # Kafka
    "--offset": ("--after",),
    "--group": ("--subscriber",),  # Kafka's consumer group
    "--cfgName": ("--target",),
}
"""Options of other programs, each with the candidates for it here; the first that a command has is suggested."""


def options_meant(word: str, known: Iterable[str]) -> list[str]:
    """Return the option of a command that another program's option corresponds to; empty if it is not known.

    Args:
        word: the option as it was typed.
        known: the options of the command.
    """
    there = set(known)
    return [option for option in SYNONYMS.get(word, ()) if option in there and option != word][:1]
