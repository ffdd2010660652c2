"""Faults drawn from a seed, as a schedule, so that a failing history can be read, shortened and kept as text.

Unless the scenario asks for lost majorities, at most a minority of the services ever loses its disk, or its memory
where a replicated queue is volatile: losing more would lose accepted samples, by the rule of the quorum [QS 7.1.1.2].
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from qsctl.core.admin.command import MemberAction
from qsctl.core.high_availability.versions import EARLIEST, VERSION
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.sim.scenario.parts.world import RandomFaults
from qsctl.sim.world.faults.schedule import Schedule, Step
from qsctl.sim.world.faults.vocabulary import MASTER, CrashPoint, Forgery, Verb

_Timed = list[tuple[Nanoseconds, int, Step]]
SHORT_NS: Final[Nanoseconds] = 50 * MILLISECOND_NS
LONG_NS: Final[Nanoseconds] = 1_500 * MILLISECOND_NS
"""A fault lasts between SHORT_NS and LONG_NS."""

_CREATED: Final = ("Extra-1", "Extra-2")
"""Names of the queues that commands create and delete: few, so that commands contradict each other."""

_POINTS: Final = tuple(each for each in CrashPoint if each is not CrashPoint.ELECTED)
"""Points that a service reaches soon; that of its election is drawn for all services at once."""


class FaultGenerator:
    """A generator of the random faults of one world.

    Args:
        random: used for this purpose alone.
        declared: the weights of the kinds of faults, and their mean interval.
        service_count: number of services.
        programs: the names of the programs.
        queues: the names of the queues that may be flushed or replaced.
        is_volatile: whether a replicated queue is kept in memory alone.
        changes_configuration: whether administration creates and deletes queues, too.
        until_ns: end of the faults.
    """

    def __init__(
        self,
        random: Random,
        declared: RandomFaults,
        service_count: int,
        programs: list[str],
        queues: list[str],
        *,
        is_volatile: bool,
        changes_configuration: bool = False,
        until_ns: Nanoseconds,
    ) -> None:
        self._random = random
        self._declared = declared
        self._services = [str(number) for number in range(1, service_count + 1)]
        self._programs = programs
        self._queues = queues
        self._until_ns = until_ns
        self._minority = sorted(random.sample(self._services, (service_count - 1) // 2))
        self._crashable = self._minority if is_volatile else self._services
        self._is_volatile = is_volatile
        self._changes_configuration = changes_configuration
        self._timed: _Timed = []

    def schedule(self) -> Schedule:
        """Draw the faults and return them ordered by time."""
        kinds: list[tuple[float, Callable[[Nanoseconds], None]]] = [
            (self._declared.crashes, self._crash),
            (self._declared.cuts, self._cut),
            (self._declared.pauses, self._pause),
            (self._declared.disks, self._disk),
            (self._declared.lost_disks, self._lost_disk),
            (self._declared.clocks, self._clock),
            (self._declared.programs, self._program),
            (self._declared.administration, self._administration),
            (0.0 if self._is_volatile else self._declared.power_cuts, self._power_cut),
            (self._declared.replacements, self._replacement),
            (0.0 if self._is_volatile else self._declared.majorities, self._lost_majority),
            (self._declared.destroyed, self._destroy),
            (self._declared.strangers, self._stranger),
            (0.0 if self._is_volatile else self._declared.restarts, self._restart),
            (0.0 if self._is_volatile else self._declared.upgrades, self._upgrade),
            (self._declared.members, self._members),
            (0.0 if self._is_volatile else self._declared.elections, self._election),
        ]
        weights = [weight for weight, _ in kinds]
        now = self._gap()
        while now < self._until_ns and sum(weights) > 0:
            self._random.choices([draw for _, draw in kinds], weights)[0](now)
            now += self._gap()
        ordered = sorted(self._timed, key=lambda each: each[:2])
        return Schedule(tuple(step for _, _, step in ordered))

    def _gap(self) -> Nanoseconds:
        return max(1, int(self._random.expovariate(1.0) * self._declared.every_ns))

    def _lasts(self) -> Nanoseconds:
        return self._random.randint(SHORT_NS, LONG_NS)

    def _add(self, at_ns: Nanoseconds, verb: Verb, *arguments: str) -> None:
        at_ns -= at_ns % 1000  # readable
        self._timed.append((at_ns, len(self._timed), Step(verb, None, arguments, at_ns)))

    def _crash(self, now: Nanoseconds) -> None:
        if not self._crashable:
            return
        who = self._random.choice([*self._crashable, *(() if self._is_volatile else ("master", "master"))])
        point = self._random.choice(["", "", *_POINTS])
        self._add(now, Verb.CRASH, who, *([point] if point else []))
        back = now + self._lasts()
        for each in self._services if who == "master" else [who]:
            self._add(back, Verb.START, each)

    def _cut(self, now: Nanoseconds) -> None:
        kind = self._random.choice(
            ["halves", "halves", "master", "one-way", "clog", "flapping", "loss", "delay", "duplication"]
        )
        back = now + self._lasts()
        if kind == "halves":
            left, right = self._halves([*self._services, *self._programs])
            if left and right:
                self._add(now, Verb.CUT, ",".join(left), ",".join(right))
        elif kind == "master":
            self._add(now, Verb.CUT, "master", ",".join(self._services))
        elif kind == "loss":
            self._add(now, Verb.LOSS, f"{self._random.uniform(0.01, 0.4):.2f}")
            self._add(back, Verb.LOSS, "0.0")
        elif kind == "duplication":
            self._add(now, Verb.DUPLICATION, f"{self._random.uniform(0.05, 0.5):.2f}")
            self._add(back, Verb.DUPLICATION, "0.0")
        elif kind == "flapping":
            left, right = self._halves(self._services)
            for _ in range(self._random.randint(3, 8)) if left and right else ():
                self._add(now, Verb.CUT, ",".join(left), ",".join(right))
                self._add(now + self._random.randint(1, SHORT_NS), Verb.HEAL)
                now += self._random.randint(SHORT_NS, 4 * SHORT_NS)
        elif kind == "delay":
            self._add(now, Verb.DELAY, "50us", f"{self._random.randint(1, 150)}ms")
            self._add(back, Verb.DELAY, "50us", f"{self._random.randint(100, 3000)}us")
        else:
            left, right = self._halves(self._services)
            if left and right:
                verb = Verb.CUT_ONE_WAY if kind == "one-way" else Verb.CLOG
                self._add(now, verb, ",".join(left), ",".join(right))
        if kind in {"halves", "master", "one-way", "clog"}:
            self._add(back, Verb.HEAL)

    def _halves(self, nodes: list[str]) -> tuple[list[str], list[str]]:
        left = [node for node in nodes if self._random.random() < 0.5]
        return left, [node for node in nodes if node not in left]

    def _pause(self, now: Nanoseconds) -> None:
        who = self._random.choice([*self._services, "master"])
        self._add(now, Verb.PAUSE, who)
        self._add(now + self._lasts(), Verb.RESUME, who)

    def _disk(self, now: Nanoseconds) -> None:
        who = self._random.choice(self._services)
        chance = self._random.random()
        if chance < 0.35:
            slow_ms = self._random.choice([self._random.randint(5, 400), self._random.randint(400, 3000)])
            self._add(now, Verb.SLOW_DISK, who, f"{slow_ms}ms")
            self._add(now + self._lasts(), Verb.REPAIR_DISK, who)
        elif chance < 0.5 and not self._is_volatile:  # a process that waits for it for ever is killed in the end
            self._add(now, Verb.HANG_DISK, who)
            self._add(now + self._lasts(), Verb.REPAIR_DISK, who)
        elif who in self._crashable:
            self._add(now, self._random.choice([Verb.FILL_DISK, Verb.BREAK_DISK]), who)
            back = now + self._lasts()
            self._add(back, Verb.REPAIR_DISK, who)
            self._add(back, Verb.CRASH, who)
            self._add(back + SHORT_NS, Verb.START, who)
        if self._random.random() < 0.5:
            self._add(now + SHORT_NS, Verb.COMPACT, self._random.choice(self._services))

    def _lost_disk(self, now: Nanoseconds) -> None:
        if not self._minority:
            return
        who = self._random.choice(self._minority)
        verb = self._random.choice([Verb.LOSE_DISK, Verb.NEW_DISK, Verb.FLIP_BIT])
        if verb is Verb.FLIP_BIT:
            self._add(now, Verb.CRASH, who)
        self._add(now, verb, who)
        self._add(now + self._lasts(), Verb.START, who)

    def _replacement(self, now: Nanoseconds) -> None:
        """Replace a queue, usually while some services are crashed or paused."""
        if not self._queues:
            return
        if self._crashable and self._random.random() < 0.7:
            away = [each for each in self._services if each in self._crashable and self._random.random() < 0.4]
            how = self._random.choice([Verb.CRASH, Verb.CRASH, Verb.PAUSE])
            back = now + self._random.randint(LONG_NS, 2 * LONG_NS)
            for each in away:
                self._add(max(1, now - self._random.randint(0, SHORT_NS)), how, each)
                returned = back + self._random.randint(-SHORT_NS, SHORT_NS)
                self._add(returned, Verb.RESUME if how is Verb.PAUSE else Verb.START, each)
        self._add(now, Verb.REPLACE, self._random.choice(self._queues))

    def _lost_majority(self, now: Nanoseconds) -> None:
        """Lose more disks than a minority, but not all; usually followed by a power cut while the group forms again."""
        count = len(self._services)
        if count < 2:
            return
        lost = self._random.sample(self._services, self._random.randint(count - count // 2, count - 1))
        back = now + self._lasts()
        for each in lost:
            self._add(now + self._random.randint(0, SHORT_NS), Verb.LOSE_DISK, each)
            self._add(back + self._random.randint(0, SHORT_NS), Verb.START, each)
        if self._random.random() < 0.7:
            again = back + SHORT_NS + self._random.randint(0, LONG_NS)
            self._add(again, Verb.POWER_CUT)
            first = self._random.sample(self._services, count // 2 + 1)
            for each in self._services:
                away_ns = SHORT_NS if each in first else self._random.randint(SHORT_NS, 2 * LONG_NS)
                self._add(again + away_ns, Verb.START, each)

    def _destroy(self, now: Nanoseconds) -> None:
        """Destroy one service with its disk: the first of the minority that all lost disks are drawn from."""
        if self._minority:
            self._add(now, Verb.DESTROY, self._minority[0])

    def _stranger(self, now: Nanoseconds) -> None:
        for _ in range(self._random.randint(1, 3)):
            who = self._random.choice([*self._services, "master", "master"])
            self._add(now + self._random.randint(0, SHORT_NS), Verb.STRANGER, self._random.choice([*Forgery]), who)

    def _upgrade(self, now: Nanoseconds) -> None:
        """Restart the services with the replication messages of another version; sometimes not all of them."""
        version = self._random.choice([VERSION, self._random.randint(EARLIEST, VERSION)])
        count = self._random.choice([len(self._services), self._random.randint(1, len(self._services))])
        for each in self._services[:count]:
            self._add(now, Verb.VERSION, each, str(version))
        self._restart(now, count)

    def _members(self, now: Nanoseconds) -> None:
        """Request changes of the members; sometimes two parts are separated, and those of one part are removed."""
        left, right = self._halves(self._services)
        if left and right and self._random.random() < 0.4:
            self._add(now, Verb.CUT, ",".join(left), ",".join(right))
            for each in self._random.sample(right, min(len(right), 2)):
                self._add(now + self._random.randint(0, 2 * SHORT_NS), Verb.MEMBER, MemberAction.REMOVE, each)
            self._add(now + self._lasts(), Verb.HEAL)
            return
        for _ in range(self._random.randint(1, 4)):
            action = self._random.choice([*MemberAction])
            self._add(now + self._random.randint(0, LONG_NS), Verb.MEMBER, action, self._random.choice(self._services))

    def _election(self, now: Nanoseconds) -> None:
        """Take the master away while it has entries alone, and its successors as soon as they are elected."""
        if self._random.random() < 0.7:
            self._add(now, Verb.CUT, MASTER, ",".join(self._services))
        else:
            self._add(now, Verb.CRASH, MASTER)
        for each in self._services:
            self._add(now + 1000, Verb.CRASH, each, CrashPoint.ELECTED)
        slow = self._random.choice(self._services)
        self._add(now + 2000, Verb.SLOW_DISK, slow, f"{self._random.randint(10, 150)}ms")
        back = now + self._random.randint(4 * SHORT_NS, 10 * SHORT_NS)
        self._add(back, Verb.HEAL)
        for each in self._services:
            self._add(back + self._random.randint(0, 20 * SHORT_NS), Verb.START, each)
        self._add(back + 20 * SHORT_NS, Verb.REPAIR_DISK, slow)

    def _restart(self, now: Nanoseconds, count: int | None = None) -> None:
        """Restart the services one after another; each hands over its masterships first."""
        for each in self._services[:count]:
            self._add(now, Verb.HAND_OVER, each)
            self._add(now + SHORT_NS, self._random.choice([Verb.STOP, Verb.CRASH]), each)
            back = now + SHORT_NS + self._random.randint(SHORT_NS, 6 * SHORT_NS)
            self._add(back, Verb.START, each)
            now = back + self._random.randint(2 * SHORT_NS, 12 * SHORT_NS)

    def _clock(self, now: Nanoseconds) -> None:
        sign = self._random.choice(["", "-"])
        if self._random.random() < 0.4:
            rate = self._random.choice([0.9, 0.99, 1.001, 1.02, 1.1])
            self._add(now, Verb.CLOCK_RATE, self._random.choice(self._services), f"{rate}")
            return
        self._add(now, Verb.SKEW, self._random.choice(self._services), f"{sign}{self._random.randint(1, 3000)}ms")

    def _program(self, now: Nanoseconds) -> None:
        if not self._programs:
            return
        who = self._random.choice(self._programs)
        begin, end = (Verb.CRASH, Verb.START) if self._random.random() < 0.6 else (Verb.HOLD, Verb.GO_ON)
        self._add(now, begin, who)
        self._add(now + self._lasts(), end, who)

    def _administration(self, now: Nanoseconds) -> None:
        if self._changes_configuration and self._random.random() < 0.9:
            for _ in range(self._random.randint(1, 4)):  # several administrators, at the same time
                verb = self._random.choice([Verb.CREATE, Verb.CREATE, Verb.DELETE])
                self._add(now, verb, self._random.choice(_CREATED))
        elif self._queues:
            self._add(now, Verb.FLUSH, self._random.choice(self._queues))

    def _power_cut(self, now: Nanoseconds) -> None:
        self._add(now, Verb.POWER_CUT)
        back = now + self._lasts()
        for number, each in enumerate(self._services):
            self._add(back + number * self._random.randint(0, SHORT_NS), Verb.START, each)
