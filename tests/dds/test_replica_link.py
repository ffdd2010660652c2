"""Letters between replicas over DDS: who sees whom, what arrives, and what a stranger's octets do [QS 7.1 and 7.3]."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qsctl.core.high_availability.frames import Entries, Heartbeat, Vote
from qsctl.core.high_availability.versions import VERSION
from qsctl.core.queue.settings import ReplicationSettings, SharedReaderQueueSettings
from qsctl.core.records import Enqueued
from qsctl.identity import NIL_IDENTITY
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.replicas import replica_link
from qsctl.transport.dds.replicas._replica_wire import REPLICATION_TOPIC, WireReplicaPiece
from qsctl.transport.dds.replicas.letter_box import ReceivedLetter, Seen
from qsctl.transport.dds.replicas.replica_letters import LETTER_FORMAT, Letter, pieces_of
from qsctl.transport.dds.replicas.replica_link import WAITING_PIECES_MAX, LinkQos, ReplicaLink, link_qos
from qsctl.transport.dds.serving._delivery import DomainDelivery
from qsctl.transport.dds.wire.frames import ENCAPSULATION
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

VOTE = Vote("P/S/orders", "A", 2, 3, True, True)


class Node:
    """One service's end of the letters."""

    def __init__(
        self,
        domain: int,
        cluster: str,
        name: str,
        started_at_ns: int = 1,
        run: str = "",
        qos: LinkQos | None = None,
        joins: bool = False,
    ) -> None:
        self.delivery = DomainDelivery("P", Participant(domain), name)
        self.link: ReplicaLink = self.delivery.open_replica_link(
            cluster, Seen(name, run or f"run of {name}", started_at_ns, joins), qos or LinkQos()
        )
        self.received: list[ReceivedLetter] = []

    def look(self) -> None:
        self.delivery.poll()
        self.link.flush()
        self.received += self.link.poll()

    @property
    def refused_count(self) -> int:
        return self.delivery.participant.boundary.refused_count

    def close(self) -> None:
        self.link.close()
        self.delivery.close()


@pytest.fixture
def nodes(domain: int) -> Iterator[dict[str, Node]]:
    made = {name: Node(domain, cluster, name) for name, cluster in (("A", "1"), ("B", "1"), ("C", "2"))}
    yield made
    for each in made.values():
        each.close()


def see(nodes: dict[str, Node]) -> None:
    def done() -> bool:
        for each in nodes.values():
            each.look()
        return (nodes["A"].link.peers, nodes["B"].link.peers) == ({"B"}, {"A"})

    assert eventually(done, PATIENCE_S)


def asking(*, reader_s: int, writer_s: int) -> LinkQos:
    """What two replicated queues make of the letters, the first of which asks for deadlines."""
    period = "<deadline><period><sec>{}</sec><nanosec>0</nanosec></period></deadline>"
    first = SharedReaderQueueSettings(
        "Orders", "Orders", "Order", replication=ReplicationSettings(enabled=True),
        qos={
            "update_datareader_qos": f"<update_datareader_qos>{period.format(reader_s)}</update_datareader_qos>",
            "update_datawriter_qos": f"<update_datawriter_qos>{period.format(writer_s)}</update_datawriter_qos>",
        },
    )  # fmt: skip
    return link_qos((first, SharedReaderQueueSettings("B", "B", "B", replication=ReplicationSettings(enabled=True))))


def test_letters_have_the_quality_of_service_that_a_replicated_queue_asks_for(domain: int) -> None:
    """A reader that wants them more often than a writer promises does not match it [QS Table 3.14]."""
    qos = {
        "A": asking(reader_s=9, writer_s=3),
        "B": asking(reader_s=5, writer_s=7),
        "C": asking(reader_s=1, writer_s=1),
    }
    nodes = {name: Node(domain, "1", name, qos=each) for name, each in qos.items()}

    def matched() -> dict[str, int]:
        for each in nodes.values():
            each.look()
        return {
            name: sum(each.writer.matched_count() for each in node.link._ordered.writers.values())
            for name, node in nodes.items()
        }

    try:
        # A's writers promise one within 3 s, which B wants within 5 s, and C within 1 s; and so on.
        assert eventually(lambda: matched() == {"A": 1, "B": 1, "C": 2}, PATIENCE_S), matched()
    finally:
        for each in nodes.values():
            each.close()


