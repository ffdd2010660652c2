"""Creation of a file that only its owner may read and that is either written completely or removed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from qsctl.errors import UsageError


@contextmanager
def new_private_file(path: Path, remedy: str = "Choose another name.") -> Iterator[BinaryIO]:
    """Create a file that only its owner may read, for the block to write; any failure removes it.

    Args:
        path: the file, which must not exist.
        remedy: the advice of the error for an existing file.

    Raises:
        UsageError: the file exists already, or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(f"{path} exists already", remedy=remedy) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
    except BaseException as error:  # an incomplete file would look complete, and would block the next attempt
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
        raise
