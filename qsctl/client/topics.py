"""The topic that a producer writes to, found by a queue's or its own name [QS 2.6]."""

from __future__ import annotations

from dataclasses import dataclass

from qsctl.core.admin.reply import QueueData, ServiceData
from qsctl.core.admin.resolve import nearest, queues_named, resolve_queue
from qsctl.errors import NotFound, UsageError
from qsctl.resource import parse_resource


@dataclass(frozen=True, slots=True)
class TopicQueues:
    """A topic in one domain participant, and its queues, each of which enqueues a copy of every sample."""

    participant: str
    topic_name: str
    queues: tuple[QueueData, ...]

    @property
    def type_name(self) -> str:
        """The type of the topic's samples, on which all its queues agree."""
        return self.queues[0].type_name


def topic_named(text: str, data: ServiceData) -> TopicQueues:
    """Return the topic with this name, or of the queue with this name or full identifier.

    Raises:
        NotFound: no queue and no topic has the name.
        UsageError: the name matches queues of several topics, the topic is in several participants, or the queue cannot
            be written to.
    """
    if text.startswith("/"):
        wanted = str(resolve_queue(text, data))
        found = [queue for queue in data.queues if queue.resource == wanted]
    else:
        found = queues_named(text, data) or [queue for queue in data.queues if queue.topic_name == text]
    if not found:
        known = [queue.queue_name for queue in data.queues]
        raise NotFound(f"there is no queue or topic {text!r}", remedy=nearest(text, known))
    topics = {(_participant(queue), queue.topic_name) for queue in found}
    if len(topics) > 1:
        candidates = ", ".join(sorted(queue.queue_name for queue in found))
        raise UsageError(f"{text!r} means several: {candidates}", remedy="Write one of them.")
    if found[0].is_dead_letter:
        raise UsageError(
            f"{found[0].queue_name} is a dead-letter queue: only queues write to it",
            remedy="Write to a queue that names it as its dead-letter queue.",
        )
    participant, topic_name = topics.pop()
    return TopicQueues(
        participant,
        topic_name,
        tuple(
            queue
            for queue in data.queues
            if queue.topic_name == topic_name and _participant(queue) == participant and not queue.is_dead_letter
        ),
    )


def _participant(queue: QueueData) -> str:
    return parse_resource(queue.resource).names[0][1]
