"""The director: applies schedules of faults to a world, line by line, and ends all faults before the recovery time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, assert_never

from qsctl.core.admin.command import MemberAction
from qsctl.core.queue.hosting import queue_identifier
from qsctl.core.settings import queues_of
from qsctl.errors import InvalidInput
from qsctl.identity import SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds, parse_duration
from qsctl.resource import ResourceIdentifier
from qsctl.sim.world._world import World
from qsctl.sim.world.environment.network import Conditions
from qsctl.sim.world.faults.schedule import Schedule, Step
from qsctl.sim.world.faults.vocabulary import (
    CONDITIONS,
    CRASHING,
    MASTER,
    NODES,
    PRODUCER,
    PROGRAM,
    SAMPLE,
    SERVICE,
    SERVICES,
    VERBS,
    Condition,
    CrashPoint,
    Forgery,
    Verb,
)
from qsctl.sim.world.invariants.base import Ledger
from qsctl.sim.world.invariants.samples import AnswersOfProducers
from qsctl.sim.world.services.service import SimulatedService

_NAMES_NODES: Final = (NODES, CRASHING, PROGRAM, PRODUCER, SAMPLE, SERVICE, SERVICES)


class _Reader:
    """The position in one schedule: the next line, and since when it has been waited for."""

    def __init__(self, schedule: Schedule) -> None:
        self.steps = schedule.steps
        self.position = 0
        self.is_timed = False
        """Whether the next line is scheduled for an instant that has not come."""
        self.awaited_since: Nanoseconds | None = None


class Director:
    """The application of schedules to one world.

    Args:
        world: the world.
        schedules: applied independently of each other, each in its own order.
        ledger: the records that each service has stored, for `await stored`.
        answers: the samples that were accepted and delivered, for `await accepted` and `await delivered`.

    Raises:
        InvalidInput: a schedule names a service, a program or a queue that the world does not have.
    """

    def __init__(
        self, world: World, schedules: Sequence[Schedule], ledger: Ledger, answers: AnswersOfProducers
    ) -> None:
        self._world = world
        self._ledger = ledger
        self._answers = answers
        self._readers = [_Reader(each) for each in schedules]
        self.awaits = False
        """Whether some line waits for a condition: `go_on` is then due after every step of the world."""
        self.unmet: list[str] = []
        """Lines whose condition was not met in time; the lines after them were not applied."""
        self.done_counts: dict[Verb, int] = {}
        self._calm = replace(world.network.conditions)  # a copy: what is done changes the other
        for schedule in schedules:
            for step in schedule.steps:
                self._check(step)
        world.agenda.at(world.load_until_ns, self._recover)

    def set_up(self) -> None:
        """Apply the lines before the first one with a condition or an instant; call it before the services start."""
        for reader in self._readers:
            while reader.position < len(reader.steps):
                step = reader.steps[reader.position]
                if step.verb is None or step.at_ns is not None or step.after_ns is not None:
                    break
                self._do(step.verb, step.arguments)
                reader.position += 1

    def go_on(self) -> None:
        """Apply every line that is due."""
        for reader in self._readers:
            while self._go_on(reader):
                pass
        self.awaits = self._world.now < self._world.load_until_ns and any(
            not each.is_timed and each.position < len(each.steps) for each in self._readers
        )

    def conclude(self) -> None:
        """Add to `unmet` the conditions that were still awaited when the faults ended."""
        for reader in self._readers:
            if reader.position < len(reader.steps) and reader.awaited_since is not None:
                self.unmet.append(reader.steps[reader.position].text)
                reader.position = len(reader.steps)

    def _go_on(self, reader: _Reader) -> bool:
        """Apply the next line if it is due; return whether it was applied."""
        if reader.position >= len(reader.steps) or self._world.now >= self._world.load_until_ns:
            return False
        step = reader.steps[reader.position]
        if reader.is_timed:
            return False
        due_ns = step.at_ns
        if step.after_ns is not None and reader.awaited_since is None:
            due_ns = self._world.now + step.after_ns
        if due_ns is not None and due_ns > self._world.now and reader.awaited_since is None:
            reader.is_timed = True
            self._world.agenda.at(due_ns, lambda: self._timed(reader, step))
            return False
        return self._do_line(reader, step)

    def _timed(self, reader: _Reader, step: Step) -> None:
        reader.is_timed = False
        self.awaits = True
        if self._world.now < self._world.load_until_ns and self._do_line(reader, step):
            self.go_on()

    def _do_line(self, reader: _Reader, step: Step) -> bool:
        if step.condition is not None:
            if reader.awaited_since is None:
                reader.awaited_since = self._world.now
                self._world.agenda.after(step.within_ns, self.go_on)
            if not self._holds(step.condition, step.arguments):
                if self._world.now - reader.awaited_since >= step.within_ns:
                    self.unmet.append(step.text)
                    reader.position = len(reader.steps)
                return False
        elif step.verb is not None:
            self._do(step.verb, step.arguments)
        reader.awaited_since = None
        reader.position += 1
        return True

    def _do(self, verb: Verb, arguments: tuple[str, ...]) -> None:
        world = self._world
        world.trace.note("do", str(verb), *arguments)
        self.done_counts[verb] = self.done_counts.get(verb, 0) + 1
        network = world.network
        match verb:
            case Verb.CRASH:
                self._crash(*arguments)
            case Verb.START:
                if arguments[0] in world.programs:
                    world.start_program(arguments[0])
                else:
                    self._service(arguments[0], SimulatedService.start)
            case Verb.POWER_CUT:
                for service in world.services.values():
                    service.end()
            case Verb.PAUSE:
                self._service(arguments[0], SimulatedService.pause)
            case Verb.RESUME:
                for service in world.services.values() if arguments[0] == MASTER else [self._numbered(arguments[0])]:
                    service.resume()
            case Verb.CUT:
                pairs = self._pairs(*arguments)
                network.block([*pairs, *((receiver, sender) for sender, receiver in pairs)])
            case Verb.CUT_ONE_WAY:
                network.block(self._pairs(*arguments))
            case Verb.CLOG:
                for sender, receiver in self._pairs(*arguments):
                    network.clog(sender, receiver)
            case Verb.HEAL:
                network.heal()
            case Verb.LOSS:
                network.conditions.loss = float(arguments[0])
            case Verb.DUPLICATION:
                network.conditions.duplication = float(arguments[0])
            case Verb.DELAY:
                low, high = sorted(parse_duration(each) for each in arguments)
                network.conditions.delay_min_ns, network.conditions.delay_max_ns = low, high
            case Verb.SLOW_DISK:
                self._service(arguments[0], lambda each: each.disk.slow_down(parse_duration(arguments[1])))
            case Verb.FILL_DISK:
                self._service(arguments[0], lambda each: each.disk.fill())
            case Verb.BREAK_DISK:
                self._service(arguments[0], lambda each: each.disk.refuse())
            case Verb.HANG_DISK:
                self._service(arguments[0], lambda each: each.disk.slow_down(INFINITE_NS))
            case Verb.FLIP_BIT:
                self._service(arguments[0], lambda each: world.trace.note("flipped", each.disk.flip_bit()))
            case Verb.LOSE_DISK:
                self._service(arguments[0], world.lose_disk)
            case Verb.NEW_DISK:
                self._service(
                    arguments[0], lambda each: world.lose_disk(each, is_known=not world.is_held_without(each))
                )
            case Verb.EMPTY_DISK:
                self._service(arguments[0], partial(world.lose_disk, is_known=False))
            case Verb.REPAIR_DISK:
                self._service(arguments[0], SimulatedService.repair_disk)
            case Verb.SKEW:
                self._service(arguments[0], lambda each: each.skew(_signed_duration(arguments[1])))
            case Verb.CLOCK_RATE:
                self._service(arguments[0], lambda each: each.run_clock(float(arguments[1])))
            case Verb.STOP:
                self._service(arguments[0], SimulatedService.leave)
            case Verb.JITTER:
                self._service(arguments[0], lambda each: setattr(each, "fixed_jitter", float(arguments[1])))
            case Verb.WRITE:
                world.write(arguments[0], int(arguments[1]) if len(arguments) > 1 else 1)
            case Verb.HOLD | Verb.GO_ON:
                world.programs[arguments[0]].hold(holds=verb is Verb.HOLD)
            case Verb.FLUSH:
                world.flush(self._queue(arguments[0]))
            case Verb.CREATE:
                world.create(arguments[0])
            case Verb.DELETE:
                world.delete(arguments[0])
            case Verb.HAND_OVER:
                self._service(arguments[0], SimulatedService.hand_over)
            case Verb.REPLACE:
                world.replace(arguments[0])
            case Verb.DESTROY:
                self._service(arguments[0], world.destroy)
            case Verb.MEMBER:
                self._service(arguments[1], partial(world.change_members, MemberAction(arguments[0])))
            case Verb.VERSION:
                self._service(arguments[0], lambda each: setattr(each, "version", int(arguments[1])))
            case Verb.STRANGER:
                self._service(arguments[1], partial(world.forge, Forgery(arguments[0])))
            case Verb.COMPACT:
                self._service(arguments[0], SimulatedService.compact_soon)
            case _:
                assert_never(verb)

    def _crash(self, node: str, point: str = "") -> None:
        if node in self._world.programs:
            self._world.end_program(node)
        elif point:
            self._service(node, lambda each: each.crash_when(CrashPoint(point)))
        else:
            self._service(node, SimulatedService.end)

    def _holds(self, condition: Condition, arguments: tuple[str, ...]) -> bool:
        world = self._world
        queues = self._deciding_queues()
        match condition:
            case Condition.MASTER:
                return all(self._numbered(arguments[0]).is_master(queue) for queue in queues)
            case Condition.NO_MASTER:
                return not any(world.has_master(queue) for queue in queues)
            case Condition.STORED:
                identity = self._identity(arguments[0])
                return all(self._ledger.is_held_at(int(each), identity) for each in arguments[1].split(","))
            case Condition.ACCEPTED:
                return self._identity(arguments[0]) in self._answers.accepted
            case Condition.DELIVERED:
                return self._identity(arguments[0]) in self._answers.delivered_identities
            case Condition.DOWN:
                return not self._numbered(arguments[0]).is_up
            case Condition.VOTERS:
                voters = {int(each) for each in arguments[0].split(",")}
                return all(world.voters(self._numbered(arguments[1]), queue) == voters for queue in queues)
            case Condition.REPLACED:
                return world.administrator.is_done(arguments[0])
            case Condition.VOTED:
                return self._numbered(arguments[0]).has_voted_for(int(arguments[1]))
            case _:
                assert_never(condition)

    def _recover(self) -> None:
        """End every fault, and start all services and programs: from now on everything must be delivered."""
        world = self._world
        world.trace.note("do", "recover")
        conditions = Conditions(self._calm.delay_min_ns, self._calm.delay_max_ns)
        world.network.conditions = conditions
        world.network.heal()
        for service in world.services.values():
            service.crash_no_more()
            service.run_clock(1.0)
            service.repair_disk()
            service.resume()
            if service.has_failed:
                service.end()
            service.start()
        for node, program in world.programs.items():
            world.start_program(node)
            program.recover()

    def _service(self, name: str, action: Callable[[SimulatedService], None]) -> None:
        """Apply an action to the service of this number or, for `master`, to the present master if there is one."""
        if name != MASTER:
            action(self._numbered(name))
            return
        queue = next(
            (each.full_name for each in self._world.queues if each.replicated), self._world.queues[0].full_name
        )
        masters = [each for each in self._world.services.values() if each.is_master(queue)]
        if masters:
            action(max(masters, key=lambda each: (each.epoch(queue), each.number)))

    def _deciding_queues(self) -> list[str]:
        """Return the full names of the queues that `master` refers to: the replicated ones, else the first queue."""
        queues = self._world.queues
        return [each.full_name for each in queues if each.replicated] or [queues[0].full_name]

    def _numbered(self, name: str) -> SimulatedService:
        return self._world.services[int(name)]

    def _nodes(self, text: str) -> list[str]:
        nodes = []
        for name in text.split(","):
            if name == MASTER:
                self._service(name, lambda each: nodes.append(str(each.number)))
            else:
                nodes.append(name)
        return nodes

    def _pairs(self, senders: str, receivers: str) -> list[tuple[str, str]]:
        return [(a, b) for a in self._nodes(senders) for b in self._nodes(receivers) if a != b]

    def _identity(self, sample: str) -> SampleIdentity:
        node, _, number = sample.partition(":")
        program = self._world.programs[node]
        return SampleIdentity(program.guid, int(number))

    def _queue(self, name: str) -> ResourceIdentifier:
        for participant, subscriber, queue in queues_of(self._world.services[1].settings):
            if queue.name == name:
                return queue_identifier(participant.name, subscriber.name, queue)
        raise KeyError(name)

    def _check(self, step: Step) -> None:
        """Raise InvalidInput for a line that names a node or a queue that the world does not have."""
        usage = VERBS[step.verb] if step.verb is not None else CONDITIONS[step.condition]  # type: ignore[index]
        known = {str(number) for number in self._world.services} | self._world.programs.keys() | {MASTER}
        for argument, text in zip(usage.arguments, step.arguments, strict=False):
            names = text.split(",") if argument in _NAMES_NODES else []
            for name in (each.partition(":")[0] for each in names):
                if name not in known:
                    raise InvalidInput(
                        f"the schedule's line {step.text!r} names {name!r}, which is not in this world",
                        remedy=f"There are the services 1 to {len(self._world.services)} and the programs "
                        f"{', '.join(self._world.programs)}.",
                    )
            if argument.name == "QUEUE" and text not in {each.name for each in self._world.queues}:
                raise InvalidInput(
                    f"the schedule's line {step.text!r} names {text!r}, which is not a queue of the service",
                    remedy=f"The queues are {', '.join(each.name for each in self._world.queues)}.",
                )


def _signed_duration(text: str) -> Nanoseconds:
    duration = parse_duration(text.removeprefix("-"))
    return -duration if text.startswith("-") else duration
