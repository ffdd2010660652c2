"""The settings of a queue that can be changed without a restart, an extension: [QS 5.4] can only create and delete.

The field of each such setting is marked in its metadata. Other changes are refused, because something outside the queue
depends on the setting: the files of its samples, its endpoints, its clients, or the log of its replicas. The part that
obeys a setting decides the effect on held samples; none drops a sample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from qsctl.core.queue.settings import IN_PLACE, SharedReaderQueueSettings

_WHOLE: Final = frozenset({"qos"})
"""Fields with several members that are compared as one value."""

WITHOUT_LOSS: Final = (
    "Create a queue of another name with these settings, let its producers write there, move what is held, and delete "
    "the old one"
)
"""Remedy for a setting that cannot be changed in place: how to change it without losing samples."""


def differences(former: SharedReaderQueueSettings, wanted: SharedReaderQueueSettings) -> list[str]:
    """Return the dotted paths of the fields in which two settings differ, in the order of their declaration."""
    return list(_differences("", former, wanted))


def fixed_differences(former: SharedReaderQueueSettings, wanted: SharedReaderQueueSettings) -> list[str]:
    """Return the subset of `differences` that cannot be changed in place."""
    in_place = set(_in_place("", SharedReaderQueueSettings))
    return [path for path in differences(former, wanted) if path not in in_place]


def _in_place(prefix: str, settings: type) -> Iterator[str]:
    for field in dataclasses.fields(settings):
        path = f"{prefix}{field.name}"
        if field.metadata.get(IN_PLACE):
            yield path
        elif dataclasses.is_dataclass(field.default) and path not in _WHOLE:
            yield from _in_place(f"{path}.", type(field.default))


def _differences(prefix: str, former: Any, wanted: Any) -> Iterator[str]:
    for field in dataclasses.fields(former):
        path = f"{prefix}{field.name}"
        one, other = getattr(former, field.name), getattr(wanted, field.name)
        if one == other:
            continue
        if dataclasses.is_dataclass(one) and path not in _WHOLE:
            yield from _differences(f"{path}.", one, other)
        else:
            yield path
