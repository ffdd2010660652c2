"""Kill a real process anywhere while samples are rejected, time out, expire and are dead-lettered (2.9, 2.12, 2.14.2).

The account knows only what the processes were told and what they got. At every restart: no acknowledged sample is
lost, none is both delivered and dead, none is delivered twice without the redelivered flag.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from qsctl.core.admin.command import GetMessages
from qsctl.core.admin.reply import MessageData
from qsctl.resource import parse_resource
from qsctl.service.directory.embedded import EmbeddedService, open_embedded
from qsctl.storage.damage import DamageKind
from tests.service.crash_program import DEAD, QUEUE, key_of
from tests.service.crash_settings import service_in, with_dead_letters
from tests.service.killed_program import Program, program, seeds_of_directories

assert program is not None, "a fixture"

LOG = logging.getLogger(__name__)
"""Shows the figures of a run with `--log-cli-level=INFO`."""


@dataclass
class Account:
    """What the killed processes were told, and what they got."""

    kept: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)
    """Acknowledged with success, perhaps without an answer."""
    settled: set[str] = field(default_factory=set)
    """The same, with the service's answer."""
    rejected: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    """Delivered, and not rejected since: a consumer may have processed them."""
    suspicious: set[str] = field(default_factory=set)
    """Delivered again after that; flagged for ever, whatever becomes of that delivery."""
    buried: set[str] = field(default_factory=set)
    exhuming: set[str] = field(default_factory=set)
    exhumed: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def hear(self, line: str) -> None:
        word, *words = line.split()
        keys = {each.rstrip("*") for each in words}
        if word == "kept":
            self.kept |= keys
        elif word == "got":
            self.suspicious |= keys & self.open
            unflagged = {each for each in words if not each.endswith("*")} & self.suspicious
            self._require(not unflagged, "delivered twice without the flag", unflagged)
            self._require(not keys & self.buried, "delivered and dead", keys)
            self._require(not keys & self.settled, "delivered after its acknowledgment", keys)
            self.open |= keys
        elif word == "settle":
            self.accepted |= keys
        elif word == "settled":
            self.settled |= keys
        elif word == "reject":
            self.rejected |= keys
            self.open -= keys
        elif word == "buried":
            self._require(not keys & self.settled, "dead after its acknowledgment", keys)
            unflagged = {each for each in words if not each.endswith("*")} & (self.open | self.suspicious)
            self._require(not unflagged, "a dead letter without the flag", unflagged)
            self._require(not keys & self.exhumed, "a dead letter after its acknowledgment", keys)
            self.buried |= keys
        elif word == "exhume":
            self.exhuming |= keys
        elif word == "exhumed":
            self.exhumed |= keys

    def look(self, held: set[str], dead: list[str]) -> None:
        """Compare with what the service holds after a restart."""
        self._require(len(dead) == len(set(dead)), "one sample, two dead letters", set(dead))
        self._require(not held & set(dead), "held and dead", held & set(dead))
        # One that was acknowledged in time, without an answer, may be either; what was answered is neither.
        self._require(not self.settled & (held | set(dead)), "held after its acknowledgment", self.settled)
        self._require(not self.exhumed & (held | set(dead)), "held after its dead letter left", self.exhumed)
        lost = self.kept - held - set(dead) - self.accepted - self.exhuming
        self._require(not lost, "lost", lost)
        self.buried |= set(dead)

    def figures(self, kill_count: int) -> str:
        return (
            f"{kill_count} kills, {len(self.kept)} kept, {len(self.accepted)} accepted by consumers, "
            f"{len(self.rejected)} rejected, {len(self.suspicious)} redelivered with the flag, "
            f"{len(self.buried)} dead, {len(self.exhuming)} of them consumed"
        )

    def _require(self, is_so: bool, fault: str, keys: set[str]) -> None:
        if not is_so:
            self.faults.append(f"{fault}: {sorted(keys)[:20]}")


def held_keys(service: EmbeddedService, queue: str) -> list[str]:
    """Every sample in a queue, without a consumer."""
    kind = "dead_letter_shared_reader_queue" if queue == DEAD else "shared_reader_queue"
    resource = parse_resource(f"/domain_participant/P/shared_subscriber/S/{kind}/{queue.rpartition('/')[2]}/message")
    bodies = (each.reply.body for each in service.request(GetMessages(resource)))
    return [key_of(body.identity) for body in bodies if isinstance(body, MessageData)]


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["segments", "database"])
def test_no_kill_loses_doubles_or_unmarks_a_sample_among_dead_letters(
    program: Program,
    tmp_path: Path,
    kind: str,
) -> None:
    chance, settled_count = random.Random(13), 0
    for seeds in seeds_of_directories():
        state_dir, account = tmp_path / f"state{seeds[0]}", Account()
        with open_embedded(state_dir, configuration=with_dead_letters(in_memory_state=kind == "segments")):
            pass
        for seed in seeds:
            program.run_and_kill(
                state_dir, seed, account, after_lines=chance.randint(0, 40), after_s=chance.uniform(0.0, 0.02)
            )
            with open_embedded(state_dir) as service:
                dead_before, held, dead = (held_keys(service, queue) for queue in (DEAD, QUEUE, DEAD))
                # One that expired while this looked was held first and is dead now.
                account.look(set(held) - (set(dead) - set(dead_before)), dead)
                assert {report.kind for report in service.damage} <= {DamageKind.TORN_TAIL}
            assert not account.faults, f"after kill {seed}: {account.faults}"
        LOG.info("%s: %s", kind, account.figures(len(seeds)))
        settled_count += len(account.settled)
    assert settled_count


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["segments", "database"])
def test_no_kill_of_a_service_loses_doubles_or_unmarks_a_sample_among_dead_letters(
    program: Program,
    tmp_path: Path,
    kind: str,
) -> None:
    """A service that works on while the disk syncs, as the daemon does; its consumers hear nothing of their answers."""
    chance, buried_count, accepted_count = random.Random(17), 0, 0
    for seeds in seeds_of_directories():
        directory, account = tmp_path / f"service-{kind}-{seeds[0]}", Account()
        directory.mkdir()
        for seed in seeds:
            program.run_and_kill(
                directory, seed, account, after_lines=chance.randint(0, 60), after_s=chance.uniform(0.0, 0.02)
            )
            loop = service_in(directory)
            held = {
                name: [key_of(each.original_identity) for each in loop.engine.hosted.by_name[name].held]
                for name in (QUEUE, DEAD)
            }
            account.look(set(held[QUEUE]), held[DEAD])
            assert {report.kind for report in loop.stores.damage} <= {DamageKind.TORN_TAIL}
            loop.stores.close()
            assert not account.faults, f"after kill {seed}: {account.faults}"
        LOG.info("%s: %s", kind, account.figures(len(seeds)))
        buried_count += len(account.buried)
        accepted_count += len(account.accepted)
    assert buried_count
    assert accepted_count
