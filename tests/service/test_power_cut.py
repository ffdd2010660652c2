"""A power failure is no damage: whatever a service's files have become by it, none is reported [QS 2.14.2]."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from qsctl.service.directory.embedded import open_embedded
from qsctl.storage.damage import DamageKind
from tests.campaigns import trials
from tests.service.embedded_commands import messages
from tests.service.traced_program import configuration
from tests.storage.traced_disk import Traced, TracedDisk, needs_strace, trace

CUTS = trials("QSCTL_TEST_POWER_FAILURES", 10, 500)
"""How often the power fails in each of the runs."""

FORMS = [("FULL", "DELETE"), ("NORMAL", "DELETE"), ("FULL", "WAL"), ("NORMAL", "WAL")]


@cache
def traced(synchronization: str, journal_mode: str) -> tuple[Path, list[Traced]]:
    """Return the calls of one run, and the directory that they are about."""
    with TemporaryDirectory(prefix="qsctl-traced-") as folder:
        state_dir = Path(folder).resolve() / "st"
        program = ("tests.service.traced_program", str(state_dir), synchronization, journal_mode)
        return state_dir, trace(program, Path(folder) / "trace")


def held(line: str) -> dict[str, set[str]]:
    parts = (each.partition("=") for each in line.split()[1:])
    return {name: set(filter(None, texts.split(","))) for name, _, texts in parts}


@pytest.mark.slow(beyond=2)
@pytest.mark.campaign
@needs_strace
@pytest.mark.parametrize("seed", range(CUTS))
@pytest.mark.parametrize(("synchronization", "journal_mode"), FORMS, ids=[f"{sync}-{mode}" for sync, mode in FORMS])
def test_a_power_failure_is_not_reported_as_damage(
    tmp_path: Path, synchronization: str, journal_mode: str, seed: int
) -> None:
    chance = random.Random(seed)
    state_dir, calls = traced(synchronization, journal_mode)
    disk = TracedDisk(state_dir)
    first = next(at for at, call in enumerate(calls) if call.name == "mkdir")
    for call in calls[: chance.randint(first, len(calls))]:
        disk.do(call)
    left = tmp_path / "left"
    disk.leave(left, chance)
    with open_embedded(left, configuration=configuration(synchronization, journal_mode)) as service:
        damage = [str(each) for each in service.damage if each.kind is not DamageKind.TORN_TAIL]
        hosted = {
            queue.name for each in service.settings.participants for sub in each.subscribers for queue in sub.queues
        }
        names = [name.rpartition("/")[2] for name in hosted]
        found = {name: {each.payload.decode() for each in messages(service, name)} for name in names}
    assert not damage, damage
    if synchronization == "OFF" or (synchronization, journal_mode) == ("NORMAL", "WAL"):
        return  # what was acknowledged last may be lost
    done = max((at for at, line in enumerate(disk.said) if line.startswith("done")), default=None)
    states = [] if done is None else [held(line) for line in disk.said[done:]]
    for name in set.intersection(*map(set, states)) if states else ():
        assert set.intersection(*(each[name] for each in states)) <= found[name]
