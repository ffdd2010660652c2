"""The look-up of types that peers describe, in a thread of its own, so that the service's loop does not wait.

Decides: the time that a peer has to describe its type, and the number of concurrent look-ups. `_sample_types` decides
which type is adopted for a queue.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cyclonedds import _clayer as layer
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription
from cyclonedds.idl import make_idl_struct

from qsctl.config.sample_types.type_model import Definition
from qsctl.config.sample_types.type_names import checked_identifier
from qsctl.config.sample_types.types import TypeLibrary
from qsctl.errors import QsctlError
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import Malformed, decoded
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.type_definitions import definitions_of
from qsctl.transport.dds.peers.type_outlines import Fetch, NotYet, fetch_from
from qsctl.transport.dds.wire.raw import ONE_THREAD_AT_A_TIME, close_entity

DESCRIBED_WITHIN_NS: Final[Nanoseconds] = 10 * SECOND_NS
"""Time within which a peer must have described its type; then it is reported."""

LOOKUPS_MAX: Final = 64
"""Maximum number of concurrent look-ups; a further writer is reported."""

TYPES_KEPT_MAX: Final = 256
_PAUSE_S: Final = 0.05
_WRITERS_WITH_KEY: Final = frozenset((0x02, 0xC2))
_READERS_WITH_KEY: Final = frozenset((0x07, 0xC7))


class DescribedType(NamedTuple):
    """A type as a peer describes it: its identifier, its definitions, and the binding's class."""

    identifier: bytes
    name: str
    definitions: Mapping[str, Definition]
    data_type: type[Any]

    @property
    def has_key(self) -> bool:
        """Return whether the type has a key, so that its samples belong to instances."""
        return not self.data_type.__idl__.keyless


class Lookup:
    """One look-up; `found` or `refused` is set once it is done."""

    def __init__(self, key: bytes, *, is_writer: bool) -> None:
        self.key = key
        self.is_writer = is_writer
        self.found: DescribedType | None = None
        self.refused: str | None = None
        self.identifier: bytes | None = None
        self.due_at: Nanoseconds = time.monotonic_ns() + DESCRIBED_WITHIN_NS

    @property
    def is_done(self) -> bool:
        """Return whether it is done."""
        return self.found is not None or self.refused is not None


