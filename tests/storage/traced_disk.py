"""What a real process did to the files of a directory, as strace reports it, and what a power failure leaves of it.

`power_loss.Disk` watches the syncs of Python alone; a database's library does its own. As there: what a sync covered is
there afterwards; of the rest, any part: each sector of 512 octets is the old one or the new one, a name given since the
directory was last synced may be there or not.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.processes import running

ROOT = Path(__file__).parent.parent.parent
SECTOR_BYTES = 512
TRACED = "openat,close,write,pwrite64,ftruncate,truncate,fallocate,fsync,fdatasync,unlink,unlinkat,rename,mkdir,link"

_CALL = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)(?:<[^>]*>)?(?: .*)?$")
_MADE = re.compile(r"^\d+ +(\w+)\(")
_UNFINISHED = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


@dataclass
class Traced:
    """One call: its name, its numbers, its texts, and what it returned."""

    name: str
    arguments: str
    texts: list[bytes]
    result: int


def trace(program: Sequence[str], log: Path) -> list[Traced]:
    """Run a program to its end; return the calls that succeeded, in order.

    Args:
        program: a module, which begins with `await_strace`, and its arguments.
        log: the file that strace writes.
    """
    _watched(program, ["-xx", "-s", "4000000", "-e", f"trace={TRACED}"], log)
    return list(_calls(log.read_text().splitlines()))


def count_calls(program: Sequence[str], paths: Iterable[Path], calls: Iterable[str], log: Path) -> Counter[str]:
    """Return how many calls of each of these names a program makes about these files."""
    _watched(program, _about(paths, ",".join(calls)), log)
    made = (_MADE.match(line) for line in log.read_text().splitlines())
    return Counter(each[1] for each in made if each)


def injected(program: Sequence[str], paths: Iterable[Path], call: str, error: str, number: int, log: Path) -> str:
    """Run a program whose call of this number, of those about these files, is refused; return what it printed."""
    options = [*_about(paths, call), "-e", f"inject={call}:error={error}:when={number}"]
    said = _watched(program, options, log, is_expected_to_succeed=False)
    assert "(INJECTED)" in log.read_text()
    return said


def _about(paths: Iterable[Path], call: str) -> list[str]:
    return [*(text for path in paths for text in ("-P", str(path))), "-e", f"trace={call}"]


def _watched(program: Sequence[str], options: Sequence[str], log: Path, *, is_expected_to_succeed: bool = True) -> str:
    """Run a program to its end, under strace once it is loaded; return what it printed."""
    strace = ["strace", "-f", "-e", "signal=none", *options, "-o", os.fspath(log)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with (
        running([sys.executable, "-m", *program], cwd=ROOT, text=True, **pipes) as watched,
        running([*strace, "-p", str(watched.pid)], stderr=subprocess.PIPE, text=True) as watching,
    ):
        line = watching.stderr.readline()
        assert " attached" in line, line
        said, _ = watched.communicate("strace is attached\n", timeout=PATIENCE_S)
        watching.communicate(timeout=PATIENCE_S)
    assert not (is_expected_to_succeed and watched.returncode), said
    return said


def _calls(lines: Iterable[str]) -> Iterator[Traced]:
    begun: dict[str, str] = {}
    for line in lines:
        if match := _UNFINISHED.match(line):
            begun[match[1]] = line.removesuffix(" <unfinished ...>")
            continue
        if match := _RESUMED.match(line):
            line = begun.pop(match[1]) + match[2]
        if (match := _CALL.match(line)) and int(match[4]) >= 0:
            texts = [bytes.fromhex(each.replace("\\x", "")) for each in _TEXT.findall(match[3])]
            yield Traced(match[2], _TEXT.sub('""', match[3]), texts, int(match[4]))


@dataclass
class _File:
    content: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

    def write(self, data: bytes, offset: int) -> None:
        if len(self.content) < offset:
            self.content.extend(bytes(offset - len(self.content)))
        self.content[offset : offset + len(data)] = data

    def resize(self, size_bytes: int) -> None:
        del self.content[size_bytes:]
        self.content.extend(bytes(size_bytes - len(self.content)))


class TracedDisk:
    """The files of a directory, call after call."""

    def __init__(self, directory: Path) -> None:
        self._root = str(directory)
        self._names: dict[str, _File] = {}
        self._durable: dict[str, list[dict[str, _File]]] = {}
        """Of each directory: its names at its last sync, and as they were after each change since."""
        self._directories = {self._root}
        self._open: dict[int, tuple[str, _File | None, int, bool]] = {}
        self.said: list[str] = []
        """What the program has written to its standard output."""

    def do(self, call: Traced) -> None:
        """Follow one call."""
        name, numbers = call.name, [int(each) for each in re.findall(r"(?<![\w\"])(\d+)", call.arguments)]
        if name == "openat":
            self._do_open(call)
        elif name == "close":
            self._open.pop(numbers[0], None)
        elif name == "write" and numbers[0] == 1:
            self.said += call.texts[0].decode().split("\n")[:-1]
        elif name in {"write", "pwrite64", "ftruncate", "fallocate", "fsync", "fdatasync"}:
            self._do_to_file(call, numbers)
        elif name in {"unlink", "unlinkat"}:
            self._name(self._path(call.texts[0]), None)
        elif name in {"rename", "link"}:
            old, new = (self._path(each) for each in call.texts)
            file = self._names.get(old)
            if file is not None:
                if name == "rename":
                    self._names.pop(old)
                self._name(new, file)
        elif name == "mkdir" and self._path(call.texts[0]).startswith(self._root):
            self._directories.add(self._path(call.texts[0]))

    def _do_open(self, call: Traced) -> None:
        path = self._path(call.texts[0])
        if not path.startswith(self._root):
            self._open.pop(call.result, None)
            return
        file = self._names.get(path)
        if path not in self._directories:
            if file is None:
                file = _File()
                self._name(path, file)
            elif "O_TRUNC" in call.arguments:
                file.content.clear()
        self._open[call.result] = (path, file, 0, "O_APPEND" in call.arguments)

    def _do_to_file(self, call: Traced, numbers: list[int]) -> None:
        path, file, at, appends = self._open.get(numbers[0], ("", None, 0, False))
        if not path:
            return
        if file is None:
            self._durable[path] = [self._names_in(path)]
        elif call.name == "pwrite64":
            file.write(call.texts[0][: call.result], numbers[-1])
        elif call.name == "write":
            at = len(file.content) if appends else at
            file.write(call.texts[0][: call.result], at)
            self._open[numbers[0]] = (path, file, at + call.result, appends)
        elif call.name == "ftruncate":
            file.resize(numbers[-1])
        elif call.name == "fallocate":
            file.resize(max(len(file.content), numbers[-1] + numbers[-2]))
        else:
            file.synced = bytes(file.content)

    def leave(self, directory: Path, chance: random.Random) -> None:
        """Write what is left to another directory."""
        directory.mkdir(mode=0o700)
        for folder in sorted(self._directories):
            here = directory / os.path.relpath(folder, self._root)
            here.mkdir(mode=0o700, exist_ok=True)
            for path, file in chance.choice([*self._durable.get(folder, [{}]), self._names_in(folder)]).items():
                (here / Path(path).name).write_bytes(_left(file, chance))

    def _name(self, path: str, file: _File | None) -> None:
        if not path.startswith(self._root):
            return
        folder = str(Path(path).parent)
        self._durable.setdefault(folder, [{}]).append(self._names_in(folder))
        if file is None:
            self._names.pop(path, None)
        else:
            self._names[path] = file

    def _names_in(self, folder: str) -> dict[str, _File]:
        return {path: file for path, file in self._names.items() if str(Path(path).parent) == folder}

    @staticmethod
    def _path(text: bytes) -> str:
        return os.path.abspath(os.fsdecode(text))


def _left(file: _File, chance: random.Random) -> bytes:
    old, new = file.synced, bytes(file.content)
    size = chance.choice([len(old), len(new)])
    likely_new = chance.choice([0.0, 0.5, 1.0])
    left = bytearray()
    for at in range(0, size, SECTOR_BYTES):
        source = new if chance.random() < likely_new else old
        left += source[at : at + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0")
    return bytes(left[:size])
