"""Queues whose type no file defines: what their writers say of it, in any order, and what of that is not taken."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cyclonedds.idl import IdlStruct, make_idl_struct
from cyclonedds.idl.annotations import appendable
from cyclonedds.idl.types import byte, int32, sequence, uint32

from qsctl.client import QueueProducer
from qsctl.transport.dds.peers.type_outlines import DEPTH_MAX
from tests.dds.c_peer import ENVIRONMENT, build, needs_c
from tests.dds.domains import claim_domain, release_domain
from tests.dds.plain_peer import PlainConsumer, PlainPeer, plain_peers
from tests.dds.service_process import ServiceProcess, eventually
from tests.processes import running

TOPICS = {
    "Described": "shop::Plain",
    "First": "shop::Plain",
    "Last": "shop::Plain",
    "Loose": "shop::Loose",
    "Keyed": "shop::Keyed",
    "Versions": "shop::Plain",
    "Looked": "shop::Plain",
    "Deep": "shop::Deep",
    "Other": "shop::Plain",
}


@dataclass
@appendable
class Plain(IdlStruct, typename="shop.Plain"):
    number: uint32 = 0
    payload: sequence[byte] = ()  # type: ignore[assignment]


@dataclass
@appendable
class NextPlain(IdlStruct, typename="shop.Plain"):
    """Another release of it, which does not fit the first."""

    text: str = ""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    domain = claim_domain()
    queues = "".join(
        f'<shared_reader_queue name="{name}" session="s"><topic_name>{name}</topic_name>'
        f"<type_name>{type_name}</type_name></shared_reader_queue>"
        for name, type_name in TOPICS.items()
    )
    process = ServiceProcess(tmp_path_factory.mktemp("service"), domain, queues=queues)
    yield process
    process.end()
    release_domain(domain)


@pytest.fixture
def peer(service: ServiceProcess) -> Iterator[PlainPeer]:
    with plain_peers(service.domain) as make:
        yield make()


@pytest.fixture(scope="module")
def undescribed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("undescribed"), ["undescribed.idl"], "undescribed.c", "-t")


@contextlib.contextmanager
def written(program: Path, service: ServiceProcess, kind: str, topic: str, first: int) -> Iterator[None]:
    """Three samples of a writer that describes nothing, which stays while the block runs."""
    command = [str(program), str(service.domain), kind, topic, str(first), "3"]
    with running(command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        yield
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.close()
        assert process.wait(30) == 0


def numbers(consumer: PlainConsumer, count: int) -> list[int]:
    """The numbers of the next samples of `Plain`; more of them would be there, too."""
    found = consumer.receive(count)
    for delivery in found:
        consumer.answer(delivery)
    assert consumer.receive(1, patience_s=0.2) == [], "each sample is there once"
    return sorted(Plain.deserialize(bytes(each.payload)).number for each in found)


def reported(service: ServiceProcess, *words: str) -> bool:
    """Whether a line of the service's log has all the words, soon."""
    return eventually(lambda: any(all(word in line for word in words) for line in service.log.read_text().splitlines()))


def test_type_is_what_its_writer_describes(service: ServiceProcess, peer: PlainPeer) -> None:
    consumer = PlainConsumer(peer, "Described")
    peer.writer("Described", Plain).write(Plain(7, [1, 2]))
    assert numbers(consumer, 1) == [7]
    assert reported(service, "type_discovered", "'Described'", "as a writer of it describes it")
    assert "malformed" not in service.log.read_text()


@needs_c
@pytest.mark.parametrize("kind", ["Loose", "Keyed"])
def test_writer_without_description_is_matched_by_name(
    service: ServiceProcess, peer: PlainPeer, undescribed: Path, kind: str
) -> None:
    consumer = PlainConsumer(peer, kind)
    with written(undescribed, service, kind, kind, 1):
        assert len(consumer.receive(3)) == 3
    assert reported(service, "type_discovered", f"'{kind}'", "by its name alone")


@needs_c
def test_writers_of_both_kinds_write_each_sample_once(
    service: ServiceProcess, peer: PlainPeer, undescribed: Path
) -> None:
    """Whichever comes first; a writer without a description matches the readers of both kinds."""
    consumer = PlainConsumer(peer, "First")
    with written(undescribed, service, "Plain", "First", 1):
        assert numbers(consumer, 3) == [1, 2, 3]
        described = peer.writer("First", Plain)
        described.write(Plain(10))
        with written(undescribed, service, "Plain", "First", 4):
            assert numbers(consumer, 4) == [4, 5, 6, 10]
    consumer = PlainConsumer(peer, "Last")
    peer.writer("Last", Plain).write(Plain(20))
    assert numbers(consumer, 1) == [20]
    with written(undescribed, service, "Plain", "Last", 1):
        assert numbers(consumer, 3) == [1, 2, 3]


def test_other_description_counts_once_no_writer_of_the_first_is_left(service: ServiceProcess) -> None:
    with plain_peers(service.domain) as make:
        consumer = PlainConsumer(make(), "Versions")
        first, second = make(), make()
        kept = first.writer("Versions", Plain)
        kept.write(Plain(1))
        assert numbers(consumer, 1) == [1]
        other = second.writer("Versions", NextPlain, matched=None)
        assert reported(service, "incompatible_peer", "'Versions'", "type: ")
        assert other.get_publication_matched_status().current_count == 0
        del kept
        first.close()
        assert eventually(lambda: other.get_publication_matched_status().current_count > 0)
        other.write(NextPlain("next"))
        assert [NextPlain.deserialize(bytes(each.payload)).text for each in consumer.receive(1)] == ["next"]


def test_reader_that_describes_the_type_gets_copies(service: ServiceProcess, peer: PlainPeer) -> None:
    observed = peer.reader("Looked", Plain)
    assert eventually(lambda: observed.get_subscription_matched_status().current_count == 1), "the copies' writer"
    with QueueProducer("Looked", service.domain) as producer:
        producer.wait_for_queue()
        producer.write(Plain(5).serialize(use_version_2=False))
        assert producer.wait_for_acknowledgments() == 0
        assert eventually(lambda: [each.number for each in observed.take(1)] == [5])


def test_description_that_is_too_deep_is_named_once(service: ServiceProcess, peer: PlainPeer) -> None:
    inner: Any = int32
    for level in range(DEPTH_MAX + 2):
        inner = make_idl_struct(f"Deep{level}", f"shop.Deep{level}", {"inside": inner})
    deep = make_idl_struct("Deep", "shop.Deep", {"inside": inner})
    kept = peer.writer("Deep", deep, matched=None)
    assert reported(service, "incompatible_peer", "'Deep'", "nested more than 16 deep", "define it in <types>")
    assert kept.get_publication_matched_status().current_count == 0


@pytest.mark.slow
def test_writer_of_another_name_is_named(service: ServiceProcess, peer: PlainPeer) -> None:
    stranger = make_idl_struct("Stranger", "shop.Stranger", {"number": int32})
    kept = peer.writer("Other", stranger, matched=None)
    assert reported(service, "incompatible_peer", "'Other'", "it is of type 'shop::Stranger'")
    assert kept.get_publication_matched_status().current_count == 0
