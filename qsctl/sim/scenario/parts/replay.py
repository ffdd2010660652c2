"""A recording that is replayed, as part of a scenario, as frozen dataclasses.

The run folder contains the recorded data; this module contains the values that may be changed. Every queue of the
service has an element with all of its recorded values, so that each has a path: `queue[OrderQueue]/unacked-threshold`.
The rows of `qsctl.config.tables.queue` list its settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from qsctl.core.client.producer import WINDOW_COUNT
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings

AS_RECORDED = -1
"""The number of consumers that means: as many as were recorded."""


@dataclass(frozen=True, slots=True)
class ReplayedQueue:
    """The settings of one queue that may differ from the recording: its limits and its consumers."""

    name: str
    """The queue's short name, or its full name if two queues share the short one."""
    settings: SharedReaderQueueSettings = SharedReaderQueueSettings("", "")
    """The queue's settings; only the fields listed in `forms.replay.VARIED` are used."""
    consumers: int = AS_RECORDED
    """Number of consumers: additional ones copy the recorded ones in turn; fewer omit those that joined last."""
    service_factor: float = 1.0
    """Factor of the consumers' recorded service times: 2.0 for consumers half as fast."""


@dataclass(frozen=True, slots=True)
class AnotherRecording:
    """A further recording, for example of another day, which is the load of one replication."""

    recording: str


@dataclass(frozen=True, slots=True)
class Replay:
    """A recording, and the service that it is replayed with; the values of `queues` override those of the service."""

    recording: str
    service: ServiceSettings
    queues: tuple[ReplayedQueue, ...] = ()
    window_samples: int = WINDOW_COUNT
    """Maximum number of unanswered writes of a producer before it waits; -1: it never waits. A recording lacks it; a
    producer whose recorded writes contradict it has a limit of its own.
    """
    resample_blocks: int = 20
    """Number of blocks for the block bootstrap of the load. Replications beyond the number of recordings draw their
    load from these blocks. 0: they use a recorded load, and differ in their modelled random values only."""
    others: tuple[AnotherRecording, ...] = ()
    """Recordings of the same queues: replication n has the load of the n-th recording, the first included."""

    @property
    def recordings(self) -> tuple[str, ...]:
        """The folders of all recordings, in the order of the replications that use them."""
        return self.recording, *(each.recording for each in self.others)
