"""Serialized samples in and out of Cyclone DDS, without Python objects between: 1 µs a sample instead of 10 to 20.

Decides: which functions of the binding carry bytes, and which of its others need a lock. The former are private to it,
so this is the only module that calls them; `uses_raw_functions` tries them once at start-up, and without them the
binding's own classes are used.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import threading
from collections.abc import Callable
from typing import Any, Final

from cyclonedds.core import DDSException, DDSStatus, Entity, InstanceState, SampleState, ViewState
from cyclonedds.idl import IdlStruct
from cyclonedds.internal import DDS
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader

from qsctl.transport.dds.wire.wire_types import WireAcknowledgmentFrame, WireFrame

TAKE_COUNT: Final = 256
"""Samples taken at once; the rest stays for the next turn."""

DDS_TIMEOUT: Final = -10
"""`DDS_RETCODE_TIMEOUT`: the writer's cache is full and its reliability may not block."""

ONE_THREAD_AT_A_TIME: Final = threading.Lock()
"""Lock held while the binding creates a topic, or decodes an endpoint's announcement. It does both in places that all
threads share and without a lock: a type described by two at once matches no peer, and one thread's endpoint receives
the data of another's.
"""

_ANY: Final = SampleState.Any | ViewState.Any | InstanceState.Any
_ALIGNMENT_BYTES: Final = 4
_MATCHED: Final = int(DDSStatus.PublicationMatched)


@functools.cache
def uses_raw_functions() -> bool:
    """Return whether the binding's byte functions exist here and the layout is the one we pack by hand."""
    layer = _private_layer()
    if layer is None or not all(callable(getattr(layer, name, None)) for name in ("ddspy_write", "ddspy_take")):
        return False
    return _layout_is_ours()


@functools.cache
def batching_functions() -> tuple[Callable[[bool], None], Callable[[int], int]] | None:
    """Return `dds_write_set_batch` and `dds_write_flush`; None where the library lacks them."""
    library = getattr(DDS, "_dll_handle", None)
    set_batch = getattr(library, "dds_write_set_batch", None)
    flush = getattr(library, "dds_write_flush", None)
    if set_batch is None or flush is None:
        return None
    set_batch.argtypes = [ctypes.c_bool]
    set_batch.restype = None
    flush.argtypes = [ctypes.c_int32]
    flush.restype = ctypes.c_int32
    return set_batch, flush


@functools.cache
def _matching_functions() -> Any:
    """Return the library, whose functions for a writer's matched readers have their argument types set."""
    library = ctypes.CDLL(DDS._dll_handle._name)  # a handle of its own, see `announcements`
    library.dds_get_status_changes.argtypes = [ctypes.c_int32, ctypes.c_void_p]
    library.dds_get_matched_subscriptions.argtypes = [ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t]
    for function in (library.dds_get_status_changes, library.dds_get_matched_subscriptions):
        function.restype = ctypes.c_int32
    return library


def _private_layer() -> Any:
    try:
        return importlib.import_module("cyclonedds._clayer")
    except ImportError:
        return None


def _layout_is_ours() -> bool:
    from qsctl.transport.dds.wire import frames

    packed_samples, packed_answers = frames.example_frames()
    return (
        bytes(WireFrame.deserialize(packed_samples).serialize(use_version_2=False)) == packed_samples
        and bytes(WireAcknowledgmentFrame.deserialize(packed_answers).serialize(use_version_2=False)) == packed_answers
    )


