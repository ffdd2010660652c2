"""Policies of endpoints and participants as discovery announces them, read with the library's own getters.

Decides: which policies are compared to explain why two endpoints do not match [DDS 2.2.3, RTPS 8.5.3]. A peer's texts
remain octets: the code that prints them escapes them.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cyclonedds.internal import DDS

XCDR1: Final = 0
XCDR2: Final = 2
REPRESENTATIONS: Final = {XCDR1: "XCDR1", 1: "XML", XCDR2: "XCDR2"}

RELIABILITIES: Final = ("BEST_EFFORT", "RELIABLE")
DURABILITIES: Final = ("VOLATILE", "TRANSIENT_LOCAL", "TRANSIENT", "PERSISTENT")
OWNERSHIPS: Final = ("SHARED", "EXCLUSIVE")
LIVELINESSES: Final = ("AUTOMATIC", "MANUAL_BY_PARTICIPANT", "MANUAL_BY_TOPIC")
DESTINATION_ORDERS: Final = ("BY_RECEPTION_TIMESTAMP", "BY_SOURCE_TIMESTAMP")
SCOPES: Final = ("INSTANCE", "TOPIC", "GROUP")

FOREVER: Final = 2**63 - 1
"""The library's infinite duration."""


@dataclass(frozen=True, slots=True)
class EndpointPolicies:
    """The policies of a reader or writer on which a match depends; kinds by number, durations in nanoseconds."""

    representations: tuple[int, ...] = (XCDR1,)
    reliability: int = 0
    durability: int = 0
    ownership: int = 0
    partitions: tuple[bytes, ...] = ()
    deadline_ns: int = FOREVER
    latency_budget_ns: int = 0
    liveliness: int = 0
    liveliness_lease_ns: int = FOREVER
    destination_order: int = 0
    access_scope: int = 0
    coherent_access: bool = False
    ordered_access: bool = False
    user_data: bytes = b""


@dataclass(frozen=True, slots=True)
class ParticipantWords:
    """A participant's announced description of its process; members that it does not announce are empty."""

    name: str = ""
    process: str = ""
    process_id: str = ""
    host: str = ""


_PROCESS: Final = ("__ProcessName", "fastdds.physical_data.process", "dds.sys_info.executable_filepath")
_PROCESS_ID: Final = ("__Pid", "dds.sys_info.process_id")
_HOST: Final = ("__Hostname", "fastdds.physical_data.host", "dds.sys_info.hostname")
"""The properties in which Cyclone DDS, Fast DDS and RTI Connext announce a participant's process."""


def policies_of(pointer: int) -> EndpointPolicies:
    """Return the policies at the pointer of a built-in topic's sample."""
    library = _library()
    qos = ctypes.c_void_p(pointer)

    def numbers(name: str, *kinds: Any) -> list[int] | None:
        values = [kind() for kind in kinds]
        found = getattr(library, name)(qos, *(ctypes.byref(value) for value in values))
        return [value.value for value in values] if found else None

    kind, span, flag = ctypes.c_int, ctypes.c_int64, ctypes.c_bool
    reliability = numbers("dds_qget_reliability", kind, span) or [0]
    durability = numbers("dds_qget_durability", kind) or [0]
    ownership = numbers("dds_qget_ownership", kind) or [0]
    deadline = numbers("dds_qget_deadline", span) or [FOREVER]
    latency = numbers("dds_qget_latency_budget", span) or [0]
    liveliness = numbers("dds_qget_liveliness", kind, span) or [0, FOREVER]
    order = numbers("dds_qget_destination_order", kind) or [0]
    scope, coherent, ordered = numbers("dds_qget_presentation", kind, flag, flag) or [0, 0, 0]
    return EndpointPolicies(
        _representations(library, qos) or (XCDR1,),
        reliability[0],
        durability[0],
        ownership[0],
        _partitions(library, qos),
        deadline[0],
        latency[0],
        liveliness[0],
        liveliness[1],
        order[0],
        scope,
        bool(coherent),
        bool(ordered),
        _user_data(library, qos),
    )


def words_of(pointer: int) -> ParticipantWords:
    """Return a participant's description of its process."""
    library = _library()
    qos = ctypes.c_void_p(pointer)
    text = ctypes.c_void_p()
    name = ""
    if library.dds_qget_entity_name(qos, ctypes.byref(text)) and text.value:
        name = ctypes.string_at(text).decode(errors="replace")
        library.dds_free(text)
    return ParticipantWords(
        name, _property(library, qos, _PROCESS), _property(library, qos, _PROCESS_ID), _property(library, qos, _HOST)
    )


