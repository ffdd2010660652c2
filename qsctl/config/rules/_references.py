"""The references of a queue to its session and its dead-letter queue, which must exist [QS Table 3.16]."""

from __future__ import annotations

from collections.abc import Iterator

from lxml.etree import _Element

from qsctl.config.tables.queue import QUEUE_FORMS
from qsctl.declared.problems import Problem, did_you_mean, problem_at


def _name(element: _Element, attribute: str = "name") -> str:
    return " ".join((element.get(attribute) or "").split())


def sessions_exist(root: _Element) -> Iterator[Problem]:
    """Check that a queue's `session` is the name of a session of its shared subscriber."""
    for subscriber in root.iter("shared_subscriber"):
        known = [_name(each) for each in subscriber.findall("session_settings/session")]
        for queue in (child for child in subscriber if child.tag in QUEUE_FORMS):
            session = _name(queue, "session")
            if session and session not in known:
                yield problem_at(
                    queue,
                    "the shared subscriber has no such session",
                    found=f'session="{session}"',
                    allowed=", ".join(known) or "no session is defined",
                    suggestion=did_you_mean(session, known),
                )


def dead_letter_queues_exist(root: _Element) -> Iterator[Problem]:
    """Check that a queue's `dead_letter_queue` is the name of its shared subscriber's dead-letter queue [QS 2.12]."""
    for subscriber in root.iter("shared_subscriber"):
        known = [_name(each) for each in subscriber.findall("dead_letter_shared_reader_queue") if _name(each)]
        for queue in subscriber.findall("shared_reader_queue"):
            wanted = _name(queue, "dead_letter_queue")
            if wanted and wanted not in known:
                yield problem_at(
                    queue,
                    "the shared subscriber has no such dead-letter queue",
                    found=f'dead_letter_queue="{wanted}"',
                    allowed=", ".join(known) or "no dead-letter queue has a name",
                    suggestion=did_you_mean(wanted, known),
                )
