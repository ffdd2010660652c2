"""Amazon SQS: the attributes of a queue, as `aws sqs get-queue-attributes --attribute-names All` writes them.

Values are quoted numbers of seconds and bytes; the redrive policy is JSON in a text. The name is the last part of the
ARN.
"""

from __future__ import annotations

import json
from typing import Any, Final

from qsctl.instant import SECOND_NS
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.listed._documents import ListedObject
from qsctl.sim.brokers.listed.model import ForeignQueue

_SECONDS: Final = ("VisibilityTimeout", "MessageRetentionPeriod", "DelaySeconds", "ReceiveMessageWaitTimeSeconds")


def is_attributes(document: ListedObject) -> bool:
    """Return whether an object has the attributes of a queue."""
    return isinstance(document.values.get("Attributes"), dict) or "VisibilityTimeout" in document.values


def queue_of(document: ListedObject) -> ForeignQueue:
    """Return the queue that has these attributes."""
    attributes = document.inner("Attributes") if "Attributes" in document.values else document
    arn = attributes.text("QueueArn") or ""
    name = arn.rpartition(":")[2] or "queue"
    fifo = attributes.truth("FifoQueue") or name.endswith(".fifo")
    settings = {word: attributes.duration(word, SECOND_NS) for word in _SECONDS}
    settings["maxReceiveCount"] = _max_receives(attributes)
    return ForeignQueue(
        name, BrokerKind.SQS_FIFO if fifo else BrokerKind.SQS,
        {word: text for word, text in settings.items() if text is not None},
        waiting=_waiting(attributes), outstanding=attributes.count("ApproximateNumberOfMessagesNotVisible"),
    )  # fmt: skip


def _waiting(attributes: ListedObject) -> int | None:
    visible = attributes.count("ApproximateNumberOfMessages")
    delayed = attributes.count("ApproximateNumberOfMessagesDelayed")
    return None if visible is None else visible + (delayed or 0)


def _max_receives(attributes: ListedObject) -> str | None:
    """Return `maxReceiveCount` of the redrive policy; None where there is none."""
    text = attributes.text("RedrivePolicy")
    if text is None:
        return None
    found: Any = None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        attributes.findings.add(
            attributes.line, "the redrive policy is passed over", found=text[:80], allowed="an object of JSON in a text"
        )
        return None
    policy = ListedObject(attributes.line, found, attributes.findings, "RedrivePolicy")
    count = policy.count("maxReceiveCount", low=1)
    return None if count is None else str(count)
