"""Kinds of DDS applications: what each can do with a queue, and its requirements.

Decides the statements about other programs. `seen` is the evidence of a row: programs of this repository that run
against a service, or only the vendor's publications.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from qsctl.cli.output.declared import DeclaredRows, Heading, table_of
from qsctl.cli.output.results import Block, TextBlock
from qsctl.shipped import shipped


@dataclass(frozen=True, slots=True)
class PeerKind:
    """A kind of application: its abilities, its requirements, its limits, and the evidence for them."""

    application: Annotated[str, "kind of DDS application", Heading("Application")]
    can: Annotated[str, "what it can do with a queue of qsctl", Heading("Can")]
    must_know: Annotated[str, "what it must know for it", Heading("Must know")]
    cannot: Annotated[str, "what it cannot do", Heading("Cannot")]
    seen: Annotated[
        str, "by what that is known: programs that run against a service, or documents", Heading("Seen with")
    ]


_IDL: Final = "schemas/qsctl_queue.idl"
_AND_MONITORING: Final = f"{_IDL}; to monitor, schemas/qsctl_monitoring.idl"

PEER_KINDS: Final[Sequence[PeerKind]] = (
    PeerKind(
        "Python with qsctl.client",
        "everything, in frames of many samples",
        "topic and shared subscriber",
        "",
        "tests/dds",
    ),
    PeerKind(
        "any plain publisher",
        "produce; a full queue holds it back",
        "topic, and the name of the queue's type; where no file defines that, its writers do",
        "write a sample again after a restart as the same one",
        "fixtures/foreign: c/plain_producer, c/hello_world, cpp/hello_world; tests/dds/test_discovered_types.py",
    ),
    PeerKind(
        "any plain subscriber",
        "look on: copies of what all producers write",
        "topic, and the name of the queue's type",
        "consume: it takes nothing from the queue",
        "tests/dds",
    ),
    PeerKind(
        "Cyclone DDS in C",
        "produce, consume, ask and reply, survive a restart; administer and monitor",
        _AND_MONITORING,
        "",
        "0.10.2: fixtures/foreign/c, tests/dds/peer",
    ),
    PeerKind(
        "Cyclone DDS in Python",
        "produce, consume, survive a restart; administer and monitor",
        _AND_MONITORING,
        "",
        "11.0.1: fixtures/foreign/python, tests/dds/peer",
    ),
    PeerKind(
        "Fast DDS in C++",
        "produce, consume, survive a restart",
        f"{_IDL}; memory policy DYNAMIC_REUSABLE; with 2.9 no fastddsgen -typeobject",
        "monitor with 2.9: it reads no mutable types of others; be seen where 2.9 sends a type object",
        "2.9.1: fixtures/foreign/cpp",
    ),
    PeerKind(
        "another DDS of RTPS 2",
        "what Fast DDS can: final types, partitions and reliability are all it takes",
        _IDL,
        "",
        "not run here",
    ),
    PeerKind(
        "RTI Connext DDS, with this IDL",
        "what Fast DDS can; no message is needed that RTPS 2.5 lacks",
        f"{_IDL}; equal names of types, for it does not take part in the look-up of types",
        "",
        "not run here: it is not free",
    ),
    PeerKind(
        "RTI Connext DDS, unchanged clients of RTI Queuing Service",
        "perhaps write samples, as any plain publisher whose type is matched by its name",
        "topic, and the name of the queue's type",
        "consume, or learn what became of a sample: both need Connext's AppAck messages, which are not of RTPS and "
        "which Cyclone DDS neither sends nor reads. A QueueConsumer gets nothing; a QueueProducer waits in vain",
        "not run here: by [QS 2.4 and 2.5] and RTPS 2.5",
    ),
)


@dataclass(frozen=True)
class PeerKinds(DeclaredRows, rows=PeerKind, items="kinds"):
    """The table of kinds of applications."""

    kinds: tuple[PeerKind, ...]

    def blocks(self) -> Sequence[Block]:
        """Return the table, and a reference to the page of the documentation."""
        table = table_of(PeerKind, self.kinds, keeps_columns=True)
        where = f"The IDL is {shipped(_IDL)}, the programs are in {shipped('fixtures/foreign')}."
        more = "More: qsctl help any-dds-application. A peer that cannot match is named in the service's log."
        return [table, TextBlock(where), TextBlock(more, "faint")]
