"""Letters as version 3 of the members reads and writes them, copied from its source, and clusters with such members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from qsctl.core.high_availability.frames import ConditionReport, Entry, Frame, Heartbeat
from qsctl.core.messages import Write
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.records import QueueRecord
from qsctl.transport.dds.boundary import Boundary, Malformed
from qsctl.transport.dds.replicas.letter_box import LetterBox, Seen
from qsctl.transport.dds.replicas.replica_letters import Assembly, letter_from_octets, piece_from_octets
from tests.core.high_availability.cluster import Cluster, Process


class Canvass(msgspec.Struct, frozen=True, array_like=True, tag="canvass", gc=False):
    stream: str
    sender: str
    epoch: int
    candidate_epoch: int
    last_epoch: int
    last_index: int
    is_trial: bool
    incarnation: int = 0


class Vote(msgspec.Struct, frozen=True, array_like=True, tag="vote", gc=False):
    stream: str
    sender: str
    epoch: int
    candidate_epoch: int
    is_trial: bool
    granted: bool
    incarnation: int = 0


class Entries(msgspec.Struct, frozen=True, array_like=True, tag="entries", gc=False):
    stream: str
    sender: str
    epoch: int
    previous_index: int
    previous_epoch: int
    records: tuple[Entry, ...]
    commit_index: int
    sent_at_ns: int
    lacks_payloads: bool = False
    incarnation: int = 0


class Confirmed(msgspec.Struct, frozen=True, array_like=True, tag="confirmed", gc=False):
    stream: str
    sender: str
    epoch: int
    run: int
    match_index: int
    sent_at_ns: int
    agreed: bool = True
    lacks_payload: bool = False
    is_learner: bool = False
    incarnation: int = 0


class Snapshot(msgspec.Struct, frozen=True, array_like=True, tag="snapshot", gc=False):
    stream: str
    sender: str
    epoch: int
    index: int
    index_epoch: int
    records: tuple[QueueRecord, ...]
    sent_at_ns: int
    incarnation: int = 0


class Roll(msgspec.Struct, frozen=True, array_like=True, tag="roll", gc=False):
    stream: str
    sender: str
    epoch: int
    run: int
    last_epoch: int
    last_index: int
    is_learner: bool
    answers: int | None = None
    incarnation: int = 0
    is_new: bool = False
    left: tuple[int, ...] = ()
    floor_epoch: int = 0
    floor_index: int = 0


class Relayed(msgspec.Struct, frozen=True, array_like=True, tag="relayed", gc=False):
    stream: str
    sender: str
    epoch: int
    queue: str
    write: Write
    incarnation: int = 0


class Farewell(msgspec.Struct, frozen=True, array_like=True, tag="farewell", gc=False):
    stream: str
    sender: str
    epoch: int
    successor: str
    incarnation: int = 0


FrameOfVersion3: TypeAlias = Canvass | Vote | Entries | Confirmed | Snapshot | Roll | Relayed | Farewell


class Letter(msgspec.Struct, frozen=True, array_like=True):
    version: int
    members: tuple[str, ...]
    frames: tuple[FrameOfVersion3, ...]


_AS_FRAMES = msgspec.msgpack.Decoder(tuple[Frame, ...])
_AS_OF_VERSION_3 = msgspec.msgpack.Decoder(tuple[FrameOfVersion3, ...])


def read(data: bytes) -> Letter:
    """Read a letter as version 3 does: whole or not at all.

    Raises:
        Malformed: it does not, and drops the letter.
    """
    try:
        letter = msgspec.msgpack.decode(data, type=Letter)
    except msgspec.MsgspecError as error:
        raise Malformed(str(error)) from error
    if letter.version != 3:
        raise Malformed(f"a letter of version {letter.version}")
    return letter


class MixedCluster(Cluster):
    """A cluster of members of this version and of version 3; what is sent passes as octets that the two ends write and
    read.

    Args:
        size: the number of members.
        of_version_3: the members of version 3.
    """

    def __init__(self, size: int, of_version_3: set[str], *queues: SharedReaderQueueSettings) -> None:
        self.of_version_3 = of_version_3
        self.dropped: list[str] = []
        """Why letters were dropped."""
        self.skipped: list[str] = []
        self._boxes: dict[str, LetterBox] = {}
        super().__init__(size, *queues)

    def gather(self, process: Process) -> None:
        letters: dict[str, list[Frame]] = {}
        for recipient, frame in process.member.pop_frames():
            letters.setdefault(recipient, []).append(frame)
        for recipient, frames in letters.items():
            for data in self._written(process.name, tuple(frames)):
                self.frames += [(process.name, recipient, frame) for frame in self._read(process.name, recipient, data)]

    def _written(self, sender: str, frames: tuple[Frame, ...]) -> Iterator[bytes]:
        names = tuple(self.processes)
        if sender in self.of_version_3:
            known = [
                each for each in frames if not isinstance(each, ConditionReport | Heartbeat)
            ]  # sent before its downgrade
            frames_of_version_3 = _AS_OF_VERSION_3.decode(msgspec.msgpack.encode(known))
            yield msgspec.msgpack.encode(Letter(3, names, frames_of_version_3))
            return
        box = self._boxes.setdefault(sender, LetterBox(Seen(sender, "", 0), "", Boundary()))
        assembly = Assembly()
        for pieces in box.messages((), names, frames):
            *_, data = [assembly.add(piece_from_octets(octets)) for octets in pieces]
            assert data is not None
            yield data

    def _read(self, sender: str, recipient: str, data: bytes) -> tuple[Frame, ...]:
        if recipient not in self.of_version_3:
            letter = letter_from_octets(data, sender, self.skipped.append)
            self[recipient].member.versions.note(sender, letter.version)
            return letter.frames
        try:
            return _AS_FRAMES.decode(msgspec.msgpack.encode(read(data).frames))
        except Malformed as error:
            self.dropped.append(str(error))
            return ()
