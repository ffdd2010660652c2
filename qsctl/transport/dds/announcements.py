"""What discovery says of the readers and writers of a domain, as octets: nothing of it is taken for text yet.

Decides: which policies of a peer's endpoint are looked at, and that a peer's octets are decoded by those who can refuse
them. The binding's own conversion reads all 27 policies and fails on a partition or a name that is not UTF-8, with the
whole batch that it was in.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cyclonedds import _clayer as layer
from cyclonedds.builtin import BuiltinDataReader
from cyclonedds.internal import DDS

from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.boundary import Malformed, decoded
from qsctl.transport.dds.raw import ONE_THREAD_AT_A_TIME

SHARED_SUBSCRIBER_PROPERTY: Final = "dds.data_reader.shared_subscriber_name"


class Announcement(NamedTuple):
    """One sample of a builtin topic of endpoints, or of that of participants, which are on no topic.

    Attributes:
        key: the endpoint's GUID, 16 octets.
        info: the binding's `SampleInfo`; without valid data the endpoint is gone, and the rest is empty.
        type_name: the name of its type.
        lifespan_ns: how long a writer's samples are of use; `INFINITE_NS` for ever, and for readers.
        representations: XCDR1 as 0, XCDR2 as 2; what a writer writes, or what a reader reads; empty: XCDR1.
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


class _Policies(NamedTuple):
    partitions: tuple[bytes, ...]
    user_data: bytes
    shared_subscriber: bytes | None
    lifespan_ns: Nanoseconds = INFINITE_NS
    representations: tuple[int, ...] = ()


_NOTHING_SAID: Final = _Policies((), b"", None)


def take_announcement(reader: BuiltinDataReader) -> Announcement | None:
    """Take the next sample of a reader of a builtin topic; None: there is none.

    Raises:
        Malformed: the topic's or the type's name is not UTF-8; the sample is taken all the same.
    """
    take: Any = layer.ddspy_take_endpoint
    with ONE_THREAD_AT_A_TIME:
        taken: Any = decoded(lambda reference: take(reference, 1, _announcement, _policies), reader._ref)
    return taken[0] if isinstance(taken, list) and taken else None


def take_participant(reader: BuiltinDataReader) -> Announcement | None:
    """Take the next sample of a reader of the builtin topic of participants; None: there is none.

    Raises:
        Malformed: the binding cannot read it; the sample is taken all the same.
    """
    take: Any = layer.ddspy_take_participant
    with ONE_THREAD_AT_A_TIME:
        taken: Any = decoded(lambda reference: take(reference, 1, _participant, _policies), reader._ref)
    return taken[0] if isinstance(taken, list) and taken else None


def writer_key(reader_reference: int, handle: int) -> bytes | None:
    """The GUID of a writer that a reader is matched with; None: it is not, any more."""
    return _matched(layer.ddspy_get_matched_publication_data, reader_reference, handle)


def reader_key(writer_reference: int, handle: int) -> bytes | None:
    """The GUID of a reader that a writer is matched with; None: it is not, any more."""
    return _matched(layer.ddspy_get_matched_subscription_data, writer_reference, handle)


def _matched(look_up: Callable[..., Any], reference: int, handle: int) -> bytes | None:
    try:
        with ONE_THREAD_AT_A_TIME:
            key: bytes | None = decoded(lambda of: look_up(of, handle, _key, _no_policies), reference)
    except Malformed:
        # A name of it is not UTF-8: who it is cannot be had here.
        return None
    return key


def _announcement(
    key: bytes,
    _participant_key: bytes,
    _participant_handle: int,
    topic_name: str | None,
    type_name: str | None,
    policies: _Policies | None,
    info: Any,
    _type_id: bytes | None,
) -> Announcement:
    said = policies or _NOTHING_SAID
    return Announcement(
        bytes(key),
        topic_name or "",
        said.partitions,
        said.user_data,
        said.shared_subscriber,
        info,
        type_name or "",
        said.lifespan_ns,
        said.representations,
    )


def _participant(key: bytes, policies: _Policies | None, info: Any) -> Announcement:
    said = policies or _NOTHING_SAID
    return Announcement(bytes(key), "", said.partitions, said.user_data, said.shared_subscriber, info)


def _key(key: bytes, *_rest: Any) -> bytes:
    return bytes(key)


def _no_policies(_pointer: int) -> None:
    return None


def _policies(pointer: int) -> _Policies:
    library = _library()
    qos = ctypes.c_void_p(pointer)
    value = ctypes.c_void_p()
    size = ctypes.c_size_t()
    user_data = b""
    if library.dds_qget_userdata(qos, ctypes.byref(value), ctypes.byref(size)) and value.value:
        user_data = ctypes.string_at(value, size.value)
        library.dds_free(value)
    names = ctypes.POINTER(ctypes.c_void_p)()
    count = ctypes.c_uint32()
    partitions: list[bytes] = []
    if library.dds_qget_partition(qos, ctypes.byref(count), ctypes.byref(names)):
        for index in range(count.value):
            partitions.append(ctypes.string_at(names[index]))
            library.dds_free(names[index])
        library.dds_free(names)
    text = ctypes.c_void_p()
    subscriber: bytes | None = None
    if library.dds_qget_prop(qos, SHARED_SUBSCRIBER_PROPERTY.encode(), ctypes.byref(text)) and text.value:
        subscriber = ctypes.string_at(text)
        library.dds_free(text)
    lifespan_ns = ctypes.c_int64(INFINITE_NS)  # the library's for ever is the same number
    library.dds_qget_lifespan(qos, ctypes.byref(lifespan_ns))
    return _Policies(
        tuple(partitions),
        user_data,
        subscriber,
        max(lifespan_ns.value, 0),
        _representations(library, qos),
    )


def _representations(library: Any, qos: Any) -> tuple[int, ...]:
    count = ctypes.c_uint32()
    values = ctypes.POINTER(ctypes.c_int16)()
    if not library.dds_qget_data_representation(qos, ctypes.byref(count), ctypes.byref(values)):
        return ()
    representations = tuple(values[: count.value])
    library.dds_free(values)
    return representations


@functools.cache
def _library() -> Any:
    """The library, with what it is asked here declared; these functions are its public interface."""
    # A handle of its own: the binding declares the arguments of the same functions in another way.
    library = ctypes.CDLL(DDS._dll_handle._name)
    for name, arguments in (
        ("dds_qget_userdata", [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
        ("dds_qget_partition", [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
        ("dds_qget_prop", [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]),
        ("dds_qget_lifespan", [ctypes.c_void_p, ctypes.c_void_p]),
        ("dds_qget_data_representation", [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
    ):
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = ctypes.c_bool
    library.dds_free.argtypes = [ctypes.c_void_p]
    library.dds_free.restype = None
    return library
