"""Announcements of a domain's readers and writers from the built-in topics, as undecoded octets.

Decides: which policies of a peer's endpoint are read, and that a peer's octets are decoded later, where they can be
refused. The binding's own conversion reads all 27 policies, and fails on a partition or name that is not UTF-8,
together with all samples of the same batch. Endpoints are read in batches by the library's public functions: through
the binding each costs three times as much, and a peer whose endpoints appear and vanish endlessly causes thousands a
second.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cyclonedds import _clayer as layer
from cyclonedds.builtin import BuiltinDataReader
from cyclonedds.internal import DDS

from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.boundary import Malformed, decoded
from qsctl.transport.dds.wire.raw import ONE_THREAD_AT_A_TIME

SHARED_SUBSCRIBER_PROPERTY: Final = "dds.data_reader.shared_subscriber_name"


_INFO: Final = struct.Struct("@8xIB3x8xQ8xII16x")
"""Layout of `dds_sample_info_t` [DDS 2.2.2.5.5], of which state, validity, handle and generations are read."""

_ENDPOINT: Final = struct.Struct("@16s24xPPP")
"""Layout of `dds_builtintopic_endpoint_t`: the endpoint's GUID, and pointers to its names and policies."""

_SHARED_SUBSCRIBER: Final = SHARED_SUBSCRIBER_PROPERTY.encode()
_string_at: Final = ctypes.string_at


class EndpointInfo(NamedTuple):
    """The members of a sample's information that `Announcement` uses, ordered as in the structure."""

    instance_state: int
    valid_data: int
    instance_handle: int
    disposed_generation_count: int
    no_writers_generation_count: int


class EndpointSample(NamedTuple):
    """An undecoded sample of a built-in topic of endpoints; see `announcement_of`."""

    key: bytes
    topic_name: bytes
    type_name: bytes
    policies: Policies
    info: EndpointInfo
    is_described: bool = False


class Announcement(NamedTuple):
    """A decoded sample of a built-in topic of endpoints, or of that of participants, which have no topic.

    Attributes:
        key: the endpoint's GUID, 16 octets.
        info: the binding's `SampleInfo`; without valid data the endpoint is gone, and the other members are empty.
        type_name: the name of its type.
        lifespan_ns: the lifespan of a writer's samples; `INFINITE_NS` for readers.
        representations: XCDR1 as 0, XCDR2 as 2; those that a writer writes or a reader reads; empty: XCDR1.
        is_described: whether its type can be looked up; if not, only its name is known [XTYPES 7.6.3.2].
    """

    key: bytes
    topic_name: str
    partitions: tuple[bytes, ...]
    user_data: bytes
    shared_subscriber: bytes | None
    info: Any
    type_name: str = ""
    lifespan_ns: Nanoseconds = INFINITE_NS
    representations: tuple[int, ...] = ()
    is_described: bool = False


class Policies(NamedTuple):
    """The QoS policies that are read from the announcement of an endpoint or a participant."""

    partitions: tuple[bytes, ...]
    user_data: bytes
    shared_subscriber: bytes | None
    lifespan_ns: Nanoseconds = INFINITE_NS
    representations: tuple[int, ...] = ()


_NOTHING_SAID: Final = Policies((), b"", None)


def take_endpoints(reader: BuiltinDataReader, count: int) -> list[EndpointSample]:
    """Take the next samples of a built-in topic of endpoints, at most `count`.

    A vanished endpoint has its key alone, unless it appeared and vanished since the last call.
    """
    library = _taking()
    loans = (ctypes.c_void_p * count)()
    infos = ctypes.create_string_buffer(_INFO.size * count)
    taken: int = library.dds_take(reader._ref, loans, infos, count, count)
    if taken <= 0:
        return []
    try:
        read = _PolicyReader()
        description = ctypes.c_void_p()
        to_description = ctypes.byref(description)
        found = []
        for at, values in enumerate(_INFO.iter_unpack(infos.raw[: _INFO.size * taken])):
            key, topic_name, type_name, policies = _ENDPOINT.unpack(_string_at(loans[at] or 0, _ENDPOINT.size))
            if values[1] and topic_name and type_name:
                names = _string_at(topic_name), _string_at(type_name)
                said = read.policies(policies) if policies else _NOTHING_SAID
                description.value = None
                library.dds_builtintopic_get_endpoint_type_info(loans[at], to_description)
                is_described = description.value is not None
                found.append(EndpointSample(key, *names, said, EndpointInfo(*values), is_described))
            else:
                found.append(EndpointSample(key, b"", b"", _NOTHING_SAID, EndpointInfo(*values)))
        return found
    finally:
        library.dds_return_loan(reader._ref, loans, taken)


def announcement_of(sample: EndpointSample) -> Announcement:
    """Return the decoded announcement of an endpoint.

    Raises:
        Malformed: the topic's or the type's name is not UTF-8.
    """
    said = sample.policies
    try:
        topic_name, type_name = sample.topic_name.decode(), sample.type_name.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"the name of a topic or a type is not UTF-8: {error}") from error
    return Announcement(
        sample.key,
        topic_name,
        said.partitions,
        said.user_data,
        said.shared_subscriber,
        sample.info,
        type_name,
        said.lifespan_ns,
        said.representations,
        sample.is_described,
    )


