"""Directories made by the code of earlier versions (`tests/storage/earlier_formats/make.py`), copied for a test."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec

from qsctl.service.directory.state_directory import checksum_of

FORMATS = Path(__file__).parent / "storage" / "earlier_formats"
COMMITS = ("c9b5695", "04abe5f")
"""The last commit that noted the path of a state directory, and the last one before incarnations were recorded."""

CONFIGURATION = FORMATS / "service.xml"


def placed(commit: str, kind: str, path: Path) -> Path:
    """Put a directory there, as if it had been made there."""
    shutil.copytree(FORMATS / commit / kind, path)
    path.chmod(0o700)
    for each in path.rglob("*"):
        each.chmod(0o700 if each.is_dir() else 0o600)
    instance_file = path / "instance.json"
    if instance_file.exists():
        note_directory(instance_file, str(path.resolve()))
    return path


def note_directory(instance_file: Path, directory: str, *, always: bool = False) -> None:
    """Change the path that an instance's file has, where it has one or `always`."""
    if always or msgspec.json.decode(instance_file.read_bytes())["directory"] != ".":
        note(instance_file, directory=directory)


def note(instance_file: Path, **changed: str) -> None:
    """Change fields of an instance's file."""
    text = msgspec.json.encode(msgspec.json.decode(instance_file.read_bytes()) | changed)
    instance_file.write_bytes(msgspec.json.encode(msgspec.json.decode(text) | {"checksum": checksum_of(text)}))


def contents(directory: Path) -> dict[str, str]:
    """The digest of every file in a directory but locks, by name."""
    files = (each for each in directory.rglob("*") if each.is_file())
    return {
        str(each.relative_to(directory)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in files
        if each.name != "lock" and each.suffix not in {".lock", ".holder", ".reserve"}
    }
