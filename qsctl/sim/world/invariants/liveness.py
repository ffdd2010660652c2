"""P12: the state of a world at its end, after the recovery time without faults."""

from __future__ import annotations

from collections.abc import Callable

from qsctl.instant import Nanoseconds
from qsctl.sim.world._world import World
from qsctl.sim.world.invariants.base import Invariant


class QueuesDrain(Invariant):
    """P12: every queue has a master, every consumed queue is empty, and every producer has its answers."""

    name = "P12"
    rule = "once faults stop, a master is elected, all voters follow it, and the queues drain"

    def __init__(self, clock: Callable[[], Nanoseconds], world: World) -> None:
        super().__init__(clock)
        self._world = world

    def concluded(self) -> None:
        """Test that no queue holds samples, lacks a master or a voter, or owes a producer an answer."""
        world = self._world
        for queue in world.queues:
            self.checked_count += 1
            if not world.has_master(queue.full_name):
                self.violate(f"{queue.full_name} has no master")
            elif queue.full_name in world.consumed_queues:
                held_count = sum(name == queue.full_name for name, _ in world.held())
                if held_count:
                    self.violate(f"{queue.full_name} still holds {held_count} samples")
            self._check_voters(queue.full_name)
        if world.declared.replicates_configuration:
            self.checked_count += 1
            if not any(each.is_master_of_configuration for each in world.services.values()):
                self.violate("the configuration has no master")
        for producer in world.producers:
            if producer.open_count:
                self.violate(f"{producer.node} still waits for the answers to {producer.open_count} samples")

    def _check_voters(self, queue: str) -> None:
        """Test that each voter that runs has a vote again, and the same master as the others."""
        world = self._world
        replicas = {number: each.replica(queue) for number, each in world.services.items() if each.is_up}
        masters = [each for each in replicas.values() if each is not None and each.is_master]
        for master in masters:
            for number in sorted(world.numbers(master.members.voters) & replicas.keys()):
                replica = replicas[number]
                if replica is None or replica.master != master.name or replica.ballot.is_learner:
                    state = "no replica" if replica is None else f"{replica.role} of {replica.master or 'no master'}"
                    self.violate(f"{queue}: service {number} is {state}, and a voter of {master.name}'s")
