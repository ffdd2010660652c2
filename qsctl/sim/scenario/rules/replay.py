"""Rules for a replay across its elements: its recording exists, and the service contains its queues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qsctl.core.settings import ServiceSettings, queues_by_name
from qsctl.errors import QsctlError
from qsctl.eventlog.location import location
from qsctl.eventlog.run_folder import RunInfo, read_run_info
from qsctl.sim.scenario.parts.replay import AnotherRecording, Replay
from qsctl.sim.scenario.places import Breach

ARRIVALS: Final = "arrivals/"
"""Prefix of the names of the parts that a replay requires."""


def short_names(service: ServiceSettings) -> dict[str, str]:
    """Return each queue's full name by its name in a `<queue>`: the short name, or the full one if two share it."""
    full = list(queues_by_name(service))
    own = [name.rpartition("/")[2] for name in full]
    return dict(zip(own if len(set(own)) == len(own) else full, full, strict=True))


def has_arrivals(info: RunInfo) -> bool:
    """Return whether a run folder contains recorded arrivals, which a replay needs."""
    return any(name.startswith(ARRIVALS) and file.rows for name, file in info.files.items())


def replay_breaches(replay: Replay) -> Iterator[Breach]:
    """Yield every violation of a rule by a replay."""
    yield from _recording_breaches(replay)
    names = short_names(replay.service)
    for queue in replay.queues:
        if queue.name not in names:
            yield Breach(
                queue, f"there is no queue {queue.name!r}", queue.name, ", ".join(names) or "the service has no queue"
            )
        if sum(each.name == queue.name for each in replay.queues) > 1:
            yield Breach(queue, f"a second <queue> for {queue.name!r}", queue.name, "one <queue> for each queue")
    if not names:
        yield Breach(replay, "the service has no queue", replay.service.application_name, "at least one queue")


def _recording_breaches(replay: Replay) -> Iterator[Breach]:
    first: dict[str, str] = {}
    """By what a recording holds: the folder that was named first."""
    each_of: tuple[Replay | AnotherRecording, ...] = (replay, *replay.others)
    for named in each_of:
        try:
            info = read_run_info(location(named.recording))
        except QsctlError as error:
            yield Breach(named, error.message, named.recording, "the folder of a recording")
            continue
        if not has_arrivals(info):
            yield Breach(
                named,
                f"{named.recording} holds no arrivals: nothing can be replayed (model {info.model}, log level "
                f"{info.log_level})",
                named.recording,
                "a recording of a queuing service at level messages or events",
            )
        elif info.fingerprint in first:
            # What is stated of many days would rest on one.
            yield Breach(
                named,
                f"{named.recording} holds the same as {first[info.fingerprint]}",
                named.recording,
                "each recording once",
            )
        elif info.fingerprint:
            first[info.fingerprint] = named.recording
