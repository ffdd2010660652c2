"""Messages of `schemas/qsctl_queue.idl` packed and read by hand, against the binding's own classes and the IDL."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.config.sample_types.types import TypeLibrary
from qsctl.core.messages import AckResponse, Delivery
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.peers.announcements import Policies
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.plain._idl import plain_class
from qsctl.transport.dds.plain._octets import (
    XCDR1,
    XCDR2,
    pack_delivery,
    pack_write_acknowledgment,
    read_acknowledgment,
    read_availability,
    read_write,
)
from qsctl.transport.dds.plain._partitions import is_alone, reads_xcdr2_only
from qsctl.transport.dds.plain._payloads import payload_of, serialized
from qsctl.transport.dds.plain.flow import PlainWriter, remaining_ns
from qsctl.transport.dds.wire.idl_classes import idl_class

GUIDS = [Guid(bytes([digit]) * 16) for digit in range(1, 7)]
NUMBER = 2**62 + 3
HEADERS = pytest.mark.parametrize("header", [XCDR1, XCDR2], ids=["xcdr1", "xcdr2"])


def wire_guid(guid: Guid) -> Any:
    return idl_class("schemas/qsctl_queue.idl", "qsctl::Guid")(guid)


def wire_identity(guid: Guid, number: int) -> Any:
    return idl_class("schemas/qsctl_queue.idl", "qsctl::SampleIdentity")(wire_guid(guid), number)


def octets_of(sample: Any, header: bytes) -> bytes:
    octets: bytes = sample.serialize(use_version_2=header == XCDR2)
    return header + octets[4:]


@HEADERS
@pytest.mark.parametrize("size", [0, 1, 7, 4096])
def test_delivery_is_what_the_binding_makes_of_it(header: bytes, size: int) -> None:
    payload = bytes(range(256)) * 16
    delivery = Delivery(
        "Q", GUIDS[0], 1, SampleIdentity(GUIDS[1], NUMBER), payload[:size], GUIDS[2], GUIDS[3],
        SampleIdentity(GUIDS[4], 5), flags=9, attempt=3,
    )  # fmt: skip
    make = plain_class("Delivery")
    expected = make(
        wire_guid(GUIDS[0]), wire_identity(GUIDS[1], NUMBER), wire_guid(GUIDS[2]), wire_guid(GUIDS[3]),
        wire_identity(GUIDS[4], 5), 3, 9, delivery.payload,
    )  # fmt: skip
    packed = pack_delivery(delivery, header)
    assert octets_of(expected, header)[: len(packed)] == packed
    assert bytes(make.deserialize(packed).payload) == payload[:size]


@HEADERS
def test_other_messages_are_read_as_the_binding_makes_them(header: bytes) -> None:
    make = plain_class("Acknowledgment")
    octets = octets_of(make(wire_guid(GUIDS[0]), wire_identity(GUIDS[1], NUMBER), 2), header)
    assert read_acknowledgment(octets) == (GUIDS[0], SampleIdentity(GUIDS[1], NUMBER), AckResponse.RETURNED)
    make = plain_class("Availability")
    assert read_availability(octets_of(make(wire_guid(GUIDS[0]), 7, False), header)) == (GUIDS[0], 7, False)
    make = plain_class("Write")
    octets = octets_of(
        make(
            wire_identity(GUIDS[0], 1),
            wire_guid(GUIDS[1]),
            wire_guid(GUIDS[2]),
            wire_identity(GUIDS[3], 4),
            10**9,
            8,
            b"abc",
        ),
        header,
    )
    assert read_write(octets) == (
        SampleIdentity(GUIDS[0], 1), GUIDS[1], GUIDS[2], SampleIdentity(GUIDS[3], 4), 10**9, 8, b"abc",
    )  # fmt: skip
    make = plain_class("WriteAcknowledgment")
    packed = pack_write_acknowledgment(SampleIdentity(GUIDS[0], NUMBER), 17, 1, b"T@S", header)
    assert make.deserialize(packed) == make(wire_identity(GUIDS[0], NUMBER), 17, 1, "T@S")


def test_big_endian_peers_are_read() -> None:
    octets = b"\x00\x00\x00\x00" + GUIDS[0] + GUIDS[1] + (5).to_bytes(8, "big") + (1).to_bytes(4, "big")
    assert read_acknowledgment(octets) == (GUIDS[0], SampleIdentity(GUIDS[1], 5), AckResponse.ACCEPTED)


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x00\x01\x00\x00", b"\x00\x07\x00\x00", b"\x00\x00\x00\x00"]))
def test_any_octets_are_read_or_malformed(data: bytes, header: bytes) -> None:
    for read in (read_acknowledgment, read_availability, read_write, *map(payload_of, ("DDS::Octets", "DDS::String"))):
        try:
            found: Any = read(header + data)  # type: ignore[operator]
        except Malformed as error:
            assert len(str(error)) < 200
        else:
            assert not isinstance(found, bytes) or len(found) <= len(data)


@pytest.mark.parametrize("type_name", ["DDS::Octets", "DDS::String"])
@pytest.mark.parametrize("content", [b"", b"a", b"abcd", "grün".encode()])
@HEADERS
def test_octets_and_text_are_bare_and_back(type_name: str, content: bytes, header: bytes) -> None:
    data_type: Any = TypeLibrary().class_of(type_name)
    value = content.decode() if type_name == "DDS::String" else content
    assert payload_of(type_name)(octets_of(data_type(value), header)) == content
    assert bytes(
        data_type.deserialize(serialized(type_name, content)).value, *(("utf-8",) * isinstance(value, str))
    ) == (content)


def test_numbers_of_a_writer_grow_whatever_its_timestamps() -> None:
    writer = PlainWriter(SimpleNamespace(is_described=False, key=GUIDS[0], policies=Policies((), b"", None)))  # type: ignore[arg-type]
    assert [writer.number(each, 50) for each in (10, 10, 9, 20, -(2**63), 2**63 - 1)] == [10, 11, 12, 20, 50, 51]


def test_lifespan_that_remains_counts_from_the_source_timestamp() -> None:
    assert remaining_ns(100, 1_000, 1_030) == 70
    assert remaining_ns(100, 1_000, 2_000) == 0
    assert remaining_ns(100, 2_000, 1_000) == 100, "a clock that is ahead"
    assert remaining_ns(100, -1, 1_000) == 100
    assert remaining_ns(INFINITE_NS, 1, 10**18) == INFINITE_NS


def test_reader_of_its_own_samples_is_alone_in_its_partition() -> None:
    one = RemoteEndpoint(1, False, "T", ("one",))
    assert is_alone(one, [RemoteEndpoint(2, False, "T", ("two",))])
    assert not is_alone(RemoteEndpoint(1, False, "T", ("*",)), [one]), "it looks on"
    for partitions in ((), ("",), ("one", "two")):
        with pytest.raises(Malformed, match="partition"):
            is_alone(RemoteEndpoint(1, False, "T", partitions), [])
    with pytest.raises(Malformed, match="where another one is"):
        is_alone(RemoteEndpoint(2, False, "T", ("one",)), [one])
    assert reads_xcdr2_only(RemoteEndpoint(1, False, "T", representations=(2,)))
    assert not any(reads_xcdr2_only(RemoteEndpoint(1, False, "T", representations=each)) for each in ((), (0, 2), (0,)))
