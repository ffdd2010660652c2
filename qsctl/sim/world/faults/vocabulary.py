"""The words of a schedule: actions on a world, conditions to wait for, and the syntax of each argument.

A node is a service instance by its number, from 1; `master`, the present master when the line is reached; or a program:
`producer-1`, `consumer-1` and so on, in the order of the scenario. A sample is written `producer-1:7`: the seventh that
this producer wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.core.admin.command import MemberAction
from qsctl.core.high_availability.versions import EARLIEST, VERSION
from qsctl.errors import UsageError
from qsctl.instant import INFINITE_NS, parse_duration

MASTER: Final = "master"


class CrashPoint(StrEnum):
    """The point in its work at which a service loses its power."""

    BEFORE_SYNC = "before-sync"
    """Records are written and not synced: the crash keeps a prefix of them, or nothing."""
    AFTER_SYNC = "after-sync"
    """Records are durable, and no message that rests on them has been sent."""
    IN_WRITE = "in-write"
    """In the middle of writing files: some writes are complete, and one may be partial."""
    AFTER_VOTE = "after-vote"
    """The service's vote is durable and has been sent."""
    IN_ACKNOWLEDGMENT = "in-acknowledgment"
    """Some of the messages that may leave have been sent; the others never are."""
    ELECTED = "elected"
    """The service was elected master, and its first entry is durable at itself alone."""


class Verb(StrEnum):
    """An action that a schedule applies to a world."""

    CRASH = "crash"
    START = "start"
    POWER_CUT = "power-cut"
    PAUSE = "pause"
    RESUME = "resume"
    CUT = "cut"
    CUT_ONE_WAY = "cut-one-way"
    CLOG = "clog"
    HEAL = "heal"
    LOSS = "loss"
    DUPLICATION = "duplication"
    DELAY = "delay"
    SLOW_DISK = "slow-disk"
    FILL_DISK = "fill-disk"
    BREAK_DISK = "break-disk"
    HANG_DISK = "hang-disk"
    """Syncs never end until the disk is repaired."""
    FLIP_BIT = "flip-bit"
    """Flip one bit of the stored data of a service."""
    LOSE_DISK = "lose-disk"
    """A service's disk loses everything except the register of its files, so that the next start notices the loss."""
    NEW_DISK = "new-disk"
    """A service's disk loses everything, the register too, if a quorum of the others has a log: the service starts as
    if it were new.
    """
    EMPTY_DISK = "empty-disk"
    """The same, whichever services have a log: they must answer until the group has a master."""
    REPAIR_DISK = "repair-disk"
    SKEW = "skew"
    CLOCK_RATE = "clock-rate"
    """Run a service's clock at this rate."""
    STOP = "stop"
    """Stop a service in order, as SIGTERM does."""
    JITTER = "jitter"
    WRITE = "write"
    HOLD = "hold"
    GO_ON = "go-on"
    FLUSH = "flush"
    CREATE = "create"
    """Create a queue that no program uses, with settings that alternate from one command to the next."""
    DELETE = "delete"
    COMPACT = "compact"
    HAND_OVER = "hand-over"
    """Hand over a service's masterships to other members, as before it stops."""
    REPLACE = "replace"
    """Let the administrator delete a queue and create it again, together with the queues of its dead-letter group."""
    DESTROY = "destroy"
    """Lose a service and its disk for good."""
    MEMBER = "member"
    """Request a change of the members of all replicated queues, and of a replicated configuration."""
    VERSION = "version"
    """From its next start on, let a service exchange letters as one of this version."""
    STRANGER = "stranger"
    """Send a service forged frames, in the name of another member or in the receiver's own."""


class Forgery(StrEnum):
    """A kind of forged frame."""

    HEARTBEAT = "heartbeat"
    """Entries without records in the name of another member, as if it were master of the receiver's epoch."""
    TRIAL = "trial"
    """The trial of an election, in an epoch that no election ever reaches."""
    JUMP = "jump"
    """A confirmation in such an epoch."""
    OUTSIDER = "outsider"
    """A vote of a process that is not a member."""
    ANOTHER_GROUP = "another-group"
    """Entries of a master and the announcement of a candidate, both of another creation of the queue."""
    GARBAGE = "garbage"
    """Octets that are not a message, or a message with some octets changed."""
    NAMESAKE = "namesake"
    """Frames of a second process under the receiver's own name, with an empty disk."""


