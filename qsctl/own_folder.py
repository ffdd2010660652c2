"""A folder in the system's folder for temporary files that belongs to this user alone."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from qsctl.errors import Refused


def own_folder(name: str) -> Path:
    """Return the folder `NAME-UID` in the folder for temporary files; create it if it does not exist.

    Raises:
        Refused: the path is not a directory, or belongs to another user, who could change its content.
    """
    folder = Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise Refused(f"{folder} is not a directory of this user", remedy="Remove it, or set TMPDIR.")
    return folder
