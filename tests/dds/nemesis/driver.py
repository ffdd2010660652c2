"""Random faults for a cluster of processes under load, and what became of the clients' samples.

Decides: what happens when, from a seed. Each member has at most one fault at a time. A majority may be killed, paused
or cut for some seconds, but no more than a minority loses its disk before it has caught up. Every `CALM_EVERY_S` all
faults end, and the cluster has to answer; so no sample is refused for the lack of a master.

While members have faults, the operator replaces members, moves masters, and creates and deletes queues, one after the
other. Clients are killed and paused, too.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

from qsctl.instant import SECOND_NS
from tests.dds.cluster import MASTER_TIMEOUT_MS, REPLICATED_SERVICE, Cluster
from tests.dds.nemesis.availability import Span, availability, length_ns, longest_gap_ns, waits
from tests.dds.nemesis.checker import Violation, samples_of, violations
from tests.dds.nemesis.clients import Answer, Client, Clients, Operator
from tests.dds.nemesis.faults import FAULTS, End, Victim, link_faults, wipe
from tests.dds.nemesis.hosts import Hosts
from tests.dds.nemesis.journals import ACCEPTED, Answered, Journal, Wrote, now_ns
from tests.patience import PATIENCE_S, eventually

TOPICS: Final = ("Orders", "Bills")
EXTRAS: Final = ("Extra0", "Extra1")
STREAMS: Final = ("configuration", *(f"P/S/{topic}" for topic in TOPICS))
CALM_EVERY_S: Final = 25.0
FAULT_EVERY_S: Final = 2.0
ANSWERED_WITHIN_S: Final = 4 * MASTER_TIMEOUT_MS / 1000
"""A sample that waits longer for its answer was written while the cluster was not available."""

_REJECTS_EVERY: Final = 50
_QUEUE: Final = """<shared_reader_queue name="{name}" session="s"><topic_name>{name}</topic_name>
<type_name>DDS::Octets</type_name><queue_qos><persistence><kind>PERSISTENT</kind></persistence>
<redelivery><max_delivery_retries>100</max_delivery_retries></redelivery></queue_qos></shared_reader_queue>"""

Work: TypeAlias = Generator[tuple[str, ...], Answer, None]
"""The commands of an operator; it receives the answer of each."""


@dataclass
class Impairment:
    """A fault of a member, until it ends."""

    kind: str
    ends_at: float
    end: End


@dataclass
class Report:
    """What a run came to."""

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    written: int = 0
    accepted: int = 0
    quorum_s: float = 0.0
    run_s: float = 0.0
    availability: float = 0.0
    longest_gap_s: float = 0.0

    def text(self) -> str:
        """Return it in lines."""
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        return (
            f"{self.run_s:.0f} s, a quorum was there for {self.quorum_s:.0f} s; "
            f"then answered within {ANSWERED_WITHIN_S:g} s for {self.availability:.2%} of the time, "
            f"longest gap {self.longest_gap_s:.1f} s\n"
            f"{self.written} samples written, {self.accepted} accepted, {len(self.violations)} promises broken\n"
            f"{counts}\n"
        )


class Nemesis:
    """A cluster, its clients, and the faults.

    Args:
        directory: of all files.
        domain: its domain.
        hosts: where the processes run.
        seed: of what is drawn.
        instances: number of members.
        rate_per_second: of each producer.
    """

    def __init__(
        self, directory: Path, domain: int, hosts: Hosts, seed: int, *, instances: int, rate_per_second: float = 60.0
    ) -> None:
        self._directory, self._hosts, self._draw = directory, hosts, Random(seed)
        self._log = (directory / "nemesis.log").open("w", encoding="utf-8")
        queues = "".join(_QUEUE.format(name=topic) for topic in TOPICS)
        members = directory / "members"
        members.mkdir()
        self._members_directory = members
        self.cluster = Cluster(
            members, domain, *hosts.serve_words, instances=instances, prepare=hosts.prepare,
            program=("-m", "tests.dds.nemesis.service"), queues=queues, service=REPLICATED_SERVICE,
        )  # fmt: skip
        self.clients = Clients(directory / "clients", domain, hosts, rate_per_second=rate_per_second)
        self._impaired: dict[str, Impairment] = {}
        self._wiped: dict[str, int] = {}
        """Members that lost their disk and have not caught up yet, and where their log begins after that."""
        self._retired: set[str] = set()
        """Members whose machine is gone for good, and that are not removed yet."""
        self._new_count = 0
        self._work: Work | None = None
        self._quorum: list[Span] = []
        self._quorum_since: int | None = None
        self.report = Report()

    def end(self) -> None:
        """Leave nothing behind."""
        self.clients.end()
        self.cluster.end()
        self._log.close()

    def run(self, seconds: float) -> Report:
        """Let faults happen for a time; heal everything, and check what the clients noted."""
        self._start()
        begun = time.monotonic()
        calm_at, fault_at = begun + CALM_EVERY_S, begun + 1.0
        while (now := time.monotonic()) < begun + seconds:
            self._end_faults(now)
            self._operate()
            self._check_alive()
            if now >= calm_at:
                self._calm()
                calm_at = time.monotonic() + CALM_EVERY_S
            elif now >= fault_at:
                self._draw_fault()
                fault_at = time.monotonic() + self._draw.expovariate(1 / FAULT_EVERY_S)
            self._note_quorum()
            time.sleep(0.02)
        return self._finish(begun)

    def _start(self) -> None:
        for stream in STREAMS:
            self.cluster.await_all(stream)
        self._operator = Operator(self.clients, self._directory / "operator.log")
        for topic in TOPICS:
            self.clients.start("consume", topic, rejects_every=_REJECTS_EVERY)
            self.clients.start("consume", topic, rejects_every=_REJECTS_EVERY)
            self.clients.start("produce", topic)
        self._await_answers()
        self._quorum_since = now_ns()

    def _finish(self, begun: float) -> Report:
        self._calm()
        deadline = time.monotonic() + PATIENCE_S
        while self._work is not None:
            assert time.monotonic() < deadline, "the operator's work has no end"
            self._operate()
            time.sleep(0.02)
        self._note_quorum(is_last=True)
        report = self.report
        report.run_s = time.monotonic() - begun
        for client in self.clients.of("produce", *TOPICS):
            self.clients.stop(client)
        eventually(lambda: not any(each.kind == "lost" for each in violations(self.clients.journals())))
        time.sleep(2 * MASTER_TIMEOUT_MS / 1000)  # what is delivered a second time is, by then
        for client in self.clients.of("consume", *TOPICS):
            self.clients.stop(client)
        journals = self.clients.journals()
        samples = samples_of(journals).values()
        produced = [each for each in journals if each.topic in TOPICS]
        report.violations = violations(journals)
        report.written = sum(each.written_ns is not None for each in samples)
        report.accepted = sum(each.accepted_ns is not None for each in samples)
        report.quorum_s = length_ns(self._quorum) / SECOND_NS
        report.availability = availability(self._quorum, waits(produced), int(ANSWERED_WITHIN_S * SECOND_NS))
        gaps = (longest_gap_ns((each for each in produced if each.topic == topic), self._quorum) for topic in TOPICS)
        report.longest_gap_s = max(gaps) / SECOND_NS
        return report

    def _note(self, text: str) -> None:
        self._log.write(f"{time.strftime('%H:%M:%S')} {time.monotonic():.3f} {text}\n")
        self._log.flush()

    # Faults of members

    def _draw_fault(self) -> None:
        """Begin a fault of a member, of all, of a client, or work of the operator."""
        kinds = {"member": 18, "all": 1, "client": 3, "operator": 0 if self._work else 6}
        (kind,) = self._draw.choices([*kinds], [*kinds.values()])
        if kind == "member":
            self._impair()
        elif kind == "all":
            self._kill_all()
        elif kind == "client":
            self._disturb_client()
        else:
            self._begin_work()

    def _whole(self) -> list[str]:
        return [name for name in self.cluster.services if name not in self._impaired and name not in self._retired]

    def _kill_all(self) -> None:
        """Kill all members at once, as a power failure does."""
        self.report.counts["all killed"] += 1
        ends_at = time.monotonic() + self._draw.uniform(0.1, 2.0)
        for name in self._whole():
            self._begin_fault(name, "killed", ends_at, FAULTS["killed"][2])

    def _impair(self) -> None:
        whole = self._whole()
        minority = (len(self.cluster.services) - 1) // 2
        if not whole or (len(self._impaired) >= minority and self._draw.random() < 0.7):
            return
        roles = self.cluster.roles("P/S/Orders")
        masters = [name for name in whole if roles.get(name, (0, ""))[1] == "master"]
        name = self._draw.choice(masters if masters and self._draw.random() < 0.4 else whole)
        faults = FAULTS | (link_faults(self._hosts.links) if self._hosts.links else {})
        weights = [0 if kind == "wiped" and not self._may_wipe() else faults[kind][0] for kind in faults]
        (kind,) = self._draw.choices([*faults], weights)
        _, longest_s, fault = faults[kind]
        self._begin_fault(name, kind, time.monotonic() + self._draw.uniform(0.1, longest_s), fault)

    def _begin_fault(self, name: str, kind: str, ends_at: float, fault: Callable[[Victim], End]) -> None:
        others = tuple(each for each in self.cluster.services if each != name and each not in self._retired)
        self._note(f"{name} {kind} for {ends_at - time.monotonic():.1f} s")
        self.report.counts[kind] += 1
        service = self.cluster.services[name]
        if kind == "wiped":
            self._wiped[name] = service.log.stat().st_size
        self._note_quorum(name)
        self._impaired[name] = Impairment(kind, ends_at, fault(Victim(name, service, others, self._draw)))

    def _may_wipe(self) -> bool:
        return self._work is None and len(self._wiped) < (len(self.cluster.services) - 1) // 2

    def _end_faults(self, now: float) -> None:
        """End the faults whose time is over; notice who has caught up."""
        for name, each in list(self._impaired.items()):
            if now >= each.ends_at:
                self._note(f"{name} {each.kind} ends")
                each.end()
                del self._impaired[name]
        for name in list(self._wiped):
            if name not in self._impaired and self._has_caught_up(name):
                self._note(f"{name} has caught up")
                del self._wiped[name]

    def _has_caught_up(self, name: str) -> bool:
        """Return whether a member that lost its disk has a vote in all groups again, by its log since then."""
        service = self.cluster.services[name]
        roles = Cluster.roles_in(service.log.read_bytes()[self._wiped[name] :].decode(errors="replace"))
        return all(roles.get(stream, (0, ""))[1] in ("slave", "master") for stream in STREAMS)

    def _check_alive(self) -> None:
        for name, service in self.cluster.services.items():
            if name not in self._impaired and name not in self._retired:
                assert service.process is not None
                status = service.process.poll()
                assert status is None, f"{name} ended with {status} by itself: {service.log.read_text()[-3000:]}"
        self.clients.check()

    def _note_quorum(self, about_to_fail: str = "", *, is_last: bool = False) -> None:
        """Keep the times in which enough members without a fault were there, of all that may have a vote."""
        listed = self.cluster.services.keys()
        impaired = self._impaired.keys() | self._wiped.keys() | self._retired | {about_to_fail}
        has_quorum = len(listed - impaired) > len(listed) // 2 and not is_last
        if has_quorum and self._quorum_since is None:
            self._quorum_since = now_ns()
        elif not has_quorum and self._quorum_since is not None:
            self._quorum.append((self._quorum_since, now_ns()))
            self._quorum_since = None

    def _calm(self) -> None:
        """End all faults, and wait until the cluster answers again."""
        self._note("calm")
        for client in self.clients.running:
            self.clients.resume(client)
        self._end_faults(float("inf"))
        self._note_quorum()
        self._await_answers()
        deadline = time.monotonic() + PATIENCE_S
        while self._wiped:
            assert time.monotonic() < deadline, f"{[*self._wiped]} do not catch up"
            self._operate()
            self._end_faults(0)
            time.sleep(0.05)
        self._note_quorum()

    def _await_answers(self) -> None:
        """Wait until each queue accepts samples that are written from now on."""
        begun = now_ns()
        for topic in TOPICS:
            assert eventually(lambda: self._accepts(topic, begun), 60.0), f"{topic} accepts nothing"  # noqa: B023
        self._note(f"accepted after {(now_ns() - begun) / SECOND_NS:.2f} s")

    def _accepts(self, topic: str, since_ns: int) -> bool:
        self._operate()
        return any(_accepts(each.journal, since_ns) for each in self.clients.of("produce", topic))

    # Clients

    def _disturb_client(self) -> None:
        """Kill a client and start another in its place, or let a consumer stand still for a while."""
        role, kind = self._draw.choice(
            [("consume", "consumer killed"), ("consume", "consumer paused"), ("produce", "producer killed")]
        )
        client = self._draw.choice(self.clients.of(role, *TOPICS))
        if kind == "consumer paused" and client.is_paused:
            return
        self.report.counts[kind] += 1
        self._note(f"{client.directory.name} {kind}")
        if kind == "consumer paused":
            self.clients.pause(client)
        else:
            self.clients.kill(client)
            self._start_like(client)

    def _start_like(self, client: Client) -> None:
        self.clients.start(client.role, client.topic, rejects_every=_REJECTS_EVERY if client.role == "consume" else 0)

    # The operator

    def _operate(self) -> None:
        """Go on with the operator's work, if an answer is there."""
        if self._work is None:
            return
        answer = self._operator.answer()
        if answer is not None:
            try:
                self._operator.ask(self._work.send(answer))
            except StopIteration:
                self._work = None

    def _begin_work(self) -> None:
        works: dict[str, tuple[int, Callable[[], Work]]] = {
            "masters moved": (3, self._moved),
            "queue created and deleted": (2, self._created_and_deleted),
        }
        if not self._wiped and not any(each.kind == "wiped" for each in self._impaired.values()):
            works["member replaced"] = (2, self._replaced)
        (kind,) = self._draw.choices([*works], [weight for weight, _ in works.values()])
        self.report.counts[kind] += 1
        self._note(kind)
        self._work = works[kind][1]()
        self._operator.ask(next(self._work))

    def _moved(self) -> Work:
        """Let a master hand over, or spread the masters; it may be refused at present."""
        if self._draw.random() < 0.5:
            yield ("member", "step-down", self._draw.choice(TOPICS))
        else:
            yield ("member", "rebalance", "--yes")

    def _replaced(self) -> Work:
        """Replace a member by one of another name, in some cases after its machine is gone for good."""
        old = self._draw.choice([name for name in self.cluster.services if name not in self._impaired])
        if self._draw.random() < 0.5:
            self._retired.add(old)
            self._note(f"{old} is gone for good")
            self._note_quorum()
            self.cluster.kill(old)
            wipe(self.cluster.services[old])
        new = self._start_new()
        self._note(f"{new} replaces {old}")
        for topic in TOPICS:
            yield from self._until_done("member", "replace", old, new, topic, "--wait", "5s")
        for action, member, done in (
            ("add", new, "is a member already"),
            ("promote", new, "has a vote already"),
            ("remove", old, "is not a member"),
        ):
            yield from self._until_done("member", action, member, "--configuration", done=done)
        self._note(f"{old} is removed")
        if old in self._impaired:
            self._impaired.pop(old).end()
        self._retired.discard(old)
        removed = self.cluster.services.pop(old)
        removed.end()
        shutil.rmtree(removed.directory)
        self._hosts.free(old)
        self._note_quorum()

    def _start_new(self) -> str:
        """Start a process that is to be a member."""
        self._new_count += 1
        name = f"Cluster_1_New{self._new_count}"
        where = self._members_directory / name
        self.cluster.services[name] = self.cluster.start_another(where, name, "--join", *self._hosts.serve_words)
        return name

    def _until_done(self, *words: str, done: str = "") -> Generator[tuple[str, ...], Answer, None]:
        """Give a command until it is carried out, or its answer contains a text."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = yield words
            if answer.exit_code == 0 or (done and done in answer.out + answer.error):
                return
            assert time.monotonic() < deadline, f"{words}: {answer}"
            time.sleep(0.1)

    def _created_and_deleted(self) -> Work:
        """Create a queue of a name that was used before, let clients use it, and delete it."""
        topic = self._draw.choice(EXTRAS)
        everywhere = ("--idempotent", "--target", "Cluster_1*")
        yield from self._until_done("create-queue", "--xml", _QUEUE.format(name=topic), *everywhere)
        clients = [self.clients.start(role, topic) for role in ("consume", "produce")]
        until = time.monotonic() + self._draw.uniform(2.0, 6.0)
        while time.monotonic() < until:
            yield ("get", "status", topic)
        yield from self._until_done("delete-queue", topic, "--yes", *everywhere)
        for client in clients:
            self.clients.kill(client)


def _accepts(journal: Journal, since_ns: int) -> bool:
    """Return whether a sample that was written since an instant was accepted."""
    written = set[int]()
    for event in journal.events:
        if isinstance(event, Wrote) and event.at_ns >= since_ns:
            written.add(event.number)
        elif isinstance(event, Answered) and event.answer == ACCEPTED and event.number in written:
            return True
    return False


def lines_of(report: Report) -> Iterator[str]:
    """Yield the broken promises, the first of each kind."""
    for kind, count in Counter(each.kind for each in report.violations).items():
        first = [f"{each.writer} {each.number}" for each in report.violations if each.kind == kind][:5]
        yield f"{count} {kind}: {', '.join(first)}"