class RawWriter:
    """A writer of serialized samples in XCDR1, encapsulation header included.

    `write` returns False when the writer's cache is full: the caller keeps the bytes and tries again. With write
    batching, samples are certain to be sent only after `flush`.
    """

    def __init__(self, writer: DataWriter[Any]) -> None:
        self.writer: DataWriter[Any] | None = writer
        self.reference: int = writer._ref
        layer = _private_layer() if uses_raw_functions() else None
        self._write: Callable[[int, bytes], int] | None = layer.ddspy_write if layer is not None else None
        batching = batching_functions()
        self._flush = batching[1] if batching else None
        self._type: type[IdlStruct] = writer.data_type
        self._library = _matching_functions()
        self._changes = ctypes.c_uint32()
        self._changes_at = ctypes.byref(self._changes)

    def write(self, serialized: bytes) -> bool:
        """Write one sample.

        Raises:
            DDSException: anything but a full cache.
        """
        assert self.writer is not None
        if self._write is None:
            try:
                self.writer.write(self._type.deserialize(serialized))
            except DDSException as error:
                if error.code == DDS_TIMEOUT:
                    return False
                raise
            return True
        rest = len(serialized) % _ALIGNMENT_BYTES
        code = self._write(self.reference, serialized + bytes(_ALIGNMENT_BYTES - rest) if rest else serialized)
        if code >= 0:
            return True
        if code == DDS_TIMEOUT:
            return False
        raise DDSException(code, f"while writing {len(serialized)} octets")

    def flush(self) -> None:
        """Send what batching holds back."""
        if self._flush is not None:
            self._flush(self.reference)

    def matched_count(self) -> int:
        """Return how many readers are matched now."""
        writer: Any = self.writer
        return int(writer.get_publication_matched_status().current_count)

    def matched_handles(self) -> frozenset[int]:
        """Return the instance handles of the matched readers, by which the builtin topic of subscriptions identifies
        them.
        """
        room = self.matched_count()
        while room:
            handles = (ctypes.c_uint64 * room)()
            count = self._library.dds_get_matched_subscriptions(self.reference, handles, room)
            if count <= room:
                return frozenset(handles[: max(0, count)])
            room = count  # a reader came in between
        return frozenset()

    def has_lost(self, handle: int) -> bool:
        """Return whether a reader that was matched no longer is; cheap while no reader matches or leaves.

        The library itself notices that a reader left, and from then on sends it nothing.
        """
        self._library.dds_get_status_changes(self.reference, self._changes_at)
        return bool(self._changes.value & _MATCHED) and handle not in self.matched_handles()

    def close(self) -> None:
        """Delete the writer."""
        close_entity(self.release())

    def release(self) -> DataWriter[Any] | None:
        """Return the DDS writer so that its owner can delete it; nothing can be written any more."""
        writer, self.writer = self.writer, None
        return writer


class RawReader:
    """A reader that returns serialized samples, encapsulation header included; samples without data are left out."""

    def __init__(self, reader: DataReader[Any]) -> None:
        self.reader: DataReader[Any] | None = reader
        self.reference: int = reader._ref
        layer = _private_layer() if uses_raw_functions() else None
        self._take: Callable[[int, int, int], Any] | None = layer.ddspy_take if layer is not None else None

    def take(self, count: int = TAKE_COUNT) -> list[bytes]:
        """Return at most `count` samples, in order, and remove them from the reader; do not wait for any.

        Raises:
            DDSException: the reader is gone.
        """
        return [data for data, _ in self.take_with_info(count)]

    def take_with_info(self, count: int = TAKE_COUNT) -> list[tuple[bytes, Any]]:
        """Return samples as `take` does, each with the binding's `SampleInfo`, which has the handle of its writer.

        Raises:
            DDSException: the reader is gone.
        """
        assert self.reader is not None
        if self._take is None:
            samples: list[Any] = self.reader.take(count)
            return [
                (bytes(each.serialize(use_version_2=False)), each.sample_info)
                for each in samples
                if each.sample_info.valid_data
            ]
        taken = self._take(self.reference, _ANY, count)
        if isinstance(taken, int):
            raise DDSException(taken, "while taking samples")
        return [each for each in taken if each[1].valid_data]

    def close(self) -> None:
        """Delete the reader."""
        close_entity(self.reader)
        self.reader = None


def close_entity(entity: Entity | None) -> None:
    """Delete a DDS entity now, not when Python happens to collect it."""
    if entity is not None:
        entity.__del__()
