"""Files and standard input that commands read, with one kind of error for all commands.

Decides the exit statuses: a file that does not exist is NOT_FOUND; one that exists and cannot be read, such as a
directory, is invalid input.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from qsctl.errors import InvalidInput, NotFound

STANDARD_INPUT: Final = "standard input"


def is_standard_input(file: Path | None) -> bool:
    """Return whether an option names standard input (`-`), or is omitted, which means the same."""
    return file is None or str(file) == "-"


@contextmanager
def reading(source: Path | str) -> Iterator[None]:
    """Convert the errors of opening, reading and decoding this source within the block.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it cannot be read, or is not UTF-8 if text is read.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"there is no file {source}", remedy="Check the path.") from None
    except OSError as error:
        raise InvalidInput(f"{source} cannot be read: {error.strerror}", remedy="Give a readable file.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{source} is not UTF-8: octet 0x{error.object[error.start]:02x} at offset {error.start}",
            remedy="Give a UTF-8 file.",
        ) from None
