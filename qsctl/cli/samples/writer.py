"""The writer of `qsctl produce`: samples in batches, with their identities and the counts of each queue's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from qsctl.cli.output.render import note
from qsctl.cli.output.results import counted
from qsctl.cli.samples.produce_results import ProducedSamples, QueueResult
from qsctl.client.connection import Connection, ReportsSilence
from qsctl.client.topics import TopicQueues
from qsctl.core.messages import AckResponse, SampleFlag, Write
from qsctl.errors import Interrupted, PartlyDone, QsctlError
from qsctl.identity import (
    Guid,
    SampleIdentity,
)
from qsctl.instant import Nanoseconds

BATCH_SAMPLES: Final = 1000
BATCH_BYTES: Final = 4 * 1024 * 1024
_END: Final = object()


@dataclass(frozen=True, slots=True)
class SampleOrigin:
    """The writer, related identities and lifespan of samples [QS 2.11]."""

    writer_guid: Guid
    first_sequence_number: int
    source_guid: Guid
    related_source_guid: Guid
    related_identity: SampleIdentity
    lifespan_ns: Nanoseconds
    flags: int = SampleFlag.NONE

    def identity(self, index: int) -> SampleIdentity:
        """Return the identity of the sample at this index, from 0."""
        return SampleIdentity(self.writer_guid, self.first_sequence_number + index)


def _note_silence(count: int) -> None:
    samples = counted(count, "sample")
    note(f"Waiting: no queue has answered {samples} for a second. It is full, or its replicas elect a new master.")


def write_all(
    connection: Connection, topic: TopicQueues, payloads: Iterable[bytes | None], origin: SampleOrigin
) -> ProducedSamples:
    """Write every payload, and count the answers by queue.

    A batch is written whenever it is full or the input (None) would block, so that standard input of any length is
    written as it arrives.

    Raises:
        PartlyDone: an error occurred after the first samples were written.
        QsctlError: an error occurred before any was written.
    """
    if isinstance(connection, ReportsSilence):
        connection.on_silence = _note_silence
    answers: Counter[tuple[str, AckResponse]] = Counter()
    written = 0
    unanswered = 0
    try:
        for batch in _batches(payloads):
            samples = [_write(topic, origin, written + at, payload) for at, payload in enumerate(batch)]
            unanswered = len(batch)
            answers.update((ack.queue, ack.response) for ack in connection.write(samples))
            written, unanswered = written + len(batch), 0
    except KeyboardInterrupt:
        more = f"; {unanswered} more were on their way and may be written" if unanswered else ""
        raise Interrupted(f"interrupted after {written} samples{more}") from None
    except QsctlError as error:
        if not written:
            raise
        raise PartlyDone(
            f"{error.message}\nThe {written} samples before it are written.", remedy=error.remedy
        ) from None
    return ProducedSamples(
        topic.participant,
        topic.topic_name,
        written,
        str(origin.identity(0)) if written else "",
        str(origin.identity(written - 1)) if written else "",
        tuple(
            _result(
                queue.queue_name,
                answers[queue.queue_name, AckResponse.ACCEPTED],
                answers[queue.queue_name, AckResponse.REJECTED],
                written,
                acknowledges=queue.acknowledges_producers,
            )
            for queue in topic.queues
        ),
    )


def _result(queue_name: str, accepted: int, rejected: int, written: int, *, acknowledges: bool) -> QueueResult:
    return QueueResult(queue_name, accepted, rejected, written - accepted - rejected, acknowledges)


def _write(topic: TopicQueues, origin: SampleOrigin, index: int, payload: bytes) -> Write:
    return Write(
        topic.participant,
        topic.topic_name,
        origin.identity(index),
        payload,
        source_guid=origin.source_guid,
        related_source_guid=origin.related_source_guid,
        related_identity=origin.related_identity,
        flags=origin.flags,
        lifespan_ns=origin.lifespan_ns,
    )


def _batches(payloads: Iterable[bytes | None]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size_bytes = 0
    rest = iter(payloads)
    while True:
        try:
            payload = next(rest, _END)
        except QsctlError:
            if batch:  # samples read before the mistake are written, as those of an earlier batch are
                yield batch
            raise
        if isinstance(payload, bytes):
            batch.append(payload)
            size_bytes += len(payload)
        if batch and (not isinstance(payload, bytes) or len(batch) == BATCH_SAMPLES or size_bytes >= BATCH_BYTES):
            yield batch
            batch, size_bytes = [], 0
        if payload is _END:
            return
