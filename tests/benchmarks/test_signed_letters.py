"""What the signatures of letters between replicas cost: with a key and without one, in turns of one run.

Run it alone: `pytest tests/benchmarks/test_signed_letters.py -s`; `QSCTL_BENCHMARK_COUNT` samples of 256 B a run. Of a
letter alone, encoded, decoded and checked by one thread, a signature is a large part: it costs some 20 us of processor
time for two recipients. Of replicated samples it is a small one, since a letter contains many of them.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from qsctl.config.signing_keys import create_keys
from qsctl.core.high_availability.frames import Entries, Frame
from qsctl.core.records import Enqueued
from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.dds.boundary import Boundary
from qsctl.transport.dds.replicas.letter_box import LetterBox, Seen
from qsctl.transport.dds.replicas.letter_signatures import ClusterKeys, LetterSigner
from qsctl.transport.dds.replicas.replica_letters import piece_from_octets
from tests.benchmarks.brokers import replicated, run_peers
from tests.benchmarks.ratios import keep_ratio

COUNT = int(os.environ.get("QSCTL_BENCHMARK_COUNT", "50000"))
ROUNDS = 7
LETTERS = 2_000
SAMPLES = tuple(
    Enqueued("P/S/Orders", number, SampleIdentity(Guid(b"w" * 16), number), 1, 2, payload=bytes(256))
    for number in range(1, 101)
)
FRAMES: dict[str, Frame] = {
    "heartbeats": Entries("P/S/Orders", "A", 3, 8, 2, (), 7, 99),
    "letters with 100 samples of 256 B": Entries("P/S/Orders", "A", 3, 0, 0, SAMPLES, 0, 1),
}


def boxes(keys: ClusterKeys | None) -> dict[str, LetterBox]:
    """The ends of three members."""
    seen = [Seen(name, f"run of {name}", 0) for name in "ABC"]
    found = {
        own.name: LetterBox(own, "letters", Boundary(), signer=None if keys is None else LetterSigner(own.run, keys))
        for own in seen
    }
    for box in found.values():
        for number, other in enumerate(seen):
            box.appeared(number, other)
    return found


def letters_a_second(keys: ClusterKeys | None, frame: Frame) -> float:
    """How many letters a second, of processor time, are sent to two members and read by one."""
    ends = boxes(keys)
    began = time.process_time()
    for _ in range(LETTERS):
        for pieces in ends["A"].messages(("B", "C"), ("A", "B", "C"), (frame,)):
            for octets in pieces:
                assert ends["B"].receive(piece_from_octets(octets))
    return LETTERS / (time.process_time() - began)


def test_signed_letters_beside_unsigned_ones(tmp_path: Path) -> None:
    create_keys(tmp_path / "cluster.key")
    keys = ClusterKeys(tmp_path / "cluster.key")
    for what, frame in FRAMES.items():
        pairs = [(letters_a_second(keys, frame), letters_a_second(None, frame)) for _ in range(ROUNDS)]
        signed, unsigned = (median(each) for each in zip(*pairs, strict=True))
        cost_us = (1 / signed - 1 / unsigned) * 1e6
        sys.stdout.write(f"\n{what:>42}: {signed:,.0f} signed, {unsigned:,.0f} unsigned a second; {cost_us:.0f} us")
        keep_ratio(f"signed to unsigned {what}", median(one / other for one, other in pairs))
    sys.stdout.write("\n")


def test_replicated_queue_is_about_as_fast_with_a_key(tmp_path: Path) -> None:
    create_keys(tmp_path / "cluster.key")
    pairs: list[tuple[float, float]] = []
    with ExitStack() as stack:
        brokers = []
        for name, arguments in (("signed", ("--cluster-key", str(tmp_path / "cluster.key"))), ("unsigned", ())):
            (tmp_path / name).mkdir()
            brokers.append(replicated(tmp_path / name, stack, "PERSISTENT", "OFF", *arguments))
        for _ in range(ROUNDS):
            signed, unsigned = (run_peers(each, COUNT, 256, 1, 0.0)["samples_per_second"] for each in brokers)
            pairs.append((signed, unsigned))
    ratio = median(signed / unsigned for signed, unsigned in pairs)
    sys.stdout.write(
        f"\n{'with a key to without':>42}: {ratio:.3f}; in turns {[f'{a:,.0f}:{b:,.0f}' for a, b in pairs]}\n"
    )
    keep_ratio("three replicas with a key to three without", ratio)
    assert ratio >= 0.95
