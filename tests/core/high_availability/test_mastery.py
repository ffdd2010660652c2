"""What a master sends: frames of entries are bounded in octets, and so is what a replica did not confirm."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from qsctl.core.high_availability._mastery import Mastery
from qsctl.core.high_availability._progress import FRAME_BYTES_MAX, UNCONFIRMED_BYTES_MAX
from qsctl.core.high_availability.frames import Confirmed, Entries, Frame, Heartbeat, passes
from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.core.high_availability.versions import VERSION, Versions
from qsctl.core.records import Enqueued
from qsctl.identity import SampleIdentity
from tests.core.high_availability.cluster import STREAM, TIMEOUT_NS, WRITER, Cluster, queue, write
from tests.core.high_availability.logs import began, enqueued, log_of, members_of

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
        self.versions = Versions()
        self.mastery = Mastery(
            STREAM, members, 1, self.log, self.outgoing, 0, TIMEOUT_NS, sends_payloads=True, versions=self.versions
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
    (probe,) = sending.confirm(1, agreed=False)
    assert not probe.records, "these are too large for a frame that finds out where the logs agree"
    again = sending.confirm(4)
    assert indexes(again)[0] == 5
    assert UNCONFIRMED_BYTES_MAX <= payload_bytes(again) < UNCONFIRMED_BYTES_MAX + FRAME_BYTES_MAX


def test_heartbeats_are_sent_to_a_replica_that_confirms_nothing() -> None:
    sending = Sending([PAYLOAD] * 100)
    sending.confirm(1)
    sending.mastery.beat(TIMEOUT_NS)
    assert [frame.records for frame in sending.frames()] == [()]


def beat(sending: Sending) -> list[Frame]:
    sending.mastery.beat(TIMEOUT_NS)
    return [frame for _, frame in sending.outgoing.pop_frames()]


def test_heartbeat_that_passes_samples_claims_nothing_about_the_log() -> None:
    sending = Sending([PAYLOAD] * 100)
    sending.versions.note("b", VERSION)
    sent = sending.confirm(1)
    heartbeat, behind = beat(sending)
    assert isinstance(heartbeat, Heartbeat)
    assert (heartbeat.index, heartbeat.index_epoch) == (0, 0)
    assert isinstance(behind, Entries), "what is read behind the samples finds out whether all of them arrived"
    assert (behind.previous_index, behind.records) == (indexes(sent)[-1], ())
    assert [passes(each) for each in (heartbeat, behind, sent[0])] == [True, False, False]


def test_heartbeat_to_a_replica_that_has_everything_is_the_only_frame_and_is_about_the_last_entry() -> None:
    sending = Sending([b"small"] * 3)
    sending.versions.note("b", VERSION)
    sending.confirm(1)
    sending.confirm(sending.log.last_index)
    (heartbeat,) = beat(sending)
    assert isinstance(heartbeat, Heartbeat)
    assert (heartbeat.index, heartbeat.index_epoch) == (sending.log.last_index, 1)


def test_confirmed_heartbeat_ends_no_search_for_where_the_logs_agree() -> None:
    sending = Sending([PAYLOAD] * 100)
    sending.versions.note("b", VERSION)
    sending.confirm(1, agreed=False)
    peer = sending.mastery.progress["b"]
    peer.next_index = 50
    assert not sending.confirm(1)
    assert (peer.is_probed, peer.next_index) == (True, 50)


def test_answer_to_a_frame_before_entries_were_sent_again_is_outdated() -> None:
    sending = Sending([PAYLOAD] * 100)
    sending.confirm(1)
    sending.mastery.receive(5, Confirmed(STREAM, "b", 1, 1, 1, 4, False))
    sending.mastery.receive(6, Confirmed(STREAM, "b", 1, 1, 1, 5, True))
    assert payload_bytes(sending.frames()) >= UNCONFIRMED_BYTES_MAX
    sending.mastery.receive(7, Confirmed(STREAM, "b", 1, 1, 1, 4, False))
    assert not sending.frames()
    sending.mastery.receive(7, Confirmed(STREAM, "b", 1, 1, 1, 6, False))
    assert [each.records for each in sending.frames()] == [()], "of what was sent again some is lost, too"


class Overtaken(Cluster):
    """A cluster in which frames that pass others arrive at once, and of the others to one member one each tick."""

    slow = ""

    def __init__(self, size: int) -> None:
        super().__init__(size, queue(instances=size))
        self.arrived: list[Frame] = []
        """At the slow one."""
        self.heard_at_ns: list[int] = []
        """When a heartbeat arrived there."""

    def tick(self) -> None:
        held = [each for each in self.frames if each[1] == self.slow and not passes(each[2])]
        self.frames = [each for each in self.frames if each not in held] + held[:1]
        arriving = [frame for _, recipient, frame in self.frames if recipient == self.slow]
        self.arrived += arriving
        if any(isinstance(frame, Heartbeat) for frame in arriving):
            self.heard_at_ns.append(self.now)
        super().tick()
        self.frames = held[1:] + self.frames


def test_heartbeats_that_pass_a_backlog_keep_a_slow_replica_and_have_nothing_sent_twice() -> None:
    cluster = Overtaken(3)
    master = cluster.elect()
    cluster.run_for(TIMEOUT_NS)
    slow = next(process for process in cluster if process is not master)
    epoch, count = master.replica.epoch, 400
    cluster.cut(slow.name)
    for number in range(1, count + 1):
        for process in cluster:
            if process is not slow:
                cluster.send(process.name, write(number, PAYLOAD))
    cluster.run_until(lambda: master.replica.log.commit_index > count)
    cluster.heal()
    cluster.slow = slow.name
    cluster.run_until(lambda: slow.replica.log.commit_index == master.replica.log.commit_index)
    assert cluster.now - cluster.heard_at_ns[0] > 2 * TIMEOUT_NS
    gaps_ns = [later - earlier for earlier, later in itertools.pairwise(cluster.heard_at_ns)]
    assert max(gaps_ns) < TIMEOUT_NS / 3
    entries = [frame for frame in cluster.arrived if isinstance(frame, Entries)]
    assert payload_bytes(entries) < 1.1 * count * len(PAYLOAD)
    assert (master.replica.is_master, master.replica.epoch) == (True, epoch)


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


def test_log_is_durable_no_further_than_it_was_truncated() -> None:
    outgoing = Outgoing(STREAM, is_stored=True, number=0)
    outgoing.write_records(1, [began(1), enqueued(1), enqueued(2)], truncates=False)
    outgoing.stored(outgoing.number)
    assert outgoing.durable_index == 3
    outgoing.write_records(2, [began(2), enqueued(4)], truncates=True)
    assert outgoing.durable_index == 1
    outgoing.stored(outgoing.number)
    assert outgoing.durable_index == 3
