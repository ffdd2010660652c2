"""An application without qsctl, by `schemas/qsctl_queue.idl` alone, inside the test's own process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from cyclonedds.core import Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic

from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.wire.raw import batching_functions
from tests.dds.peer import queue_types as idl
from tests.patience import PATIENCE_S, eventually

QOS: Final = (Policy.Reliability.Reliable(0), Policy.History.KeepAll)
XCDR1: Final = Policy.DataRepresentation(use_cdrv0_representation=True)
XCDR2: Final = Policy.DataRepresentation(use_xcdrv2_representation=True)


@contextmanager
def _without_batching() -> Iterator[None]:
    """Writers made in here send at once, as those of a process without qsctl do."""
    functions = batching_functions()
    if functions is not None:
        functions[0](False)
    yield
    if functions is not None:
        functions[0](True)


class PlainPeer:
    """A DDS participant with readers and writers as the page says; what is taken is the test's own classes'."""

    def __init__(self, domain: int) -> None:
        # The library's configuration of the domain in this process; nothing else of the participant is used.
        self._base = Participant(domain)
        assert self._base.entity is not None
        self.participant = DomainParticipant(domain)
        self._topics: dict[str, Topic[Any]] = {}

    def topic(self, name: str, data_type: type[Any]) -> Topic[Any]:
        if name not in self._topics:
            self._topics[name] = Topic(self.participant, name, data_type)
        return self._topics[name]

    def writer(self, name: str, data_type: type[Any], *extra: Any, matched: int | None = 1) -> DataWriter[Any]:
        with _without_batching():
            writer: DataWriter[Any] = DataWriter(self.participant, self.topic(name, data_type), qos=Qos(*extra, *QOS))
        if matched is not None:
            assert eventually(lambda: writer.get_publication_matched_status().current_count >= matched), name
        return writer

    def reader(self, name: str, data_type: type[Any], partition: str = "", *extra: Any) -> DataReader[Any]:
        qos = Qos(Policy.Partition([partition])) if partition else None
        subscriber = Subscriber(self.participant, qos=qos)
        return DataReader(subscriber, self.topic(name, data_type), qos=Qos(*extra, *QOS))

    def close(self) -> None:
        self.participant.__del__()
        self._base.close()


class PlainConsumer:
    """Consumes one queue; `taken` is all it got."""

    def __init__(self, peer: PlainPeer, topic: str, subscriber: str = "S", user_data: bytes = b"", *extra: Any) -> None:
        said = (Policy.Userdata(user_data),) if user_data else ()
        place = f"qsctl/{topic}/{subscriber}"
        self.partition = os.urandom(8).hex()
        self.reader = peer.reader(f"{place}/delivery", idl.Delivery, self.partition, *said, *extra)
        self.writer = peer.writer(f"{place}/acknowledgment", idl.Acknowledgment, *extra)
        self.taken: list[Any] = []

    def receive(self, count: int, *, patience_s: float = PATIENCE_S) -> list[Any]:
        """Wait until so many more have come; return them."""
        found: list[Any] = []
        deadline = time.monotonic() + patience_s
        while len(found) < count and time.monotonic() < deadline:
            found += [each for each in self.reader.take(count) if each.sample_info.valid_data]
            time.sleep(0.001)
        self.taken += found
        return found

    def answer(self, delivery: Any, response: int = 1) -> None:
        self.writer.write(idl.Acknowledgment(delivery.consumer, delivery.identity, response))


@contextmanager
def plain_peers(domain: int) -> Iterator[Callable[[], PlainPeer]]:
    with ExitStack() as stack:

        def make() -> PlainPeer:
            peer = PlainPeer(domain)
            stack.callback(peer.close)
            return peer

        yield make
