"""A cluster under random faults."""

from __future__ import annotations

from random import Random

from qsctl.core.admin.command import ChangeMembers, MemberAction
from qsctl.core.high_availability._staging import WITHOUT_PAYLOAD_OVER_BYTES
from qsctl.core.high_availability.frames import Frame, for_witness
from qsctl.core.high_availability.versions import RUNS
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    Delivery,
    RunAccepted,
    RunAcknowledgment,
    RunDelivery,
    SampleFlag,
    WriteAcknowledgment,
)
from qsctl.core.records import MembersChanged, QueueRecord
from tests.core.high_availability.cluster import (
    OTHER_READER,
    READER,
    STEP_NS,
    STREAM,
    TIMEOUT_NS,
    Cluster,
    Process,
    held,
    join,
    queue,
    write,
    write_run,
)
from tests.core.high_availability.member_commands import RESOURCE, command

NAMES = "abcdef"
"""Of the processes that are members from the beginning, and of those that can become members."""

REFUSED = ("more than one above", "it is not a member", "it is of another creation of the queue")
"""Why a replica refuses frames that no stranger sent: it was away for long, one of the two was removed, or the entry of
the first master of one of them was not committed."""


def payload_of(number: int) -> bytes:
    """Of every second sample one that is not sent again to replicas that have it from the producer."""
    return (b"sample %d " % number) * (1 + number % 2 * WITHOUT_PAYLOAD_OVER_BYTES)


