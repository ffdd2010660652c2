"""The type of a topic's samples if no file defines it: the one that its writers describe [QS 3.3.1].

Decides: which description counts. A writer that describes its type determines it for the topic, until no writer of that
type is left and another describes it differently. A writer without a description is matched by its type's name: the
service does not interpret samples, so their octets are sufficient. Both kinds may write at the same time, each to a
reader of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from qsctl.transport.dds.boundary import Boundary, Malformed
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.plain.type_lookups import DescribedType, Lookup, TypeLookups, class_by_name, has_key

REMEDY = "define it in <types>"


class _Described(NamedTuple):
    endpoint: RemoteEndpoint
    type: DescribedType


class SampleTypes:
    """The type of one topic's samples, from the descriptions of its writers and readers.

    Args:
        topic_name, type_name: the topic, and the name of the type in its queue's configuration.
        lookups: the source of descriptions.
        boundary: receives reports of refused and of adopted types.
    """

    def __init__(self, topic_name: str, type_name: str, lookups: Callable[[], TypeLookups], boundary: Boundary) -> None:
        self._topic_name = topic_name
        self._type_name = type_name
        self._lookups = lookups
        self._boundary = boundary
        self._pending: dict[int, tuple[RemoteEndpoint, Lookup]] = {}
        self._writers: dict[int, _Described] = {}
        """Writers that described their type under the right name, by handle, in the order of their descriptions."""
        self._by_name: dict[bool, type[Any]] = {}
        self.adopted: DescribedType | None = None
        """The described type in use by the readers of the topic; None: there is no description yet."""

    @property
    def is_looking_up(self) -> bool:
        """Return whether a description is awaited."""
        return bool(self._pending)

    def look_up(self, endpoint: RemoteEndpoint) -> None:
        """Begin to look up an endpoint's type description; `turn` returns the endpoint when it is done."""
        try:
            lookup = self._lookups().request(endpoint.key, is_writer=endpoint.is_writer)
        except Malformed as error:
            self.refuse(endpoint, str(error))
        else:
            self._pending[endpoint.handle] = endpoint, lookup

    def has_name(self, endpoint: RemoteEndpoint) -> bool:
        """Return whether an endpoint has the type that the queue names; report one that has another."""
        if endpoint.type_name.removeprefix("::") == self._type_name:
            return True
        self.refuse(endpoint, f"it is of type {endpoint.type_name[:255]!r}, the queue holds {self._type_name}")
        return False

    def refuse(self, endpoint: RemoteEndpoint, reason: str) -> None:
        """Report, once, an endpoint that is not matched."""
        what = "writer" if endpoint.is_writer else "reader"
        self._boundary.name_incompatible(self._topic_name, endpoint.key.hex(), f"{what} of samples: type: {reason}")

    def by_name(self, endpoint: RemoteEndpoint) -> type[Any]:
        """Return the class that matches an endpoint by its type's name; report its first use, with and without key."""
        keyed = has_key(endpoint.key)
        if keyed not in self._by_name:
            self._by_name[keyed] = class_by_name(self._type_name, keyed=keyed)
            what = "writer" if endpoint.is_writer else "reader"
            self._boundary.name_type(
                self._topic_name,
                endpoint.key.hex(),
                f"{self._type_name} by its name alone, for no file defines it and its {what} does not describe it; "
                f"samples pass as they are written; to see their members, {REMEDY}, or give --types to the command",
            )
        return self._by_name[keyed]

    def vanished(self, endpoint: RemoteEndpoint) -> None:
        """Forget an endpoint that is gone."""
        self._pending.pop(endpoint.handle, None)
        self._writers.pop(endpoint.handle, None)

    def turn(self) -> list[RemoteEndpoint]:
        """Return the endpoints whose type has become known; report those whose description is refused."""
        found: list[RemoteEndpoint] = []
        for handle, (endpoint, lookup) in list(self._pending.items()):
            if not lookup.is_done:
                continue
            del self._pending[handle]
            described = lookup.found
            if described is None or described.name != self._type_name:
                reason = lookup.refused or f"it is described as {described.name[:255] if described else ''}"
                self.refuse(endpoint, f"its description of {self._type_name} is not taken: {reason}; {REMEDY}")
                continue
            if endpoint.is_writer:
                self._writers[handle] = _Described(endpoint, described)
            if self.adopted is None:
                self._adopt(_Described(endpoint, described))
            found.append(endpoint)
        return found

    @property
    def is_outdated(self) -> bool:
        """Return whether all writers of the adopted type are gone, while another one describes the type differently."""
        if self.adopted is None or not self._writers:
            return False
        return all(each.type.identifier != self.adopted.identifier for each in self._writers.values())

    def adopt_next(self) -> tuple[RemoteEndpoint, DescribedType]:
        """Adopt the type that the first of the writers describes; return both."""
        described = next(iter(self._writers.values()))
        self._adopt(described)
        return described.endpoint, described.type

    def _adopt(self, described: _Described) -> None:
        self.adopted = described.type
        self._boundary.name_type(
            self._topic_name,
            described.endpoint.key.hex(),
            f"{self._type_name} as a {'writer' if described.endpoint.is_writer else 'reader'} of it describes it, "
            "for no file defines it",
        )
