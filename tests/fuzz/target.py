"""What a fuzz target is: a module `tests/fuzz/fuzz_<name>.py` beside a folder `tests/fuzz/corpus/<name>/`.

The module has `one_input(data)`, which feeds one input to the code under test and raises only where a rule is broken:
exceptions that the code declares are caught inside, each by its type. It may have `DICTIONARY`, byte strings that the
format is made of, and a `SHORT_COUNT` where an input takes so long that fewer must do in the ordinary suite. The corpus
holds a few small inputs that reach different branches, found ones among them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where a target keeps its files: in memory where there is such a folder, else where temporary files are."""


@dataclass(frozen=True)
class Target:
    """One kind of input."""

    name: str
    one_input: Callable[[bytes], None]
    dictionary: Sequence[bytes]
    short_count: int = 300
    """How many mutations the ordinary suite tries."""

    @property
    def corpus(self) -> Path:
        return FOLDER / "corpus" / self.name

    @property
    def seeds(self) -> list[bytes]:
        """The inputs of the corpus, in the order of their names."""
        return [path.read_bytes() for path in sorted(self.corpus.iterdir()) if path.is_file()]


def target_names() -> list[str]:
    """Return the names of all targets, sorted."""
    return sorted(path.stem.removeprefix("fuzz_") for path in FOLDER.glob("fuzz_*.py"))


def load_target(name: str) -> Target:
    """Import the target `name`."""
    module = importlib.import_module(f"tests.fuzz.fuzz_{name}")
    dictionary = tuple(getattr(module, "DICTIONARY", ()))
    return Target(name, module.one_input, dictionary, getattr(module, "SHORT_COUNT", Target.short_count))
