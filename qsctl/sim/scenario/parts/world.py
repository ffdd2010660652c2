"""The simulated cluster of service instances, as part of a scenario, as frozen dataclasses [QS 7].

The load is the scenario's `<workload>`, the instances all have its service's configuration.
"""

from __future__ import annotations

from dataclasses import dataclass

from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds


@dataclass(frozen=True, slots=True)
class RandomFaults:
    """Faults that are drawn from the seed, until the time without faults."""

    every_ns: Nanoseconds = 400 * MILLISECOND_NS
    """The mean time between two."""
    crashes: float = 4.0
    """The weights of the kinds of faults; 0: never."""
    cuts: float = 4.0
    pauses: float = 2.0
    disks: float = 1.0
    lost_disks: float = 0.3
    clocks: float = 1.0
    programs: float = 1.5
    administration: float = 0.3
    power_cuts: float = 0.3
    replacements: float = 0.0
    """A queue is deleted and created again, with its clients at it."""
    majorities: float = 0.0
    """More than a minority loses its disks."""
    destroyed: float = 0.0
    """An instance is gone for good; one of a minority."""
    strangers: float = 0.0
    """Frames that no instance sent."""
    restarts: float = 0.0
    """The instances are restarted in turn, each after it has handed over."""


@dataclass(frozen=True, slots=True)
class WorldScenario:
    """A cluster and what happens to it."""

    instances: int = 0
    """Service instances; 0: `queue_instances` of them, one where no queue is replicated."""
    master_timeout_ns: Nanoseconds = 0
    """Of every replicated queue, in place of the service file's; 0: that of the file."""
    delay_variation_ns: Nanoseconds = 0
    """The workload's delay, and up to so much more: messages overtake each other."""
    loss: float = 0.0
    """The probability that the network loses a message; programs' connections send it again."""
    duplication: float = 0.0
    """The probability that a message between instances comes twice."""
    lease_ns: Nanoseconds = SECOND_NS
    """Time without messages after which an instance considers a program gone."""
    write_again_ns: Nanoseconds = 500 * MILLISECOND_NS
    """After so long without an answer, or after a refusal, a producer writes again."""
    persistence: float = 0.7
    """The probability that a producer writes a refused sample again."""
    relayed: float = 0.0
    """The share of the producers that write to one instance only, with DDS_REPLICATE_SAMPLE."""
    replicates_configuration: bool = False
    """Whether the instances replicate their configuration [QS 7.2]; administration creates and deletes queues then."""
    compact_records: int = 0
    """Number of records after which an instance compacts a stream; 0: never."""
    recovery_ns: Nanoseconds = 10 * SECOND_NS
    """The end of the run: no faults and no new samples; everything must be delivered."""
    schedule: str = ""
    """A file of faults, instead of random ones or beside them."""
    faults: RandomFaults | None = None