class Storm:
    """A cluster, its producer and its consumers, and what must hold of them."""

    def __init__(
        self,
        seed: int,
        size: int,
        *,
        volatile: bool = False,
        synchronizes: bool = True,
        changes_members: bool = False,
        by_runs: bool = False,
    ) -> None:
        self.random = Random(seed)
        self.cluster = Cluster(
            size,
            queue(instances=size, volatile=volatile, replication={"synchronize_consumer_assignment": synchronizes}),
        )
        self.by_runs = by_runs
        self.run_count = 0
        """Deliveries of several samples."""
        for process in self.cluster:
            if by_runs and self.random.random() < 0.15:
                process.version = RUNS - 1
            process._jitter = self.random.random
            process.compacted_over_count = 12
            process.start(0)
        self.is_volatile = volatile
        self.changes_members = changes_members
        self.change_count = 0
        """Changes of the members that were requested."""
        self.lists: set[tuple[str, ...]] = set()
        """The voters at the masters."""
        self.delayed: list[tuple[int, str, str, Frame]] = []
        self.attempts: dict[int, int] = {}
        self.answers: dict[int, dict[str, int]] = {}
        """By sample: the latest attempt that each member rejected."""
        self.asked: dict[int, set[str]] = {}
        self.accepted: set[int] = set()
        self.rejected: set[int] = set()
        self.delivered: dict[int, int] = {}
        """How often a sample came without the flag."""
        self.done: set[int] = set()
        self.masters: dict[int, str] = {}
        self.witnesses: set[str] = set()
        """Members that hold no payloads, or did not."""
        self.committed: dict[int, tuple[int, QueueRecord]] = {}
        self.joined: set[tuple[str, int]] = set()
        self.loss = 0.0
        self.next_number = 1

    def step(self) -> None:
        cluster = self.cluster
        cluster.now += STEP_NS
        arriving = [each for each in self.delayed if each[0] <= cluster.now]
        self.delayed = [each for each in self.delayed if each[0] > cluster.now]
        for process in cluster:
            frames = [frame for _, _, recipient, frame in arriving if recipient == process.name]
            if (process.name, id(process.member)) not in self.joined:
                self.joined.add((process.name, id(process.member)))
                process.run(cluster.now, [join(), join(OTHER_READER)])
            process.run(cluster.now, frames=frames)
            self.look(process)

    def look(self, process: Process) -> None:
        cluster, random = self.cluster, self.random
        for recipient, frame in process.member.pop_frames():
            if recipient in cluster.processes:
                cluster[recipient].member.versions.note(process.name, process.version)
            for _ in range(random.choice((1, 1, 1, 2))):
                if (process.name, recipient) not in cluster.cuts and random.random() >= self.loss:
                    delay_ns = random.choice((1, 1, 2, 7)) * STEP_NS
                    self.delayed.append((cluster.now + delay_ns, process.name, recipient, frame))
        for refusal in process.member.pop_refusals():  # all frames are of replicas, none is forged
            assert any(each in refusal.reason for each in REFUSED), refusal
        replica = process.replica
        if replica.is_master:
            assert self.masters.setdefault(replica.epoch, process.name) == process.name
            self.lists.add(tuple(sorted(replica.members.voters)))
        log = replica.log
        for index in range(log.base.index + 1, log.commit_index + 1):
            epoch, record = log.entry(index)
            if isinstance(record, MembersChanged):
                self.witnesses.update(record.witnesses)
            if process.name not in self.witnesses:
                assert self.committed.setdefault(index, (epoch, record)) == (epoch, record)
            elif index in self.committed:
                first_epoch, first = self.committed[index]
                assert (first_epoch, for_witness([first])) == (epoch, for_witness([record]))
        sent, process.sent = process.sent, []
        for message in sent:
            if isinstance(message, WriteAcknowledgment | RunAccepted):
                for answer in message.singles():
                    self.hear(process.name, answer)
            elif isinstance(message, RunDelivery) and random.random() < 0.7:
                self.consume_run(process, message)
            elif isinstance(message, Delivery | RunDelivery):
                for delivery in message.singles():
                    self.consume(process, delivery)

    def hear(self, name: str, answer: WriteAcknowledgment) -> None:
        number = answer.identity.sequence_number
        if answer.response == AckResponse.ACCEPTED:
            self.accepted.add(number)
            assert number not in self.rejected, f"{number} was rejected by all and accepted"
        else:
            self.answers.setdefault(number, {})[name] = answer.attempt
            if number not in self.accepted and all(
                self.answers[number].get(each) == self.attempts[number] for each in self.asked[number]
            ):
                self.rejected.add(number)

    def consume(self, process: Process, delivery: Delivery) -> None:
        self.check(delivery)
        number = delivery.identity.sequence_number
        if self.random.random() < 0.8:
            self.done.add(number)
            answer = Acknowledgment(STREAM, delivery.consumer_guid, delivery.identity)
            process.run(self.cluster.now, [answer])

    def consume_run(self, process: Process, delivery: RunDelivery) -> None:
        """Acknowledge some of the first samples that came together, and never the others."""
        self.run_count += 1
        for each in delivery.singles():
            self.check(each)
        count = self.random.choice((len(delivery.payloads), self.random.randint(0, len(delivery.payloads))))
        first, step = delivery.identity.sequence_number, delivery.step
        self.done.update(range(first, first + count * step, step))
        answer = RunAcknowledgment(STREAM, delivery.consumer_guid, delivery.identity, count, step)
        process.run(self.cluster.now, [answer])

    def check(self, delivery: Delivery) -> None:
        number = delivery.identity.sequence_number
        assert delivery.payload == payload_of(number)
        assert number not in self.rejected, f"{number} was rejected by all and delivered"
        if not delivery.flags & SampleFlag.REDELIVERED:
            self.delivered[number] = self.delivered.get(number, 0) + 1
            assert self.delivered[number] == 1, f"{number} came twice without the flag"

    def write(self, number: int) -> None:
        """Write a sample to all members, or some; what was rejected by all is not written again."""
        if number in self.rejected:
            return
        attempt = self.attempts[number] = self.attempts.get(number, 0) + 1
        asked = [process for process in self.cluster if self.random.random() < 0.9]
        if not asked:
            return
        self.asked.setdefault(number, set()).update(process.name for process in asked)
        for process in asked:
            process.run(self.cluster.now, [write(number, payload_of(number), attempt)])
        for process in asked:
            self.look(process)

    def write_run(self, count: int) -> None:
        """Write new samples to all members, or some, which may receive them in other parts."""
        numbers = range(self.next_number, self.next_number + count)
        self.next_number += count
        asked = [process for process in self.cluster if self.random.random() < 0.9]
        for number in numbers if asked else ():
            self.attempts[number] = 1
            self.asked[number] = {process.name for process in asked}
        for process in asked:
            at = self.random.choice((0, 0, 0, self.random.randrange(count)))
            parts = [numbers[:at], numbers[at:]] if at else [numbers]
            for part in parts:
                process.run(self.cluster.now, [write_run(part[0], [*map(payload_of, part)])])
        for process in asked:
            self.look(process)

    def fault(self) -> None:
        cluster, random = self.cluster, self.random
        names = list(cluster.processes)
        up = [process.name for process in cluster]
        kind = random.randrange(8)
        if kind == 0:
            cluster.heal()
        elif kind == 1:
            cluster.cut(*random.sample(names, random.randint(1, len(names) // 2)))
        elif kind == 2:
            one, other = random.sample(names, 2)
            cluster.cuts.add((one, other))
        elif kind == 3:
            self.loss = random.choice((0.0, 0.1, 0.4))
        elif kind == 4 and (not self.is_volatile or self.may_crash_volatile()):
            self.crash(random.choice(up) if up else None)
        elif kind == 5:
            for process in cluster.processes.values():
                if not process.is_up:
                    self.start(process)
        elif kind == 6 and up:
            cluster[random.choice(up)].syncs = random.random() < 0.5
        elif kind == 7 and (not self.is_volatile or self.may_crash_volatile()):
            self.crash(next(iter(cluster.masters()), None))

    def change_members(self) -> None:
        """Request a change that can follow, or one that is refused, of each process that leads or believes so."""
        for process in [each for each in self.cluster if each.replica.is_master]:
            members = process.replica.members.latest
            learners = members.learners
            action = self.random.choice([*MemberAction])
            candidates = learners if action is MemberAction.PROMOTE and learners else NAMES
            name = self.random.choice(candidates)
            if action in (MemberAction.ADD, MemberAction.ADD_WITNESS) and name not in self.cluster.processes:
                joined = self.cluster.join(name)
                joined._jitter, joined.compacted_over_count = self.random.random, 12
            self.change_count += 1
            request = command(self.change_count, ChangeMembers(RESOURCE, action, name))
            process.run(self.cluster.now, [request])
            self.look(process)

    def may_crash_volatile(self) -> bool:
        """A majority of the memories must live."""
        replicas = [process.replica for process in self.cluster]
        return (
            sum(not replica.ballot.is_learner for replica in replicas) > replicas[0].members.quorum
            if replicas
            else False
        )

    def crash(self, name: str | None) -> None:
        if name is not None:
            self.cluster[name].crash()
            self.delayed = [each for each in self.delayed if each[2] != name]

    def start(self, process: Process) -> None:
        process.syncs = True
        process.start(self.cluster.now)

    def calm(self) -> None:
        """End all faults; everything that was accepted comes out."""
        self.cluster.heal()
        self.loss = 0.0
        for process in self.cluster.processes.values():
            process.syncs = True
            if not process.is_up:
                self.start(process)
        for _ in range(60 * TIMEOUT_NS // STEP_NS):
            self.step()
            if self.random.random() < 0.1:
                for process in self.cluster:
                    # A consumer that does not answer for long is taken for lost.
                    self.retry(process)
            masters = self.cluster.masters()
            if len(masters) == 1 and self.accepted <= self.done and all(held(each) == [] for each in self.members()):
                return
        raise AssertionError(
            f"lost {sorted(self.accepted - self.done)}; masters {self.cluster.masters()}; "
            f"{[(each.name, held(each), each.replica.role, each.replica.log.commit_index) for each in self.cluster]}"
        )

    def members(self) -> list[Process]:
        """The processes that are members, by the log of the latest master."""
        master = max((each.replica for each in self.cluster), key=lambda replica: (replica.is_master, replica.epoch))
        return [self.cluster[name] for name in (master.name, *master.members.others) if name in self.cluster.processes]

    def retry(self, process: Process) -> None:
        for guid in (READER, OTHER_READER):
            for sample in list(process.member.engine.hosted.by_name[STREAM].held):
                if process.replica.is_master and sample.holder == guid:
                    self.done.add(sample.identity.sequence_number)
                    process.run(self.cluster.now, [Acknowledgment(STREAM, guid, sample.identity)])
                    self.look(process)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
            dice = self.random.random()
            if dice < 0.1 and self.by_runs:
                self.write_run(self.random.randint(2, 12))
            elif dice < 0.15:
                self.write(self.next_number)
                self.next_number += 1
            elif dice < 0.3:
                open_numbers = [each for each in self.attempts if each not in self.accepted]
                if open_numbers:
                    self.write(self.random.choice(open_numbers))
            elif dice < 0.34:
                self.fault()
            elif self.changes_members and dice < 0.54:
                self.change_members()
        self.calm()
