"""Which settings of a queue can be changed while it works: [QS 5.4] creates and deletes only, so this is an extension.

Decides: what is changed in place, and what is refused because something outside the queue rests on it: the files of its
samples, its endpoints, what its clients were told, the log of its replicas. What a change means for the samples that
are held is decided by the part that obeys the setting; none of them drops a sample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from qsctl.core.queue.settings import SharedReaderQueueSettings

IN_PLACE: Final = frozenset(
    {
        "distribution.unacked_threshold",
        "distribution.mark_last_undelivered_sample",
        "lifespan_ns",
        "redelivery.max_delivery_retries",
        "redelivery.response_timeout_ns",
        "limits.initial_count",
        "limits.incremental_count",
        "limits.max_count",
        "limits.max_in_memory_bytes",
        "limits.high_watermark_percent",
        "limits.low_watermark_percent",
        "limits.replacement",
        "limits.waiting_count_max",
    }
)
"""The fields that can be changed in place, with dots."""

_WHOLE: Final = frozenset({"qos"})
"""Fields that are compared as one value, besides the plain ones."""

WITHOUT_LOSS: Final = (
    "Create a queue of another name with these settings, let its producers write there, move what is held, and delete "
    "the old one"
)
"""How a setting that is not changed in place is changed without loss."""


def differences(former: SharedReaderQueueSettings, wanted: SharedReaderQueueSettings) -> list[str]:
    """Return the fields in which two settings differ, with dots, in the order of their declaration."""
    return list(_differences("", former, wanted))


def fixed_differences(former: SharedReaderQueueSettings, wanted: SharedReaderQueueSettings) -> list[str]:
    """Return those of `differences` that cannot be changed in place."""
    return [path for path in differences(former, wanted) if path not in IN_PLACE]


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
