"""Kill a real process anywhere: what it was told is kept stays, what is settled does not come back (2.14.2)."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from qsctl.config.filesystem import JournalMode, Synchronization
from qsctl.errors import Damaged
from qsctl.service.directory.embedded import EmbeddedService, open_embedded
from qsctl.storage._frames import scan
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES, decode_header, stream_of
from tests.service.crash_program import QUEUE, key_of
from tests.service.crash_settings import configuration
from tests.service.killed_program import KILLS, Program, seeds_of_directories
from tests.service.killed_program import program as program


@dataclass
class Account:
    """What the killed processes said: the truth that the state directory must agree with."""

    kept: set[str] = field(default_factory=set)
    settling: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    delivered_again: set[str] = field(default_factory=set)

    def hear(self, line: str) -> None:
        word, *keys = line.split()
        if word == "kept":
            self.kept.update(keys)
        elif word == "settle":
            self.settling.update(keys)
        elif word == "settled":
            self.settled.update(keys)
        elif word == "got":
            self.delivered_again.update(self.settled.intersection(key.rstrip("*") for key in keys))

    def lost(self, held: set[str]) -> set[str]:
        return self.kept - held - self.settling

    def come_back(self, held: set[str]) -> set[str]:
        return (held & self.settled) | self.delivered_again


def held_keys(service: EmbeddedService) -> set[str]:
    """Every sample in the queue, taken out by a consumer that settles nothing."""
    return {key_of(delivery.identity) for delivery in service.receive(QUEUE, 1_000_000, 0.0)}


KINDS = {
    "segments": configuration(in_memory_state=True),
    "segments-normal": configuration(in_memory_state=True, synchronization=Synchronization.NORMAL),
    "database": configuration(in_memory_state=False),
    "database-normal": configuration(in_memory_state=False, synchronization=Synchronization.NORMAL),
    "database-wal": configuration(in_memory_state=False, mode=JournalMode.WAL),
    "volatile": configuration(in_memory_state=True, persistent=False),
}


@pytest.mark.slow(beyond=3)
@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_no_kill_loses_a_kept_sample_or_restores_an_acknowledged_one(
    program: Program, tmp_path: Path, kind: str
) -> None:
    chance, kept_count, settled_count = random.Random(7), 0, 0
    for seeds in seeds_of_directories():
        state_dir, account = tmp_path / f"state{seeds[0]}", Account()
        with open_embedded(state_dir, configuration=KINDS[kind]):
            pass
        for seed in seeds:
            program.run_and_kill(
                state_dir, seed, account, after_lines=chance.randint(0, 40), after_s=chance.uniform(0.0, 0.02)
            )
            with open_embedded(state_dir) as service:
                held = held_keys(service)
                assert not account.lost(held), f"after kill {seed}"
                assert not account.come_back(held), f"after kill {seed}"
                # A batch is in two files: between the two writes, what the second lacks stands in the first.
                assert {report.kind for report in service.damage} <= {DamageKind.TORN_TAIL}
        kept_count += len(account.kept)
        settled_count += len(account.settled)
    assert kept_count, "the program was killed before it did anything"
    assert settled_count


def damage_some_file(directory: Path, chance: random.Random) -> str:
    """Truncate a store's file inside a record, or flip one bit of its content; says what was done."""
    parts = ("@S@0@", "log@")
    files = [path for path in sorted(directory.glob("*.db")) if any(part in path.name for part in parts)]
    path = chance.choice([path for path in files if path.stat().st_size > HEADER_SIZE_BYTES + 20])
    data = bytearray(path.read_bytes())
    size = len(data)
    header = decode_header(bytes(data), stream_of(path))
    if header is not None:
        found = scan(bytes(data), header.marks, HEADER_SIZE_BYTES)
        if not found.bodies:
            return "nothing"
        size = found.end
        boundaries = {end for _, end in found.bodies} | {HEADER_SIZE_BYTES}
        at = chance.choice([each for each in range(HEADER_SIZE_BYTES, size) if each not in boundaries])
    else:
        at = chance.randrange(size)
    if chance.random() < 0.5:
        path.write_bytes(data[:at])
        return f"{path.name} cut at {at} of {size}"
    data[at] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    return f"{path.name} bit flipped at {at} of {size}"


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["segments", "segments-normal", "database"])
def test_damage_is_restored_around_and_never_silent(program: Program, tmp_path: Path, kind: str) -> None:
    chance = random.Random(11)
    damaged_count = 0
    for seed in range(1, 10 * KILLS + 1):
        if damaged_count and seed > KILLS:
            break
        state_dir, account = tmp_path / f"state{seed}", Account()
        with open_embedded(state_dir, configuration=KINDS[kind]):
            pass
        program.run_and_kill(
            state_dir, seed, account, after_lines=chance.randint(10, 40), after_s=chance.uniform(0.0, 0.02)
        )
        done = damage_some_file(state_dir, chance) if account.kept else "nothing"
        reported: list[DamageReport] = []
        with contextlib.suppress(Damaged), open_embedded(state_dir) as service:
            reported += service.damage
            assert all(each.kind in {DamageKind.TORN_TAIL, DamageKind.MENDED} for each in reported), done
        with open_embedded(state_dir, discard_damaged=True) as service:
            reported += service.damage
            held = held_keys(service)
            if account.lost(held) or account.come_back(held):
                damaged_count += 1
                assert reported, f"seed {seed}: {done}: lost {account.lost(held)}"
        with open_embedded(state_dir) as service:
            assert held_keys(service) == held, "what was restored once stays"
            assert not service.damage, "damage is told once"
    assert damaged_count, "no damage ever hit a sample"
