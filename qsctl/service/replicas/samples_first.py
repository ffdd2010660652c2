"""The order of reading: samples of producers before messages of other replicas, which omit the payloads [QS 7.1.1.1].

A producer sends a sample to every replica, and the master's entry of it omits the payload. A replica that has not read
the sample yet when the entry arrives refuses it, and the master sends it and all later ones again with payloads.
Without this order that happened to a third of all entries under load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from qsctl.core.high_availability.frames import Entries
from qsctl.core.messages import Inbound
from qsctl.transport.dds.replicas.letter_box import ReceivedLetter

POLLS_MAX: Final = 8
"""Shares of samples that letters wait for at most: twice a producer's window, and a few milliseconds."""


def read_samples_first(
    letters: Sequence[ReceivedLetter], poll: Callable[[], list[Inbound]], step: Callable[[list[Inbound]], object]
) -> list[Inbound]:
    """Poll for samples if the letters need their payloads, and step all polled batches but the last one.

    Args:
        letters: the letters of other replicas, received before the samples are polled.
        poll: returns a batch of messages for the engine.
        step: runs a turn of the engine with a batch.

    Returns:
        The last batch, to be stepped together with the letters.
    """
    inbox = poll()
    if _leave_out_payloads(letters):
        for _ in range(POLLS_MAX):
            if not inbox:
                break
            step(inbox)
            inbox = poll()
    return inbox


def _leave_out_payloads(letters: Sequence[ReceivedLetter]) -> bool:
    return any(
        isinstance(frame, Entries) and frame.lacks_payloads and frame.records
        for each in letters
        for frame in each.letter.frames
    )
