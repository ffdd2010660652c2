"""What a master sends: frames of entries are bounded in octets, and so is what a replica did not confirm."""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.core.high_availability._mastery import Mastery
from qsctl.core.high_availability._progress import FRAME_BYTES_MAX, UNCONFIRMED_BYTES_MAX
from qsctl.core.high_availability.frames import Confirmed, Entries
from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.core.high_availability.versions import Versions
from qsctl.core.records import Enqueued
from qsctl.identity import SampleIdentity
from tests.core.high_availability.cluster import STREAM, TIMEOUT_NS, WRITER, Cluster, queue, write
from tests.core.high_availability.logs import began, log_of, members_of

PAYLOAD = bytes(300_000)


class Sending:
    """A master of one other replica, with a log of samples of these sizes, all durable at itself."""

    def __init__(self, payloads: Sequence[bytes]) -> None:
        samples = [
            Enqueued(STREAM, at, SampleIdentity(WRITER, at), 0, 0, payload=each) for at, each in enumerate(payloads, 1)
        ]
        self.log = log_of(began(1))
        self.outgoing = Outgoing(STREAM, is_stored=False, number=0)
        members = members_of(self.log, "b")
        self.mastery = Mastery(
            STREAM, members, 1, self.log, self.outgoing, 0, TIMEOUT_NS, sends_payloads=True, versions=Versions()
        )
        self.log.append(samples)
        self.outgoing.durable_index = self.log.last_index

    def frames(self) -> list[Entries]:
        return [frame for _, frame in self.outgoing.pop_frames() if isinstance(frame, Entries)]

    def confirm(self, index: int, *, agreed: bool = True) -> list[Entries]:
        self.mastery.receive(1, Confirmed(STREAM, "b", 1, 1, index, 0, agreed))
        return self.frames()


def payload_bytes(frames: Sequence[Entries]) -> int:
    return sum(len(each.payload) for frame in frames for each in frame.records if isinstance(each, Enqueued))


def indexes(frames: Sequence[Entries]) -> list[int]:
    return [frame.previous_index + at for frame in frames for at in range(1, len(frame.records) + 1)]


def test_frame_of_entries_is_bounded_in_octets() -> None:
    sending = Sending([PAYLOAD] * 10)
    frames = sending.confirm(1)
    assert indexes(frames) == list(range(2, 12))
    assert [len(frame.records) for frame in frames] == [3, 3, 3, 1]
    assert all(payload_bytes([frame]) <= FRAME_BYTES_MAX for frame in frames)


def test_entry_larger_than_the_bound_is_sent_in_a_frame_of_its_own() -> None:
    sending = Sending([b"small", bytes(FRAME_BYTES_MAX + 1), b"small", bytes(FRAME_BYTES_MAX), b"small"])
    frames = sending.confirm(1)
    assert indexes(frames) == [2, 3, 4, 5, 6]
    assert [len(frame.records) for frame in frames] == [1, 1, 1, 1, 1]


def test_unconfirmed_entries_are_bounded_in_octets() -> None:
    sending = Sending([PAYLOAD] * 100)
    sent = sending.confirm(1)
    assert UNCONFIRMED_BYTES_MAX <= payload_bytes(sent) < UNCONFIRMED_BYTES_MAX + FRAME_BYTES_MAX
    assert not sending.confirm(1), "nothing more until something is confirmed"
    while (last := indexes(sent)[-1]) < sending.log.last_index:
        sent += sending.confirm(last - 6)
        assert payload_bytes(sent) - (last - 7) * len(PAYLOAD) < UNCONFIRMED_BYTES_MAX + FRAME_BYTES_MAX
    assert indexes(sent) == list(range(2, sending.log.last_index + 1)), "each entry once, in order"


def test_lost_frames_are_sent_again_within_the_bound() -> None:
    sending = Sending([PAYLOAD] * 100)
    sending.confirm(1)
    assert indexes(sending.confirm(1, agreed=False)) == [2, 3, 4], "one frame, to find where the logs agree"
    again = sending.confirm(4)
    assert indexes(again)[0] == 5
    assert UNCONFIRMED_BYTES_MAX <= payload_bytes(again) < UNCONFIRMED_BYTES_MAX + FRAME_BYTES_MAX


def test_heartbeats_are_sent_to_a_replica_that_confirms_nothing() -> None:
    sending = Sending([PAYLOAD] * 100)
    sending.confirm(1)
    sending.mastery.beat(TIMEOUT_NS)
    assert [frame.records for frame in sending.frames()] == [()]


def test_replica_that_missed_many_large_samples_catches_up_without_an_election() -> None:
    cluster = Cluster(3, queue(instances=3))
    master = cluster.elect()
    slow = next(process for process in cluster if process is not master)
    epoch = master.replica.epoch
    cluster.cut(slow.name)
    for number in range(1, 61):
        for process in cluster:
            if process is not slow:
                cluster.send(process.name, write(number, PAYLOAD))
    cluster.run_until(lambda: master.replica.log.commit_index > 60)
    cluster.heal()
    largest = 0

    def caught_up() -> bool:
        nonlocal largest
        for _, recipient, frame in cluster.frames:
            if recipient == slow.name and isinstance(frame, Entries):
                largest = max(largest, payload_bytes([frame]))
        return slow.replica.log.commit_index == master.replica.log.commit_index

    cluster.run_until(caught_up)
    assert 0 < largest <= FRAME_BYTES_MAX
    assert (master.replica.is_master, master.replica.epoch) == (True, epoch)
