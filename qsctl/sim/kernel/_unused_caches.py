"""Removal of compiled kernels that nothing uses any more: each version of qsctl or numba keeps its own directory.

Decides: when a directory is unused. A process that uses one marks it, once a day, by the directory's time of
modification; a directory that nothing has marked for `UNUSED_AFTER_S` is removed when another version makes its own,
which is the only moment at which the cache grows. What else is in the user's cache is left alone.
"""

from __future__ import annotations

import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

UNUSED_AFTER_S: Final = 28 * 86400.0
"""Time without use after which a version is removed: one that is used now and then, in another environment, keeps its
compiled code.
"""
_MARKED_EVERY_S: Final = 86400.0
_NAMED: Final = re.compile(r"kernels-[0-9a-f]{16}")


def mark_used(directory: Path) -> None:
    """Mark a version's directory as used, at most once a day; ignore errors."""
    with suppress(OSError):
        if time.time() - directory.stat().st_mtime > _MARKED_EVERY_S:
            directory.touch()


def remove_unused(made: Path) -> None:
    """Remove the directories of other versions beside this one that were not in use for weeks; ignore errors.

    Args:
        made: the directory of this version, which stays.
    """
    oldest_s = time.time() - UNUSED_AFTER_S
    with suppress(OSError):
        for each in made.parent.iterdir():
            if each == made or not _NAMED.fullmatch(each.name) or each.is_symlink() or not each.is_dir():
                continue
            with suppress(OSError):
                if each.stat().st_mtime < oldest_s:
                    shutil.rmtree(each, ignore_errors=True)
