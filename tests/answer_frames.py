"""Frames of acknowledgments, read one by one."""

from __future__ import annotations

from typing import NamedTuple

from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.dds.wire import frames


class AnswerFrame(NamedTuple):
    """The acknowledgments of one sender for one queue: `responses[i]` answers the sample `identities[i]`."""

    sender: Guid
    queue_name: str
    identities: list[SampleIdentity]
    responses: list[int]


def parse_answers(data: bytes) -> AnswerFrame:
    """Return the inverse of `frames.answers_of`."""
    sender, name, packed = frames._answer_parts(data)
    found = list(frames._ANSWER.iter_unpack(packed))
    identities = [SampleIdentity(guid, high << 32 | low) for guid, high, low, _ in found]
    return AnswerFrame(sender, name, identities, [response for *_, response in found])
