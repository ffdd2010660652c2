"""Programs of a cluster under faults: `python -m tests.dds.nemesis.programs produce|consume|operate ARGUMENTS.json`.

A producer and a consumer run until the file `stop` is in their working directory. The operator carries out a command of
`qsctl` for each line of its input, a JSON array of words, and answers with a line.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Final

import msgspec
from typer.testing import CliRunner

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.producer import ApplicationAcknowledgment
from qsctl.instant import SECOND_NS
from qsctl.transport.dds.participant import DomainSettings
from tests.commands import command_line
from tests.dds.nemesis.journals import (
    ACCEPTED,
    DELETED,
    REFUSED,
    Answered,
    DeletionAnswered,
    DeletionAsked,
    JournalFile,
    Opened,
    Received,
    Rejected,
    Wrote,
    now_ns,
    payload_of,
    writer_of,
)
from tests.patience import PATIENCE_S

STOP: Final = "stop"
LEASE_S: Final = 2
_CLONE_NEWNET: Final = 0x40000000


class Arguments(msgspec.Struct):
    """The arguments of a program."""

    domain: int
    journal: str
    topic: str = ""
    namespace: str = ""
    interface: str = "lo"
    peers: tuple[str, ...] = ()
    rate_per_second: float = 100.0
    window_count: int = 50
    rejects_every: int = 0
    """A consumer rejects each sample of a number that this divides once; 0: none."""

    @property
    def settings(self) -> DomainSettings:
        """Return how the program joins the domain."""
        return DomainSettings(interface=self.interface, peers=self.peers, lease_duration_ns=LEASE_S * SECOND_NS)

    @property
    def location(self) -> str:
        """Return the same as the location of a service."""
        peers = "".join(f"&peer={peer}" for peer in self.peers)
        return f"dds:{self.domain}?interface={self.interface}&lease={LEASE_S}s{peers}"


def enter_namespace(name: str) -> None:
    """Let the threads that this one starts from now on be in a network namespace."""
    descriptor = os.open(f"/run/netns/{name}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"namespace {name}")
    os.close(descriptor)


def produce(arguments: Arguments) -> None:
    """Write samples at a rate, then wait for their answers."""
    journal = JournalFile(Path(arguments.journal))
    journal.note(Opened(now_ns(), arguments.topic))

    def note(answer: ApplicationAcknowledgment) -> None:
        kind = DELETED if answer.queue_deleted else ACCEPTED if answer.accepted else REFUSED
        journal.note(Answered(now_ns(), answer.identity.sequence_number, kind))

    with QueueProducer(
        arguments.topic,
        arguments.domain,
        window_count=arguments.window_count,
        settings=arguments.settings,
        on_application_acknowledgment=note,
    ) as producer:
        producer.wait_for_queue(PATIENCE_S)
        number = 0
        while not Path(STOP).exists():
            if producer.has_room():
                number += 1
                journal.note(Wrote(now_ns(), number))
                producer.write(payload_of(journal.name, number))
            producer.flush()
            producer.pop_acknowledged()
            time.sleep(1 / arguments.rate_per_second)
        producer.wait_for_acknowledgments(PATIENCE_S)


def consume(arguments: Arguments) -> None:
    """Acknowledge what comes, but reject some of it once."""
    journal = JournalFile(Path(arguments.journal))
    journal.note(Opened(now_ns(), arguments.topic))
    rejected = set[tuple[str, int]]()
    with QueueConsumer(arguments.topic, "S", arguments.domain, settings=arguments.settings) as consumer:
        while not Path(STOP).exists():
            for sample in consumer.receive(50, 0.1):
                writer, number = writer_of(sample.value)
                journal.note(Received(now_ns(), writer, number, sample.redelivered))
                every = arguments.rejects_every
                if every and number % every == 0 and (writer, number) not in rejected:
                    rejected.add((writer, number))
                    journal.note(Rejected(now_ns(), writer, number))
                    sample.reject()
                else:
                    sample.acknowledge()


def operate(arguments: Arguments) -> None:
    """Carry out commands; note deletions in the journal."""
    journal = JournalFile(Path(arguments.journal))
    app = command_line()
    for line in sys.stdin:
        words = json.loads(line)
        deleted = words[1] if words[0] == "delete-queue" else ""
        if deleted:
            journal.note(DeletionAsked(now_ns(), deleted))
        done = CliRunner().invoke(app, [*words, "--service", arguments.location, "--timeout", "10s"])
        if deleted and done.exit_code == 0:
            journal.note(DeletionAnswered(now_ns(), deleted))
        sys.stdout.write(json.dumps([done.exit_code, done.stdout, done.stderr]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    read = msgspec.json.decode(Path(sys.argv[2]).read_bytes(), type=Arguments)
    if read.namespace:
        enter_namespace(read.namespace)
    {"produce": produce, "consume": consume, "operate": operate}[sys.argv[1]](read)
