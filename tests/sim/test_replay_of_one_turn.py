"""What happens inside one turn of the live service happens inside one turn of its replay."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerJoined, Inbound, Write
from qsctl.core.queue.settings import RedeliverySettings, ResourceLimitSettings, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.turn import Turn
from qsctl.eventlog.recording.story import Happened, RecordingEnded
from qsctl.identity import SampleIdentity, counted_incarnations
from qsctl.instant import MILLISECOND_NS
from qsctl.sim.replay.recording import read_recording
from qsctl.sim.replay.replay import replay
from tests.processes import end
from tests.service.recorder_process import NAME, READER, WRITER, Recorded

ORDERS = SharedReaderQueueSettings(
    "Orders", "O", redelivery=RedeliverySettings(3), limits=ResourceLimitSettings(max_count=1)
)
SETTINGS = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", (), (ORDERS,)),)),))
FIRST, SECOND = SampleIdentity(WRITER, 1), SampleIdentity(WRITER, 2)
answer = functools.partial(Acknowledgment, NAME, READER)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorded]:
    started = Recorded(tmp_path / "recording", tmp_path, 60, SETTINGS)
    yield started
    started.socket.close()
    end(started.process)


def test_an_answer_that_is_taken_for_the_delivery_of_its_own_turn_is_given_in_that_turn(
    recorder: Recorded, tmp_path: Path
) -> None:
    """A consumer that had a sample twice answers twice: the rejection sends it again, the acceptance ends that."""
    turns: list[tuple[int, list[Inbound]]] = [
        (1, [ConsumerJoined(NAME, READER)]),
        (2, [Write("P", "O", FIRST, b"first")]),
        (5, [answer(FIRST, AckResponse.REJECTED), answer(FIRST), Write("P", "O", SECOND, b"for which there is room")]),
        (9, [answer(SECOND)]),
    ]
    engine = ServiceEngine(SETTINGS, started_at=0, draw=counted_incarnations(), journal=Journal.EVERYTHING)
    engine.hosted.reports_inputs = True
    engine.finish_restore(0)
    turn = Turn(engine)
    for at_ms, messages in turns:
        turn.receive(messages)
        while turn.step(at_ms * MILLISECOND_NS):
            while (group := turn.to_write()) is not None:
                for batch in (batch for ready in group.turns for batch in ready.batches):
                    turn.durable(batch.stream, batch.last_index)
        for released in turn.to_send():
            recorder.tell(Happened(released.events, released.inputs))
    recorder.tell(RecordingEnded(10 * MILLISECOND_NS))
    recorder.last_words()
    first = [row for row in read_recording(recorder.folder).deliveries if row.sequence_number == 1]
    assert [(row.sent_ns, row.answered_ns) for row in first] == [
        (2 * MILLISECOND_NS, 5 * MILLISECOND_NS),
        (5 * MILLISECOND_NS, 5 * MILLISECOND_NS),
    ]
    difference = replay(recorder.folder, tmp_path / "replay").difference
    assert difference.lines == ()
    assert difference.is_equal
