"""The settings of `Service.create_queue`, named as the options of `qsctl create-queue`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Literal, TypedDict, get_args, get_origin

from typer.models import OptionInfo

from qsctl.errors import UsageError


class QueueSettingOptions(TypedDict, total=False):
    """Keyword arguments of a new queue; omitted ones have the defaults of `qsctl create-queue --help`.

    Durations are texts such as `30s`.
    """

    session: str
    """Session of the shared subscriber that serves the queue."""
    dead_letter: str
    """Name of the subscriber's dead-letter queue."""
    topic: str
    """Topic that producers write."""
    type: str
    """Type of the samples."""
    reply_type: str
    """Type of the replies; naming one creates a reply queue."""
    unacked_threshold: int
    """Threshold of outstanding samples below which a consumer is sent more; -1: unlimited."""
    consumer_feedback: bool
    """True: samples are sent only to consumers that announce their availability."""
    lifespan: str
    """Longest time of a sample in the queue."""
    persistent: bool
    """True: samples are stored on disk and kept across restarts."""
    max_delivery_retries: int
    """Deliveries of a sample after the first one."""
    response_timeout: str
    """Longest wait for an acknowledgment."""
    max_count: int
    """Largest number of samples in the queue."""
    max_bytes: int
    """Largest total size of the samples in memory, in bytes."""
    max_sample_bytes: int
    """Largest size of a serialized sample, in bytes."""
    high_watermark: int
    """High-water mark: fill level in percent of the limits, above which it counts as exceeded."""
    low_watermark: int
    """Low-water mark: fill level in percent of the limits, below which it counts as reached."""
    when_full: Literal["reject", "wait"]
    """Policy of a full queue."""
    as_dead_letter: bool
    """True: the queue is the subscriber's dead-letter queue."""


def check_settings(settings: Mapping[str, object]) -> None:
    """Validate settings as the options of `qsctl create-queue` are validated.

    Raises:
        UsageError: a setting does not exist, or a value has another type or is out of range.
    """
    from qsctl.cli.administer.queue_options import QueueOptions

    known = {each.name: each for each in QueueOptions.parameters()}
    for name, value in settings.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 3) or sorted(known)
            raise UsageError(f"a queue has no setting {name!r}", remedy=f"Use one of {', '.join(near)}.")
        kind, info = get_args(known[name].annotation)
        assert isinstance(info, OptionInfo)
        _check(name, value, tuple(each for each in get_args(kind) if each is not type(None)) or (kind,), info)


def _check(name: str, value: object, kinds: tuple[object, ...], info: OptionInfo) -> None:
    if value is None:
        return
    allowed = get_args(kinds[0]) if get_origin(kinds[0]) is Literal else ()
    if allowed and value not in allowed:
        raise UsageError(f"{name} is {value!r}", remedy=f"Give one of {', '.join(map(repr, allowed))}.")
    kind = str if allowed else kinds[0]
    assert isinstance(kind, type)
    if type(value) is not kind:
        raise UsageError(f"{name} is {value!r}", remedy=f"Give a value of {kind.__name__}.")
    if isinstance(value, int) and kind is int:
        low, high = info.min, info.max
        if (low is not None and value < low) or (high is not None and value > high):
            raise UsageError(f"{name} is {value}", remedy=f"Give a number from {low} to {high}.")
