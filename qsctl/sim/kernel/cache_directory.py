"""The directory of compiled kernels: one of the user's cache for each version of the simulator's sources.

numba's disk cache notices an edit of the function's own file, never of one that it calls in another module, so the
directory carries a hash of every source of the simulator: an edit anywhere is a new directory, and every copy of the
same sources, wherever it is installed, has the same one. Directories of other versions are removed when they were not
used for weeks (`unused_caches`).
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from qsctl.sim.kernel._unused_caches import mark_used, remove_unused

SOURCES: Final = Path(__file__).parent.parent


def cache_root() -> Path:
    """Return the directory `qsctl` in the user's cache: `NUMBA_CACHE_DIR`, else `XDG_CACHE_HOME`, else `~/.cache`.

    For a user without a home, as in a container that runs with an arbitrary user id, the path cannot be created.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qsctl"
    except RuntimeError:
        return Path(os.devnull) / "qsctl"


@cache
def sources_digest() -> str:
    """Return a digest of all sources that a kernel may call."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(SOURCES.rglob("*.py")):
        digest.update(path.relative_to(SOURCES).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def source_hash() -> str:
    """Return a digest of all that a kernel may call, of what compiles it, and of whose types it is kept by."""
    compilers = [f"{name} {_version_of(name)}" for name in ("numba", "llvmlite", "numpy")]
    return hashlib.blake2b(" ".join((*compilers, sources_digest())).encode(), digest_size=8).hexdigest()


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def opened(directory: Path) -> bool:
    """Create the directory, or mark it as used; return whether compiled kernels can be stored in it."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        mark_used(directory)
    except OSError:
        return False
    else:
        remove_unused(directory)
    return directory.is_dir() and os.access(directory, os.W_OK)


CACHE_DIRECTORY: Final = cache_root() / f"kernels-{source_hash()}"
