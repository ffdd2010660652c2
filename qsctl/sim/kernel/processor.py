"""Processors that ready-made machine code is made for, by their instructions, and the features of this machine."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Baseline:
    """A processor by LLVM's name, and the features, by LLVM's names, that a machine needs to run code made for it."""

    name: str
    features: frozenset[str]


_V2: Final = frozenset({"cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"})
_V3: Final = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}

X86_64: Final = (Baseline("x86-64-v3", _V3), Baseline("x86-64-v2", _V2), Baseline("x86-64", frozenset()))
"""The levels of the x86-64 psABI: the third is every server and desktop since 2013 to 2015."""


def baselines() -> tuple[Baseline, ...]:
    """Return the baselines of this architecture, the most demanding first; none where machine code is not shared."""
    machine = platform.machine().lower()
    if machine in {"x86_64", "amd64"}:
        return X86_64
    if machine in {"aarch64", "arm64"}:
        return (Baseline("apple-m1" if sys.platform == "darwin" else "generic", frozenset()),)
    return ()


def host_features() -> frozenset[str]:
    """Return the features of this machine's processor, by LLVM's names."""
    from llvmlite import binding  # type: ignore[import-untyped]

    try:
        return frozenset(name for name, has in binding.get_host_cpu_features().items() if has)
    except RuntimeError:  # LLVM does not know them on this system
        return frozenset()


def best_baseline() -> Baseline | None:
    """Return the most demanding baseline that this machine can run, or None."""
    features = host_features()
    return next((each for each in baselines() if each.features <= features), None)