class Condition(StrEnum):
    """A condition that a schedule waits for."""

    MASTER = "master"
    """The service is master of every replicated queue."""
    NO_MASTER = "no-master"
    """No running service is master of any replicated queue."""
    STORED = "stored"
    """The sample is durable at each of the named services."""
    ACCEPTED = "accepted"
    """The sample's producer has received a positive acknowledgment."""
    DELIVERED = "delivered"
    """A consumer received the sample."""
    DOWN = "down"
    """The service does not run."""
    VOTED = "voted"
    """The first service's vote for the second is durable."""
    VOTERS = "voters"
    """The services that a service's log lists as voters of every replicated queue are these, durable or not."""
    REPLACED = "replaced"
    """The administrator has deleted the queue and created it again."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a word: its name, a description of the allowed texts, and a pattern or check of them."""

    name: str
    allowed: str
    pattern: re.Pattern[str] | None = None
    check: Callable[[str], bool] | None = None

    def accepts(self, text: str) -> bool:
        """Return whether a text is a valid value of the argument."""
        if self.pattern is not None and not self.pattern.fullmatch(text):
            return False
        return self.check is None or self.check(text)


def _is_finite_duration(text: str) -> bool:
    try:
        return parse_duration(text.removeprefix("-")) < INFINITE_NS
    except UsageError:
        return False


def _is_probability(text: str) -> bool:
    return 0.0 <= float(text) <= 1.0


def _is_rate(text: str) -> bool:
    return 0.5 <= float(text) <= 2.0


def _is_version(text: str) -> bool:
    return EARLIEST <= int(text) <= VERSION


_SERVICE: Final = r"[1-9]\d?|master"
_NODE: Final = rf"(?:{_SERVICE}|(?:producer|consumer)-[1-9]\d*)"
SERVICE: Final = Argument("SERVICE", "a service's number from 1, or master", re.compile(_SERVICE))
SERVICES: Final = Argument("SERVICES", "numbers of services, as in 1,2", re.compile(r"[1-9]\d?(?:,[1-9]\d?)*"))
NODES: Final = Argument("NODES", "services and programs, as in 1,2,producer-1", re.compile(rf"{_NODE}(?:,{_NODE})*"))
PROGRAM: Final = Argument("PROGRAM", "producer-1, consumer-2 and so on", re.compile(r"(?:producer|consumer)-[1-9]\d*"))
CRASHING: Final = Argument("NODE", "a service or a program", re.compile(_NODE))
PRODUCER: Final = Argument("PRODUCER", "producer-1 and so on", re.compile(r"producer-[1-9]\d*"))
SAMPLE: Final = Argument("SAMPLE", "producer-1:7, its seventh sample", re.compile(r"producer-[1-9]\d*:[1-9]\d*"))
POINT: Final = Argument("POINT", " or ".join(CrashPoint), re.compile("|".join(CrashPoint)))
FORGERY: Final = Argument("WHAT", " or ".join(Forgery), re.compile("|".join(Forgery)))
ACTION: Final = Argument("ACTION", " or ".join(MemberAction), re.compile("|".join(MemberAction)))
DURATION: Final = Argument("DURATION", "a finite duration, as in 250ms", None, _is_finite_duration)
NUMBER: Final = Argument("NUMBER", "a number from 0 to 1, as in 0.05", re.compile(r"\d(?:\.\d+)?"), _is_probability)
RATE: Final = Argument("RATE", "a rate from 0.5 to 2, as in 1.02", re.compile(r"[0-2](?:\.\d+)?"), _is_rate)
VERSION_NUMBER: Final = Argument("VERSION", f"from {EARLIEST} to {VERSION}", re.compile(r"\d{1,3}"), _is_version)
COUNT: Final = Argument("COUNT", "a whole number from 1", re.compile(r"[1-9]\d{0,5}"))
QUEUE: Final = Argument("QUEUE", "a queue's name", re.compile(r"\S+"))
NEW_QUEUE: Final = Argument("NAME", "a name, as in Extra-1", re.compile(r"[A-Za-z0-9_-]+"))