def take_participant(reader: BuiltinDataReader) -> Announcement | None:
    """Take the next sample of the built-in topic of participants; None: there is none.

    Raises:
        Malformed: the binding cannot read it; the sample is removed nevertheless.
    """
    take: Any = layer.ddspy_take_participant
    with ONE_THREAD_AT_A_TIME:
        taken: Any = decoded(lambda reference: take(reference, 1, _participant, _policies), reader._ref)
    return taken[0] if isinstance(taken, list) and taken else None


def writer_key(reader_reference: int, handle: int) -> bytes | None:
    """Return the GUID of a writer that a reader is matched with; None: it is no longer matched."""
    return _matched(layer.ddspy_get_matched_publication_data, reader_reference, handle)


def reader_key(writer_reference: int, handle: int) -> bytes | None:
    """Return the GUID of a reader that a writer is matched with; None: it is no longer matched."""
    return _matched(layer.ddspy_get_matched_subscription_data, writer_reference, handle)


def _matched(look_up: Callable[..., Any], reference: int, handle: int) -> bytes | None:
    try:
        with ONE_THREAD_AT_A_TIME:
            key: bytes | None = decoded(lambda of: look_up(of, handle, _key, _no_policies), reference)
    except Malformed:
        # One of its names is not UTF-8: the binding then returns no GUID either.
        return None
    return key


def _participant(key: bytes, policies: Policies | None, info: Any) -> Announcement:
    said = policies or _NOTHING_SAID
    return Announcement(bytes(key), "", said.partitions, said.user_data, said.shared_subscriber, info)


def _key(key: bytes, *_rest: Any) -> bytes:
    return bytes(key)


def _no_policies(_pointer: int) -> None:
    return None


def _policies(pointer: int) -> Policies:
    return _PolicyReader().policies(pointer)


class _PolicyReader:
    """A reader of policies that reuses its buffers for the results of the library's getters."""

    def __init__(self) -> None:
        self._library = _library()
        self._value, self._size = ctypes.c_void_p(), ctypes.c_size_t()
        self._names: Any = ctypes.POINTER(ctypes.c_void_p)()
        self._numbers: Any = ctypes.POINTER(ctypes.c_int16)()
        self._count, self._span = ctypes.c_uint32(), ctypes.c_int64()
        self._to_value, self._to_size = ctypes.byref(self._value), ctypes.byref(self._size)
        self._to_names, self._to_numbers = ctypes.byref(self._names), ctypes.byref(self._numbers)
        self._to_count, self._to_span = ctypes.byref(self._count), ctypes.byref(self._span)

    def policies(self, qos: int) -> Policies:
        """Return the policies at a pointer of the library."""
        library = self._library
        user_data = b""
        if library.dds_qget_userdata(qos, self._to_value, self._to_size) and self._value.value:
            user_data = _string_at(self._value.value, self._size.value)
            library.dds_free(self._value)
        partitions: tuple[bytes, ...] = ()
        if library.dds_qget_partition(qos, self._to_count, self._to_names) and self._count.value:
            found = self._names[: self._count.value]
            partitions = tuple([_string_at(each or 0) for each in found])
            for each in found:
                library.dds_free(each)
            library.dds_free(self._names)
        subscriber: bytes | None = None
        if library.dds_qget_prop(qos, _SHARED_SUBSCRIBER, self._to_value) and self._value.value:
            subscriber = _string_at(self._value.value)
            library.dds_free(self._value)
        self._span.value = INFINITE_NS  # the library's for ever is the same number
        library.dds_qget_lifespan(qos, self._to_span)
        representations: tuple[int, ...] = ()
        if library.dds_qget_data_representation(qos, self._to_count, self._to_numbers) and self._count.value:
            representations = tuple(self._numbers[: self._count.value])
            library.dds_free(self._numbers)
        return Policies(partitions, user_data, subscriber, max(self._span.value, 0), representations)


_POINTER: Final = ctypes.c_void_p
_GETTERS: Final = {
    "dds_qget_userdata": [_POINTER, _POINTER, _POINTER],
    "dds_qget_partition": [_POINTER, _POINTER, _POINTER],
    "dds_qget_prop": [_POINTER, ctypes.c_char_p, _POINTER],
    "dds_qget_lifespan": [_POINTER, _POINTER],
    "dds_qget_data_representation": [_POINTER, _POINTER, _POINTER],
}
"""Functions of the library's public interface, with the types of their arguments."""


@functools.cache
def _library() -> Any:
    """Return the library with declarations of the functions that read policies, all of its public interface.

    They wait for no lock and call nothing back, so the interpreter's lock is kept: releasing it costs as much as a
    call.
    """
    # A handle of its own: the binding declares the arguments of the same functions in another way.
    library = ctypes.PyDLL(DDS._dll_handle._name)
    for name, arguments in _GETTERS.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = ctypes.c_bool
    library.dds_free.argtypes = [_POINTER]
    library.dds_free.restype = None
    return library


@functools.cache
def _taking() -> Any:
    """Return the library with declared functions for taking samples, which may wait for another thread's lock."""
    library = ctypes.CDLL(DDS._dll_handle._name)
    library.dds_take.argtypes = [ctypes.c_int32, _POINTER, _POINTER, ctypes.c_size_t, ctypes.c_uint32]
    library.dds_return_loan.argtypes = [ctypes.c_int32, _POINTER, ctypes.c_int32]
    library.dds_builtintopic_get_endpoint_type_info.argtypes = [_POINTER, _POINTER]
    library.dds_builtintopic_get_endpoint_type_info.restype = ctypes.c_int32
    library.dds_take.restype = library.dds_return_loan.restype = ctypes.c_int32
    return library
