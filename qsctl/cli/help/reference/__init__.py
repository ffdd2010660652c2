"""The reference: pages of Markdown that are generated from the program's own tables when they are read.

Decides the list of pages. Each is a module with a function `page()`, which is imported only to make its page, so that
the page always matches the code.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Final

from qsctl.sim.brokers.kinds import BrokerKind


@dataclass(frozen=True, slots=True)
class Reference:
    """A generated page: its heading, a sentence about it, and the module of this package that makes its body."""

    title: str
    summary: str
    module: str
    of: str = ""
    """The argument of the module's `page`, if it makes several pages; else empty."""

    def page(self) -> str:
        """Return the page: its heading, its sentence, and the body made by the module."""
        given = (self.of,) if self.of else ()
        body: str = importlib.import_module(f"{__name__}.{self.module}").page(*given)
        return f"# {self.title}\n\n{self.summary}\n\n{body.rstrip()}\n"


def _broker(kind: BrokerKind, title: str) -> tuple[str, Reference]:
    summary = f"The settings of {title} with their defaults and sources, and what of it is modelled."
    return f"broker-{kind}", Reference(f"{title[0].upper()}{title[1:]}", summary, "foreign_brokers", kind)


BROKER_PAGES: Final[dict[str, Reference]] = dict(
    (
        _broker(BrokerKind.RABBITMQ_CLASSIC, "a classic queue of RabbitMQ"),
        _broker(BrokerKind.RABBITMQ_QUORUM, "a quorum queue of RabbitMQ"),
        _broker(BrokerKind.SQS, "a standard queue of Amazon SQS"),
        _broker(BrokerKind.SQS_FIFO, "a FIFO queue of Amazon SQS"),
        _broker(BrokerKind.JETSTREAM, "a consumer of NATS JetStream"),
        _broker(BrokerKind.IBM_MQ, "a local queue of IBM MQ"),
        _broker(BrokerKind.KAFKA_GROUP, "a consumer group of Kafka"),
        _broker(BrokerKind.CELERY, "workers of Celery with Redis"),
    )
)
"""Pages of the presets of other brokers, by name."""

REFERENCES: Final[dict[str, Reference]] = {
    "reference-commands": Reference("Commands", "Every command with its arguments, options and examples.", "commands"),
    "reference-output": Reference(
        "Fields of the output", "The fields that each command prints, and which of them stay as they are.", "output"
    ),
    "reference-exit-statuses": Reference(
        "Exit statuses", "What each exit status means, and which failures have it.", "exit_statuses"
    ),
    "reference-settings": Reference(
        "Settings of a service",
        "Every setting of a service with its values, default and section of the manual.",
        "settings",
    ),
    "reference-scenario": Reference(
        "Elements of a scenario", "Every element and attribute of a scenario file.", "scenario"
    ),
    "reference-metrics": Reference("Metrics", "Every metric that a service exports to Prometheus.", "metrics"),
    "reference-event-log": Reference(
        "Tables of a run folder",
        "Every table and column of a run folder and of a sweep, with its unit and how to decode it.",
        "event_log",
    ),
    "reference-environment": Reference(
        "Environment variables", "Every variable of the environment that qsctl reads.", "environment"
    ),
    "reference-broker-settings": Reference(
        "Settings of a client profile",
        "Every setting of a broker's client profile, under each of its names.",
        "broker_settings",
    ),
    "reference-engine-states": Reference(
        "States of the integration engine", "What the state numbers of messages mean, and what to do.", "engine_states"
    ),
    **BROKER_PAGES,
}