def _property(library: Any, qos: ctypes.c_void_p, names: Sequence[str]) -> str:
    for name in names:
        text = ctypes.c_void_p()
        if library.dds_qget_prop(qos, name.encode(), ctypes.byref(text)) and text.value:
            value = ctypes.string_at(text).decode(errors="replace")
            library.dds_free(text)
            return value
    return ""


def _representations(library: Any, qos: ctypes.c_void_p) -> tuple[int, ...]:
    count = ctypes.c_uint32()
    values = ctypes.POINTER(ctypes.c_int16)()
    if not library.dds_qget_data_representation(qos, ctypes.byref(count), ctypes.byref(values)):
        return ()
    found = tuple(values[index] for index in range(count.value))
    library.dds_free(ctypes.cast(values, ctypes.c_void_p))
    return found


def _partitions(library: Any, qos: ctypes.c_void_p) -> tuple[bytes, ...]:
    count = ctypes.c_uint32()
    names = ctypes.POINTER(ctypes.c_void_p)()
    if not library.dds_qget_partition(qos, ctypes.byref(count), ctypes.byref(names)):
        return ()
    found: list[bytes] = []
    for index in range(count.value):
        found.append(ctypes.string_at(names[index]))
        library.dds_free(names[index])
    library.dds_free(names)
    return tuple(found)


def _user_data(library: Any, qos: ctypes.c_void_p) -> bytes:
    value = ctypes.c_void_p()
    size = ctypes.c_size_t()
    if not library.dds_qget_userdata(qos, ctypes.byref(value), ctypes.byref(size)) or not value.value:
        return b""
    octets = ctypes.string_at(value, size.value)
    library.dds_free(value)
    return octets


_GETTERS: Final = {
    "dds_qget_reliability": 3,
    "dds_qget_durability": 2,
    "dds_qget_ownership": 2,
    "dds_qget_deadline": 2,
    "dds_qget_latency_budget": 2,
    "dds_qget_liveliness": 3,
    "dds_qget_destination_order": 2,
    "dds_qget_presentation": 4,
    "dds_qget_data_representation": 3,
    "dds_qget_partition": 3,
    "dds_qget_userdata": 3,
    "dds_qget_entity_name": 2,
    "dds_qget_prop": 3,
}
"""Functions of the library's public interface, with the number of pointers that each takes."""


@functools.cache
def _library() -> Any:
    # A handle of its own: the binding declares the arguments of the same functions in another way.
    library = ctypes.CDLL(DDS._dll_handle._name)
    for name, count in _GETTERS.items():
        function = getattr(library, name)
        function.argtypes = [ctypes.c_void_p] * count
        function.restype = ctypes.c_bool
    library.dds_free.argtypes = [ctypes.c_void_p]
    library.dds_free.restype = None
    library.dds_get_children.argtypes = [ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t]
    library.dds_get_children.restype = ctypes.c_int32
    for ask in (library.dds_get_matched_publications, library.dds_get_matched_subscriptions):
        ask.argtypes = [ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t]
        ask.restype = ctypes.c_int32
    library.dds_get_guid.argtypes = [ctypes.c_int32, ctypes.c_void_p]
    library.dds_get_guid.restype = ctypes.c_int32
    return library


def endpoints_of(participant_reference: int) -> dict[bytes, int]:
    """Return the readers and writers of a participant in this process, as references by key."""
    library = _library()
    found: dict[bytes, int] = {}
    for group in _children(library, participant_reference):
        for reference in _children(library, group):
            if (key := _key_of(library, reference)) is not None:
                found[key] = reference
    return found


def matched_with(reference: int, is_writer: bool) -> list[int]:
    """Return the handles of the endpoints that match a writer, or a reader, of this process."""
    library = _library()
    ask = library.dds_get_matched_subscriptions if is_writer else library.dds_get_matched_publications
    count = ask(reference, None, 0)
    if count <= 0:
        return []
    room = (ctypes.c_uint64 * (count + 16))()
    count = ask(reference, room, len(room))
    return list(room[: min(count, len(room))]) if count > 0 else []


def _key_of(library: Any, reference: int) -> bytes | None:
    key = ctypes.create_string_buffer(16)
    return key.raw if library.dds_get_guid(reference, key) == 0 else None


def _children(library: Any, reference: int) -> list[int]:
    count = library.dds_get_children(reference, None, 0)
    if count <= 0:
        return []
    room = (ctypes.c_int32 * (count + 16))()  # another thread may make more between the two calls
    count = library.dds_get_children(reference, room, len(room))
    return list(room[: min(count, len(room))]) if count > 0 else []
