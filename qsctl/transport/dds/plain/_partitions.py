"""Partitions of a single reader: how a reader shows that data meant for one peer are for it alone.

Decides: which readers get a writer of their own, which are observers, and which are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.peers.discovery import RemoteEndpoint

_PATTERN: Final = frozenset("*?[")
_XCDR1: Final = 0
"""The number of representation XCDR1; a reader that names none reads it."""


def is_alone(endpoint: RemoteEndpoint, others: Iterable[RemoteEndpoint]) -> bool:
    """Return whether a reader is to have a writer of its own; one of a pattern looks on.

    Raises:
        Malformed: it is in no partition, in several, or in one that another reader is in.
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
    """Return whether a reader wants XCDR2; most read both, or XCDR1."""
    return bool(endpoint.representations) and _XCDR1 not in endpoint.representations
