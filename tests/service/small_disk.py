"""A disk that fills, empties, goes read-only and returns: a small file system in memory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SIZE_BYTES = 8 * 1024 * 1024


class SmallDisk:
    """A mounted file system of some megabytes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ballast = directory / "ballast"

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.directory)
        return found.f_bavail * found.f_frsize

    def fill(self, left_bytes: int = 0) -> None:
        """Let somebody else's file take all the room but so much."""
        size = self._ballast.stat().st_size if self._ballast.exists() else 0
        with self._ballast.open("ab") as file:
            os.posix_fallocate(file.fileno(), 0, size + max(0, self.free_bytes - left_bytes))
        # A file system may round: whatever is left goes, too.
        with self._ballast.open("ab", buffering=0) as file:
            while self.free_bytes > left_bytes:
                try:
                    file.write(bytes(min(4096, self.free_bytes - left_bytes)))
                except OSError:
                    break

    def empty(self) -> None:
        """That file is deleted."""
        self._ballast.unlink(missing_ok=True)

    def set_read_only(self, is_read_only: bool) -> None:
        mode = "ro" if is_read_only else "rw"
        subprocess.run(["mount", "-o", f"remount,{mode}", str(self.directory)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Skips where this user may not mount: an ordinary one never may."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)