def arrives(nodes: dict[str, Node], letter: Letter) -> None:
    """Send a letter from A to B until it comes: the first may be lost."""

    def came() -> bool:
        nodes["A"].link.send(["B"], letter.members, letter.frames)
        for each in nodes.values():
            each.look()
        return bool(nodes["B"].received)

    assert eventually(came, PATIENCE_S)
    assert nodes["B"].received[-1] == ReceivedLetter("A", letter)
    nodes["B"].received.clear()


def test_a_letter_reaches_its_addressee_alone_and_no_other_cluster(nodes: dict[str, Node]) -> None:
    see(nodes)
    assert nodes["C"].link.peers == frozenset()
    arrives(nodes, Letter(LETTER_FORMAT, ("A", "B"), (VOTE,), VERSION))
    assert (nodes["A"].received, nodes["C"].received) == ([], [])
    nodes["A"].link.send(["C"], (), (VOTE,))
    assert nodes["A"].link.dropped_count == 1


def test_process_that_joins_a_cluster_is_announced_as_such(nodes: dict[str, Node], domain: int) -> None:
    joined = nodes["D"] = Node(domain, "1", "D", joins=True)

    def done() -> bool:
        for each in nodes.values():
            each.look()
        return (nodes["A"].link.peers, joined.link.peers) == ({"B", "D"}, {"A", "B"})

    assert eventually(done, PATIENCE_S)
    assert (nodes["A"].link.joining, joined.link.joining) == ({"D"}, set())


def test_octets_of_a_stranger_cost_themselves_alone(nodes: dict[str, Node], domain: int) -> None:
    see(nodes)
    stranger = Participant(domain)
    topic = stranger.topic(REPLICATION_TOPIC, WireReplicaPiece)
    writer = FrameWriter(stranger, topic, partition=nodes["B"].link._partition("B"))
    unknown = list(pieces_of(Letter(LETTER_FORMAT, (), (VOTE,)), "A", "another run", 1))
    forged = list(
        pieces_of(Letter(LETTER_FORMAT, (), (Vote("P/S/orders", "B", 2, 3, True, True),)), "A", "run of A", 1)
    )

    def refused() -> bool:
        writer.put(ENCAPSULATION + b"\4\0\0\0\xff\xff\xff\xff")
        for octets in (*unknown, *forged):
            writer.put(octets)
        writer.flush()
        nodes["B"].look()
        return nodes["B"].refused_count >= 4

    try:
        assert eventually(refused, PATIENCE_S)
        assert nodes["B"].received == []
        arrives(nodes, Letter(LETTER_FORMAT, (), (VOTE,), VERSION))
    finally:
        writer.close()
        stranger.close()


def test_an_earlier_namesake_that_is_announced_is_reported_and_nothing_else(domain: int) -> None:
    """Found: an announcement with an earlier `since` silenced the member that it named."""
    nodes = {"A": Node(domain, "1", "A", 2, "run of A"), "B": Node(domain, "1", "B")}
    namesake = Node(domain, "1", "A", 1, "first")
    try:

        def seen() -> bool:
            for each in (*nodes.values(), namesake):
                each.look()
            return nodes["A"].link.namesake is not None and namesake.link.namesake is not None

        assert eventually(seen, PATIENCE_S)
        assert nodes["A"].link.peers == {"B"}
        arrives(nodes, Letter(LETTER_FORMAT, (), (VOTE,), VERSION))
    finally:
        for each in (*nodes.values(), namesake):
            each.close()


def test_messages_of_a_namesake_are_refused_while_the_first_process_sends(domain: int) -> None:
    nodes = {"A": Node(domain, "1", "A", 2, "run of A"), "B": Node(domain, "1", "B")}
    namesake = Node(domain, "1", "A", 1, "first")
    try:
        arrives(nodes, Letter(LETTER_FORMAT, (), (VOTE,), VERSION))

        def refused() -> bool:
            for each in (nodes["A"], namesake):
                each.link.send(["B"], ("A", "B") if each is namesake else (), (VOTE,))
            for each in (*nodes.values(), namesake):
                each.look()
            return nodes["B"].refused_count >= 3

        assert eventually(refused, PATIENCE_S)
        assert {letter.members for _, letter in nodes["B"].received} <= {()}
        nodes["A"].close()

        def heard() -> bool:
            namesake.link.send(["B"], ("A", "B"), (VOTE,))
            for each in (nodes["B"], namesake):
                each.look()
            return any(letter.members for _, letter in nodes["B"].received)

        assert eventually(heard, PATIENCE_S), "the name is free once its process is gone"
    finally:
        for each in (nodes["B"], namesake):
            each.close()


