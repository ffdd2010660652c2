"""Fuzz data as edits of files that were written before: most inputs get past the headers, and reach what is behind.

An edit is nine bytes: which file, what to do, where (three bytes), how many bytes, and what to put there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

EDIT_SIZE_BYTES = 9
EDITS_MAX = 12

Files = dict[str, bytes]
"""What stands in a directory and below it, by relative path."""


def read_files(directory: Path) -> Files:
    """The content of a directory."""
    found = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Make a directory with this content."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(content)


def edited(files: Mapping[str, bytes], data: bytes) -> Files:
    """The files, edited as the data says."""
    result = dict(files)
    for start in range(0, min(len(data), EDITS_MAX * EDIT_SIZE_BYTES) - EDIT_SIZE_BYTES + 1, EDIT_SIZE_BYTES):
        if result:
            _edit(result, data[start : start + EDIT_SIZE_BYTES])
    return result


def _edit(files: Files, edit: bytes) -> None:
    names = sorted(files)
    name, other = names[edit[0] % len(names)], names[edit[6] % len(names)]
    content = bytearray(files[name])
    at = int.from_bytes(edit[2:5]) % (len(content) + 1)
    size = edit[5]
    match edit[1] % 9:
        case 0 if content:
            content[at % len(content)] ^= 1 << edit[6] % 8
        case 1:
            content[at : at + size] = edit[6:] * (size // 3)
        case 2:
            del content[at : at + size]
        case 3:
            content[at:at] = edit[6:] * (size // 3 + 1)
        case 4:
            del content[at:]
        case 5:
            content[at:at] = content[at : at + size]
        case 6:
            content[at : at + size] = bytes(size)
        case 7 if other != name:
            files[name], files[other] = files[other], bytes(content)
            return
        case _ if edit[5] == 0xFF:
            del files[name]
            return
        case _:
            content[at : at + size] = files[other][at : at + size]
    files[name] = bytes(content)
