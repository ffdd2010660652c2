"""Partitions with a single reader, by which a reader requests data for itself alone.

Decides: which readers get a writer of their own, which are observers, and which are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.peers.discovery import RemoteEndpoint

_PATTERN: Final = frozenset("*?[")
_XCDR1: Final = 0
"""The identifier of the data representation XCDR1; a reader that announces none reads it."""


def is_alone(endpoint: RemoteEndpoint, others: Iterable[RemoteEndpoint]) -> bool:
    """Return whether a reader gets a writer of its own; a reader whose partition is a pattern is an observer.

    Raises:
        Malformed: it is in no partition, in several, or in that of another reader.
    """
    if any(_PATTERN & set(name) for name in endpoint.partitions):
        return False
    if len(endpoint.partitions) != 1 or not endpoint.partitions[0]:
        count = len([name for name in endpoint.partitions if name])
        raise Malformed(
            f"a reader of {endpoint.topic_name} is in {f'{count} partitions' if count else 'no partition'}; give its "
            "subscriber one, of a name that no other endpoint uses"
        )
    (partition,) = endpoint.partitions
    if any(partition in each.partitions and each.handle != endpoint.handle for each in others):
        raise Malformed(
            f"a reader of {endpoint.topic_name} is in partition {partition[:64]!r}, where another one is: both would "
            "get what is meant for one"
        )
    return True


def reads_xcdr2_only(endpoint: RemoteEndpoint) -> bool:
    """Return whether a reader accepts only XCDR2; most accept both, or XCDR1."""
    return bool(endpoint.representations) and _XCDR1 not in endpoint.representations
