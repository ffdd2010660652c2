"""Kill a real process anywhere while it moves and requeues samples: nothing is lost, and nothing is in two queues.

The long run: QSCTL_TEST_MOVE_KILLS=100, or any other number.
"""

from __future__ import annotations

import logging
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from qsctl.client.administration import Administration
from qsctl.client.transfer import Transfer
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.queue.settings import RedeliverySettings, ResourceLimitSettings
from qsctl.service.directory.embedded import open_embedded
from tests.campaigns import trials
from tests.patience import PATIENCE_S
from tests.processes import running
from tests.service.crash_program import key_of
from tests.service.crash_settings import with_dead_letters
from tests.service.killed_program import Program
from tests.service.move_program import ARCHIVE, DEAD, ORDERS

KILLS = trials("QSCTL_TEST_MOVE_KILLS", 2, 500)
LOG = logging.getLogger(__name__)
"""Shows the figures of a run with `--log-cli-level=INFO`."""


@dataclass
class Account:
    """What the killed processes were told, and what they got."""

    kept: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    """Acknowledged with success, perhaps without an answer."""
    processed: set[str] = field(default_factory=set)
    """Delivered, and not rejected since."""
    again_count: int = 0
    moved_count: int = 0
    faults: list[str] = field(default_factory=list)

    def hear(self, line: str) -> None:
        word, *words = line.split()
        keys = {each.rstrip("*") for each in words}
        if word == "kept":
            self.kept |= keys
        elif word == "got":
            again = keys & self.processed
            self.again_count += len(again)
            self._require("delivered again without the flag", again - {each[:-1] for each in words if each[-1] == "*"})
            self.processed |= keys
        elif word == "settle":
            self.settled |= keys
        elif word == "reject":
            self.processed -= keys
        elif word == "moved":
            self.moved_count += int(words[0])

    def look(self, held: dict[str, list[str]]) -> None:
        """Compare with what the queues hold after a restart."""
        self._require("lost", self.kept - self.settled - {key for keys in held.values() for key in keys})
        keys = [key for keys in held.values() for key in keys]
        self._require(f"twice in {held}", {key for key in keys if keys.count(key) > 1})

    def _require(self, fault: str, keys: set[str]) -> None:
        if keys:
            self.faults.append(f"{fault}: {sorted(keys)[:20]}")


def configuration(*, in_memory_state: bool) -> ServiceConfiguration:
    """No retries: what is rejected is a dead letter. Beside the queue another one, with the same stores."""
    given = with_dead_letters(in_memory_state=in_memory_state)
    (participant,) = given.service.participants
    (subscriber,) = participant.subscribers
    orders, dead = subscriber.queues
    orders = replace(orders, redelivery=RedeliverySettings(0, response_timeout_ns=10**15))
    archive = replace(
        orders, name="archive", topic_name="Archive", dead_letter_queue="", redelivery=RedeliverySettings(10**6, 10**15)
    )
    dead = replace(dead, limits=ResourceLimitSettings())
    subscriber = replace(subscriber, queues=(orders, archive, dead))
    service = replace(given.service, participants=(replace(participant, subscribers=(subscriber,)),))
    return replace(given, service=service)


@pytest.fixture
def program() -> Iterator[Program]:
    command = [sys.executable, "-m", "tests.service.move_program"]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Program(process)
        assert process.stdin
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["segments", "database"])
def test_no_kill_loses_a_moved_sample_or_makes_it_two(program: Program, tmp_path: Path, kind: str) -> None:
    state_dir, account, chance = tmp_path / "state", Account(), random.Random(11)
    with open_embedded(state_dir, configuration=configuration(in_memory_state=kind == "segments")):
        pass
    for seed in range(1, KILLS + 1):
        program.run_and_kill(
            state_dir, seed, account, after_lines=chance.randint(5, 20), after_s=chance.uniform(0.0, 0.02)
        )
        with open_embedded(state_dir) as service:
            administration = Administration(service)
            held = {
                str(queue): [key_of(each.body.identity) for each in administration.messages(queue)]
                for queue in (ORDERS, ARCHIVE, DEAD)
            }
            account.look(held)
        assert not account.faults, f"after kill {seed}: {account.faults}"
    with open_embedded(state_dir) as service:
        administration = Administration(service)
        for source, target in ((DEAD, ORDERS), (ARCHIVE, ORDERS)):
            for _ in Transfer(administration, source, lambda _sample, target=target: target).steps():  # type: ignore[misc]
                pass
            assert not administration.messages(source)
        left = [key_of(each.body.identity) for each in administration.messages(ORDERS)]
        assert len(left) == len(set(left))
        assert account.kept - account.settled <= set(left)
    LOG.info(
        "%s: %d kills, %d kept, %d moved, %d delivered again with the flag",
        kind, KILLS, len(account.kept), account.moved_count, account.again_count,
    )  # fmt: skip
    assert account.kept
    assert account.moved_count or KILLS < 10
    assert account.settled or KILLS < 10
