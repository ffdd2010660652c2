"""The rules of replication by their numbers, and which of them each mutant breaks.

A mutant is a replica or a driver that is broken on purpose; `breaks` states the rules, and `files_broken` finds the
files that it differs in. Its tests hold that every rule and every file is broken by some mutant.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import pytest

Mutant = Callable[[pytest.MonkeyPatch], None]

RULES: Final[dict[int, str]] = {
    1: "entries, epoch and vote are durable before a vote, a confirmation or an answer that rests on them leaves",
    2: "a quorum is more than half of the voters, and a master that has none within `master_timeout` delivers nothing",
    3: "a log is more up to date by the epoch of its last entry, then by its length",
    4: "the master's log orders samples; an entry with its payload at a quorum of its epoch is committed",
    5: "a replica refuses a sample only if it is not in its log and can no longer be",
    6: "a sample is enqueued once, by its identity; a command is carried out once",
    7: "an assignment is committed before it is sent; a new master first commits its own entry, and sets the flag",
    8: "the master alone decides, by the log; a group, and a move to the dead letters, are one record",
    9: "frames of an older epoch have no effect",
    10: "a replica that lost its log has no vote before it has caught up",
    11: "each creation of a queue is a group of its own, and what is of another one is dropped",
    12: "a group forms with a quorum of members that have nothing, or by an operator's word with the longest log left",
    13: "a trial raises no epoch, and an election to one above the highest that a quorum was seen in",
    14: "a frame that does not fit is refused, or lets that replica alone begin anew",
    15: "who is not a member, or has a member's name only, changes nothing",
    16: "snapshots travel in pieces, and heartbeats ahead of samples; each commits what it covers",
    17: "members change in the log, one at a time, and learners first; a witness has no payloads",
    18: "a group uses what the lowest version among its members understands",
    19: "a master whose disk hangs leads no more",
}

RULES_BROKEN: Final[dict[Mutant, tuple[int, ...]]] = {}
"""The rules that each mutant breaks; none: it changes what operators see or prefer, or a queue that has no replicas."""


def breaks(*rules: int) -> Callable[[Mutant], Mutant]:
    """Register a mutant that breaks these rules."""

    def register(mutant: Mutant) -> Mutant:
        RULES_BROKEN[mutant] = rules
        return mutant

    return register


def mutants_of(module: str) -> dict[str, Mutant]:
    """Return the mutants that a module defines, by their names."""
    return {each.__name__.replace("_", " "): each for each in RULES_BROKEN if each.__module__ == module}


def files_broken(mutant: Mutant) -> set[str]:
    """Return the modules of what a mutant replaces."""
    recorder = _Recorder()
    mutant(recorder)  # type: ignore[arg-type]
    return recorder.modules


class _Recorder:
    """In the place of a `MonkeyPatch`: notes the modules of what would be replaced."""

    def __init__(self) -> None:
        self.modules: set[str] = set()

    def setattr(self, target: Any, name: Any, value: Any = None) -> None:
        if isinstance(target, str):
            self.modules.add(target.rpartition(".")[0])
            return
        replaced = getattr(target, name, None)
        owner = replaced if isinstance(target, ModuleType) and hasattr(replaced, "__module__") else target
        self.modules.add(getattr(owner, "__module__", None) or target.__name__)
