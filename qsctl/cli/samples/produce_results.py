"""The results of `qsctl produce`: the number of samples that each queue accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qsctl.cli.output.results import Block, Result, Row, TextBlock, fields_of
from qsctl.errors import ExitStatus


@dataclass(frozen=True)
class QueueResult(Result):
    """The outcome for the samples of one queue."""

    queue_name: str
    accepted: int
    rejected: int
    unanswered: int
    acknowledges: bool


@dataclass(frozen=True)
class ProducedSamples(Result):
    """The samples written to one topic, and the outcome for each queue."""

    participant: str
    topic_name: str
    written: int
    first_identity: str
    last_identity: str
    queues: tuple[QueueResult, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "participant": "the domain participant",
        "topic_name": "the topic written to",
        "written": "samples written",
        "first_identity": "WRITER_GUID:SEQUENCE_NUMBER of the first; the others follow by one",
        "last_identity": "that of the last",
        "queues": "one object a queue (csv and jsonl: one row a queue)",
        "queue_name": "PARTICIPANT/SUBSCRIBER/QUEUE",
        "accepted": "samples that it acknowledged as stored",
        "rejected": "samples that it refused",
        "unanswered": "samples that it did not acknowledge",
        "acknowledges": "whether the queue acknowledges at all (app_ack_sample_to_producer)",
    }
    row_fields: ClassVar[tuple[str, ...]] = tuple(name for name in field_help if name != "queues")

    @property
    def exit_status(self) -> ExitStatus:
        """Return DONE, PARTLY_DONE, REFUSED or NO_ANSWER, by the answers of the acknowledging queues."""
        answering = [queue for queue in self.queues if queue.acknowledges]
        if all(queue.accepted == self.written for queue in answering):
            return ExitStatus.DONE
        if any(queue.accepted for queue in answering):
            return ExitStatus.PARTLY_DONE
        if any(queue.rejected for queue in answering):
            return ExitStatus.REFUSED
        return ExitStatus.NO_ANSWER

    def rows(self) -> list[Row]:
        """Return one row per queue."""
        common = fields_of(self, "participant", "topic_name", "written", "first_identity", "last_identity")
        return [{**common, **fields_of(queue)} for queue in self.queues]

    def blocks(self) -> list[Block]:
        """Return a line for each queue."""
        return [_line(self, queue) for queue in self.queues]


def _line(produced: ProducedSamples, queue: QueueResult) -> TextBlock:
    if not queue.acknowledges:
        return TextBlock(f"{queue.queue_name}: {produced.written} written (it acknowledges nothing)")
    counts = [f"{queue.accepted} of {produced.written} accepted"]
    if queue.rejected:
        counts.append(f"{queue.rejected} refused")
    if queue.unanswered:
        counts.append(f"{queue.unanswered} not answered")
    return TextBlock(
        f"{queue.queue_name}: {', '.join(counts)}", "good" if queue.accepted == produced.written else "bad"
    )