def entries(index: int, payload: bytes = b"") -> Entries:
    samples = (Enqueued("P/S/orders", 1, NIL_IDENTITY, 0, 0, payload=payload),) if payload else ()
    return Entries("P/S/orders", "A", 2, index, 1, samples, 0, 0)


def fill(link: ReplicaLink) -> int:
    """Send frames of samples until more of them wait for a member than may; return their number."""
    count = 0
    while link._ordered.writers["B"].backlog_count <= WAITING_PIECES_MAX:
        count += 1
        link.send(["B"], (), (entries(count, bytes(4 * 1024 * 1024)),))
    return count


HEARTBEAT = Heartbeat("P/S/orders", "A", 2, 0, 0, 0, 5)


def received_in_order(nodes: dict[str, Node]) -> list[object]:
    """What B received of A once it has the heartbeat: that, and the numbers of the frames of samples."""

    def frames() -> list[object]:
        for each in nodes.values():
            each.look()
        received = [frame for _, letter in nodes["B"].received for frame in letter.frames]
        return [frame.previous_index if isinstance(frame, Entries) else frame for frame in received]

    assert eventually(lambda: HEARTBEAT in frames(), PATIENCE_S)
    return frames()


def test_heartbeat_passes_the_samples_that_wait_for_a_member(nodes: dict[str, Node]) -> None:
    see(nodes)
    arrives(nodes, Letter(LETTER_FORMAT, (), (VOTE,), VERSION))
    count = fill(nodes["A"].link)
    nodes["A"].link.send(["B"], (), (entries(count, b"sample"), HEARTBEAT))
    received = received_in_order(nodes)
    assert len(received[: received.index(HEARTBEAT)]) < count


def test_member_of_an_earlier_version_receives_all_frames_in_the_order_of_sending(
    domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has one reader."""
    monkeypatch.setattr(replica_link, "_PASSING_ROLE", "unknown")
    nodes = {"B": Node(domain, "1", "B")}
    monkeypatch.undo()
    nodes["A"] = Node(domain, "1", "A")
    try:
        see(nodes)
        arrives(nodes, Letter(LETTER_FORMAT, (), (entries(1),), VERSION))
        assert "B" not in nodes["A"].link._passing.writers
        nodes["A"].link.send(["B"], (), (entries(2, b"sample"), HEARTBEAT, entries(3)))
        assert received_in_order(nodes)[-3:] == [2, HEARTBEAT, 3]
    finally:
        for each in nodes.values():
            each.close()


def test_frames_without_samples_are_kept_while_a_member_does_not_read_and_those_of_samples_are_not(
    nodes: dict[str, Node],
) -> None:
    """Found: above the bound of what waits heartbeats were dropped with the rest, and the member began an election."""
    see(nodes)
    arrives(nodes, Letter(LETTER_FORMAT, (), (VOTE,), VERSION))
    link = nodes["A"].link

    count = fill(link)
    waiting = link._ordered.writers["B"].backlog_count
    link.send(["B"], (), (entries(count + 1, b"sample"),))
    assert (link._ordered.writers["B"].backlog_count, link.dropped_count) == (waiting, 1)
    link.send(["B"], (), (entries(count + 1, b"sample"), entries(count + 2)))
    assert link._ordered.writers["B"].backlog_count == waiting + 1

    def indexes() -> list[int]:
        for each in nodes.values():
            each.look()
        frames = [frame for _, letter in nodes["B"].received for frame in letter.frames]
        return [frame.previous_index for frame in frames if isinstance(frame, Entries)]

    assert eventually(lambda: indexes()[-1:] == [count + 2], PATIENCE_S)
    assert indexes() == [*range(1, count + 1), count + 2]
