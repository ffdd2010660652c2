"""A recording that is replayed, as part of a scenario, as frozen dataclasses.

The recorded data are in the run folder; here are the values that may be changed. Every queue of the service has an
element with all of its recorded values, so that each has a path: `queue[OrderQueue]/unacked-threshold`. The rows of
`qsctl.config.tables.queue` list its settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from qsctl.core.client.producer import WINDOW_COUNT
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings

AS_RECORDED = -1
"""A number of consumers: those that there were."""


@dataclass(frozen=True, slots=True)
class ReplayedQueue:
    """The settings of one queue that decide what becomes of its samples, and who consumes from it."""

    name: str
    """Its own name, or the full one where two are alike."""
    settings: SharedReaderQueueSettings = SharedReaderQueueSettings("", "")
    """Of which those count that `replay_forms.VARIED` names."""
    consumers: int = AS_RECORDED
    """More than there were: copies of them, in turn; fewer: those that joined last stay away."""
    service_factor: float = 1.0
    """Times what its consumers need for a sample: 2.0 for consumers half as fast."""


@dataclass(frozen=True, slots=True)
class AnotherRecording:
    """A recording beside the first, as of another day: the load of a replication of its own."""

    recording: str


@dataclass(frozen=True, slots=True)
class Replay:
    """A recording, and the service that it is replayed with; the values of `queues` come before the service's own."""

    recording: str
    service: ServiceSettings
    queues: tuple[ReplayedQueue, ...] = ()
    window_samples: int = WINDOW_COUNT
    """Writes that a producer leaves unanswered before it waits; -1: it never waits. A recording lacks it; a producer
    that left more unanswered, or waited with fewer, has its own.
    """
    resample_blocks: int = 20
    """Blocks that the load is cut into, to draw another one from: of every replication behind the recordings, whose
    loads are as recorded. 0: of none, so that these replications differ by what is modelled alone."""
    others: tuple[AnotherRecording, ...] = ()
    """Recordings of the same queues: replication n has the load of the n-th recording, the first included."""

    @property
    def recordings(self) -> tuple[str, ...]:
        """The folders of all recordings, in the order of the replications that have their loads."""
        return self.recording, *(each.recording for each in self.others)
