"""Decoding of a site's files: bounded in size, and tolerant of invalid octets.

Decides the encoding: a byte order mark, else the user's choice, else UTF-8; a file that is not UTF-8 is decoded as
Latin-1, which has a character for every octet, with a warning that names the first line. A binary file is an error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from qsctl.declared.problems import Problem, Severity, error_at, shown
from qsctl.dumps.lines import BYTE_ORDER_MARKS, check_encoding
from qsctl.errors import InvalidInput, NotFound

LARGEST_BYTES: Final = 32 * 1024 * 1024
"""Largest size of a file. A site of 300 threads has about a megabyte; message archives are read line by line
instead.
"""

REPLACEMENT: Final = "\ufffd"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
"""Characters that do not occur in names, and that XML does not allow."""


def read_bytes(path: Path) -> bytes:
    """Return the octets of a file.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is larger than `LARGEST_BYTES`, or cannot be read.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"{path}: there is no such file", remedy="Name the file, as in site/NetConfig.") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}", remedy="Name a file.") from None
    if len(data) > LARGEST_BYTES:
        raise InvalidInput(
            f"{path} is larger than {LARGEST_BYTES // 1024**2} MiB", remedy="Name the file of one site, as NetConfig."
        )
    return data


def text_of(data: bytes, name: str, encoding: str | None = None) -> tuple[str, list[Problem]]:
    """Decode a file; return its text and the problems of its encoding.

    Raises:
        UsageError: the encoding is unknown.
    """
    check_encoding(encoding)
    marked = next((known for known in BYTE_ORDER_MARKS if data.startswith(known[0])), None)
    if marked is not None and encoding is None:
        data, encoding = data[len(marked[0]) :], marked[1]
    problems: list[Problem] = []
    if encoding is not None:
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, UnicodeError) as error:
            text = data.decode(encoding, "replace")
            at = error.start if isinstance(error, UnicodeDecodeError) else 0
            problems.append(_not_of(name, data, at, encoding, Severity.ERROR, "--encoding NAME"))
    else:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            text = data.decode("latin-1")
            allowed = "read as Latin-1; name another with --encoding"
            problems.append(_not_of(name, data, error.start, "utf-8", Severity.WARNING, allowed))
    if "\0" in text:
        at = text.index("\0")
        line = text.count("\n", 0, at) + 1
        allowed = "text; --encoding NAME"
        problems.append(error_at(name, line, "this is binary data", found="character 0", allowed=allowed))
        text = text.replace("\0", " ")
    return _CONTROL.sub(REPLACEMENT, text), problems


def printable(text: str) -> str:
    """Return a text for a message, in which characters that are not printable are replaced."""
    return "".join(each if each.isprintable() else REPLACEMENT for each in text)


def _not_of(name: str, data: bytes, at: int, encoding: str, severity: Severity, allowed: str) -> Problem:
    line = data.count(b"\n", 0, at) + 1
    found = shown(f"octet 0x{data[at]:02x}") if at < len(data) else "the end of the file"
    return Problem(severity, name, line, "", f"this is not {encoding.upper()}", found, allowed)