@dataclass(frozen=True, slots=True)
class Usage:
    """The arguments of a word: the first `required` are mandatory (-1: all); `between` is written before the second."""

    arguments: tuple[Argument, ...] = ()
    required: int = -1
    between: str = ""

    @property
    def required_count(self) -> int:
        """Return the number of mandatory arguments."""
        return len(self.arguments) if self.required < 0 else self.required

    @property
    def text(self) -> str:
        """Return the syntax of the arguments; optional ones are in brackets."""
        words = []
        for number, each in enumerate(self.arguments):
            name = f"{self.between} {each.name}" if self.between and number == 1 else each.name
            words.append(name if number < self.required_count else f"[{name}]")
        return " ".join(words)


VERBS: Final[dict[Verb, Usage]] = {
    Verb.CRASH: Usage((CRASHING, POINT), 1, "at"),
    Verb.START: Usage((CRASHING,)),
    Verb.POWER_CUT: Usage(),
    Verb.PAUSE: Usage((SERVICE,)),
    Verb.RESUME: Usage((SERVICE,)),
    Verb.CUT: Usage((NODES, NODES), between="|"),
    Verb.CUT_ONE_WAY: Usage((NODES, NODES), between=">"),
    Verb.CLOG: Usage((NODES, NODES), between=">"),
    Verb.HEAL: Usage(),
    Verb.LOSS: Usage((NUMBER,)),
    Verb.DUPLICATION: Usage((NUMBER,)),
    Verb.DELAY: Usage((DURATION, DURATION), between="to"),
    Verb.SLOW_DISK: Usage((SERVICE, DURATION)),
    Verb.FILL_DISK: Usage((SERVICE,)),
    Verb.BREAK_DISK: Usage((SERVICE,)),
    Verb.HANG_DISK: Usage((SERVICE,)),
    Verb.FLIP_BIT: Usage((SERVICE,)),
    Verb.LOSE_DISK: Usage((SERVICE,)),
    Verb.NEW_DISK: Usage((SERVICE,)),
    Verb.EMPTY_DISK: Usage((SERVICE,)),
    Verb.REPAIR_DISK: Usage((SERVICE,)),
    Verb.SKEW: Usage((SERVICE, DURATION)),
    Verb.CLOCK_RATE: Usage((SERVICE, RATE)),
    Verb.STOP: Usage((SERVICE,)),
    Verb.JITTER: Usage((SERVICE, NUMBER)),
    Verb.WRITE: Usage((PRODUCER, COUNT), 1),
    Verb.HOLD: Usage((PROGRAM,)),
    Verb.GO_ON: Usage((PROGRAM,)),
    Verb.FLUSH: Usage((QUEUE,)),
    Verb.CREATE: Usage((NEW_QUEUE,)),
    Verb.DELETE: Usage((NEW_QUEUE,)),
    Verb.COMPACT: Usage((SERVICE,)),
    Verb.HAND_OVER: Usage((SERVICE,)),
    Verb.REPLACE: Usage((QUEUE,)),
    Verb.DESTROY: Usage((SERVICE,)),
    Verb.MEMBER: Usage((ACTION, SERVICE)),
    Verb.VERSION: Usage((SERVICE, VERSION_NUMBER)),
    Verb.STRANGER: Usage((FORGERY, SERVICE), between="to"),
}

CONDITIONS: Final[dict[Condition, Usage]] = {
    Condition.MASTER: Usage((SERVICE,)),
    Condition.NO_MASTER: Usage(),
    Condition.STORED: Usage((SAMPLE, SERVICES), between="at"),
    Condition.ACCEPTED: Usage((SAMPLE,)),
    Condition.DELIVERED: Usage((SAMPLE,)),
    Condition.DOWN: Usage((SERVICE,)),
    Condition.VOTED: Usage((SERVICE, SERVICE), between="for"),
    Condition.VOTERS: Usage((SERVICES, SERVICE), between="at"),
    Condition.REPLACED: Usage((QUEUE,)),
}
