"""A folder of this user beside those of others, in the system's folder for temporary files."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from qsctl.errors import Refused


def own_folder(name: str) -> Path:
    """Return the folder `NAME-USER`, which is made where it does not exist.

    Raises:
        Refused: something else has the name, or the folder belongs to another user, who could change what is in it.
    """
    folder = Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise Refused(f"{folder} is not a directory of this user", remedy="Remove it, or set TMPDIR.")
    return folder