class TypeLookups:
    """The look-ups in one domain.

    Args:
        participant: discovers the peers and requests their descriptions.
        fetch: returns descriptions by identifier; by default those that the participant's peers send.
    """

    def __init__(self, participant: Participant, fetch: Fetch | None = None) -> None:
        self._participant = participant
        self._fetch = fetch
        self._lock = threading.Lock()
        self._pending: list[Lookup] = []
        self._kept: OrderedDict[bytes, DescribedType | str] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def request(self, key: bytes, *, is_writer: bool) -> Lookup:
        """Begin to look up the type of an endpoint by its key; the participant's waiter is woken when it is done.

        Raises:
            Malformed: too many look-ups are in progress.
        """
        lookup = Lookup(key, is_writer=is_writer)
        with self._lock:
            if len(self._pending) >= LOOKUPS_MAX:
                raise Malformed(f"its type is not looked up: {LOOKUPS_MAX} other types are being looked up")
            self._pending.append(lookup)
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._work, name="qsctl-types", daemon=True)
                self._thread.start()
        return lookup

    def close(self) -> None:
        """Stop all look-ups."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        try:
            self._look_up_all()
        except BaseException as error:
            with self._lock:
                self._thread = None
                for each in self._pending:
                    each.refused = f"{type(error).__name__}: {error}"
            raise

    def _look_up_all(self) -> None:
        while True:
            with self._lock:
                self._pending = [each for each in self._pending if not each.is_done]
                pending = list(self._pending)
                if not pending or self._is_closed:
                    self._thread = None
                    return
            self._identify([each for each in pending if each.identifier is None])
            for each in pending:
                self._look_up(each)
            if any(each.is_done for each in pending):
                self._participant.waiter.wake()
            else:
                time.sleep(_PAUSE_S)

    def _identify(self, lookups: list[Lookup]) -> None:
        """Read the identifiers of endpoints' types from their discovery data."""
        for is_writer, topic in ((True, BuiltinTopicDcpsPublication), (False, BuiltinTopicDcpsSubscription)):
            wanted = {each.key: each for each in lookups if each.is_writer is is_writer}
            if not wanted or self._participant.entity is None:
                continue
            with ONE_THREAD_AT_A_TIME:
                reader = BuiltinDataReader(self._participant.entity, topic)
            try:
                while wanted and not self._is_closed:
                    try:
                        with ONE_THREAD_AT_A_TIME:
                            taken: Any = decoded(_take_one, reader._ref)
                    except Malformed:
                        continue  # another endpoint's: discovery reports it
                    if not isinstance(taken, list) or not taken:
                        break
                    key, identifier = taken[0]
                    lookup = wanted.pop(key, None)
                    if lookup is not None:
                        lookup.identifier = identifier
                        if identifier is None:
                            lookup.refused = "its type is not described"
            finally:
                close_entity(reader)
            for each in wanted.values():
                each.refused = "it left before its type could be looked up"

    def _look_up(self, lookup: Lookup) -> None:
        identifier = lookup.identifier
        if identifier is None or lookup.is_done:
            return
        known = self._kept.get(identifier)
        if known is None:
            try:
                known = self._described(identifier)
            except NotYet:
                if time.monotonic_ns() >= lookup.due_at:
                    seconds = DESCRIBED_WITHIN_NS // SECOND_NS
                    lookup.refused = f"the description of its type did not arrive within {seconds} s"
                return
            except (Malformed, QsctlError) as error:
                known = error.message if isinstance(error, QsctlError) else str(error)
            self._kept[identifier] = known
            if len(self._kept) > TYPES_KEPT_MAX:
                self._kept.popitem(last=False)
        if isinstance(known, str):
            lookup.refused = known
        else:
            lookup.found = known

    def _described(self, identifier: bytes) -> DescribedType:
        """Return a type whose descriptions have all arrived.

        Raises:
            NotYet: some have not arrived.
            Malformed, QsctlError: they are refused.
        """
        name, definitions = definitions_of(identifier, self._one_at_a_time)
        data_type = TypeLibrary(definitions).class_of(name)
        with ONE_THREAD_AT_A_TIME:
            decoded(_fill, data_type)
        return DescribedType(identifier, name, definitions, data_type)

    def _one_at_a_time(self, identifier: bytes) -> bytes | None:
        if self._fetch is None:
            assert self._participant.entity is not None
            self._fetch = fetch_from(self._participant.entity._ref)
        with ONE_THREAD_AT_A_TIME:
            return self._fetch(identifier)


def _fill(data_type: Any) -> None:
    """Prepare a class's type information in advance, which takes the binding milliseconds at a topic's creation."""
    data_type.__idl__.populate()
    data_type.__idl__.fill_type_data()


def _take_one(reference: int) -> Any:
    return layer.ddspy_take_endpoint(reference, 1, _key_and_identifier, _no_policies)


def _key_and_identifier(key: bytes, *said: Any) -> tuple[bytes, bytes | None]:
    identifier = said[-1]
    return bytes(key), None if identifier is None else bytes(identifier)


def _no_policies(_pointer: int) -> None:
    return None


def has_key(key: bytes) -> bool:
    """Return whether an endpoint's type has a key, which is encoded in its GUID [RTPS 9.3.1.2]."""
    return key[-1] in _WRITERS_WITH_KEY or key[-1] in _READERS_WITH_KEY


def class_by_name(type_name: str, *, keyed: bool) -> type[Any]:
    """Return a class that matches, by its name alone, endpoints whose type is not described [XTYPES 7.6.3.7].

    It has no members, or a key without content, so that the library finds nothing to refuse in a sample: its octets
    arrive as they were written, whatever the type's extensibility and representation are.

    Raises:
        Refused: the name is not valid for a type.
    """
    parts = [checked_identifier(part) for part in type_name.split("::")]
    empty: Any = make_idl_struct("NoContent", "qsctl.NoContent", {})
    empty.__idl_annotations__["extensibility"] = "final"
    made: Any = make_idl_struct(
        "_".join(parts),
        ".".join(parts),
        {"none": empty} if keyed else {},
        field_annotations={"none": {"key": True}} if keyed else {},
    )
    made.__idl_annotations__["extensibility"] = "final"
    data_type: type[Any] = made
    return data_type
