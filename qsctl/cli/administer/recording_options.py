"""The options of a recording that `qsctl serve` and `qsctl record start` share, and the parsers of their texts."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.core.admin.command import StartRecording

LEVEL_HELP: Final = (
    "Detail of the recording: counters of queues; messages: a row a sample, with all that a replay needs; events: "
    "watermarks, full queues, late acknowledgments besides."
)
MAX_HELP: Final = "Size of the folder that ends the recording, in bytes or as in 500MB, 2GiB; 0: no limit."
SAMPLE_HELP: Final = (
    "Share of the samples that have rows, as 10% or 0.1, chosen by a hash of their identity; counters are of all."
)
MAX_DEFAULT: Final = "10GB"
SAMPLE_DEFAULT: Final = "100%"

_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:([kKMGT])(i?))?[bB]?")
_POWERS: Final = {"k": 1, "M": 2, "G": 3, "T": 4}


class RecordLevel(StrEnum):
    """The values of `eventlog.schema.LogLevel`, repeated here to save its import."""

    COUNTERS = "counters"
    MESSAGES = "messages"
    EVENTS = "events"


def start_command(folder: str | Path, level: RecordLevel, max_size: str, sample: str) -> StartRecording:
    """Return the command that starts a recording with these options.

    Raises:
        UsageError: a text is not a size, or not a fraction.
    """
    from qsctl.core.admin.command import StartRecording

    return StartRecording(str(folder), level.value, size_bytes(max_size), share(sample))


def size_bytes(text: str) -> int:
    """Return a size in bytes: a number with an optional unit, kB to TB in powers of 1000, KiB to TiB of 1024.

    Raises:
        UsageError: the text is not a size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a size", remedy="Write a number of bytes, or as in 500MB, 2GiB, 0.")
    number, unit, binary = found.groups()
    return round(float(number) * ((1024 if binary else 1000) ** _POWERS[unit.replace("K", "k")] if unit else 1))


def share(text: str) -> float:
    """Return a fraction above 0 and at most 1, which may also be written as a percentage.

    Raises:
        UsageError: the text is not such a fraction.
    """
    written = text.strip()
    try:
        value = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise UsageError(
            f"{text!r} is not a fraction of the samples", remedy="Write it as in 10% or 0.1: at most 100%."
        )
    return value
