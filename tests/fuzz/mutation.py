"""Mutations of inputs from a seed, without a guide: the short run of the ordinary suite."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

INTERESTING = (b"\x00", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f")


def mutations(seeds: Sequence[bytes], words: Sequence[bytes], count: int, seed: int = 1) -> Iterator[bytes]:
    """Give `count` inputs made from the seeds by a few random edits each; the same for the same seed."""
    draw = random.Random(seed)
    pieces = (*words, *INTERESTING)
    for _ in range(count):
        data = bytearray(draw.choice(seeds))
        for _ in range(draw.randint(1, 4)):
            _edit(draw, data, seeds, pieces)
        yield bytes(data)


def _edit(draw: random.Random, data: bytearray, seeds: Sequence[bytes], pieces: Sequence[bytes]) -> None:
    at = draw.randint(0, len(data))
    end = min(len(data), at + draw.choice((1, 1, 2, 4, 8, 64)))
    match draw.randrange(6):
        case 0 if data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        case 1:
            del data[at:end]
        case 2:
            data[at:at] = draw.choice(pieces)
        case 3:
            data[at : at + 1] = draw.choice(pieces)
        case 4:
            data[at:at] = data[at:end]
        case _:
            other = draw.choice(seeds)
            data[at:] = other[draw.randint(0, len(other)) :]
