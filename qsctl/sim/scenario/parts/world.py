"""The simulated cluster of service instances, as part of a scenario, as frozen dataclasses [QS 7].

The load is the scenario's `<workload>`; all instances have the configuration of its service.
"""

from __future__ import annotations

from dataclasses import dataclass

from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds


@dataclass(frozen=True, slots=True)
class RandomFaults:
    """Faults that are drawn from the seed, until the time without faults."""

    every_ns: Nanoseconds = 400 * MILLISECOND_NS
    """The mean time between two faults."""
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
    """A queue is deleted and created again while clients are connected to it."""
    majorities: float = 0.0
    """At least half of the instances lose their disks."""
    destroyed: float = 0.0
    """An instance is lost permanently; those lost are always a minority."""
    strangers: float = 0.0
    """Frames that no instance sent."""
    restarts: float = 0.0
    """The instances are restarted in turn, each after it has handed over."""
    upgrades: float = 0.0
    """The same, each with the replication messages of another version: an upgrade or a downgrade."""
    members: float = 0.0
    """Requests to add, promote and remove members of the replication groups."""
    elections: float = 0.0
    """The master is cut off or crashes, and each that is elected soon after it loses its power before its first entry
    is anywhere else.
    """


@dataclass(frozen=True, slots=True)
class WorldScenario:
    """A cluster of service instances, with the network's and programs' behaviour and the faults."""

    instances: int = 0
    """Number of service instances; 0: `queue_instances`, or one if no queue is replicated."""
    master_timeout_ns: Nanoseconds = 0
    """The master time-out of every replicated queue; 0: that of the service file."""
    delay_variation_ns: Nanoseconds = 0
    """Maximum random addition to the workload's network delay, so that messages overtake each other."""
    loss: float = 0.0
    """The probability that the network loses a message; programs' connections send it again."""
    duplication: float = 0.0
    """The probability that a message between instances is duplicated."""
    bandwidth_bits_per_second: int = 0
    """The bandwidth of each direction between two instances; 0: unlimited."""
    lease_ns: Nanoseconds = SECOND_NS
    """Time without messages after which an instance considers a program disconnected."""
    write_again_ns: Nanoseconds = 500 * MILLISECOND_NS
    """Time without an answer, or after a refusal, after which a producer writes a sample again."""
    persistence: float = 0.7
    """The probability that a producer writes a refused sample again."""
    relayed: float = 0.0
    """The share of the producers that write to one instance only, with DDS_REPLICATE_SAMPLE."""
    preferred_instance: int = 0
    """Number of the instance with a higher master priority than the others; 0: none."""
    witness_instance: int = 0
    """Number of the instance that an operator makes a witness of every replicated queue at the beginning; 0: none."""
    replicates_configuration: bool = False
    """Whether the instances replicate their configuration [QS 7.2]; administration creates and deletes queues then."""
    compact_records: int = 0
    """Number of records after which an instance compacts a stream; 0: never."""
    recovery_ns: Nanoseconds = 10 * SECOND_NS
    """The end of the run: no faults and no new samples; everything must be delivered."""
    schedule: str = ""
    """A file of scheduled faults, instead of random ones or in addition to them."""
    faults: RandomFaults | None = None
