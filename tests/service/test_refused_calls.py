"""What the system refuses is reported as that, never as damage: a full disk, or one that fails [QS 2.14.2]."""

from __future__ import annotations

import atexit
import random
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from qsctl.service.directory.embedded import open_embedded
from qsctl.storage.damage import DamageKind
from tests.campaigns import trials
from tests.service.embedded_commands import messages
from tests.service.injected_program import QUEUES, fill
from tests.service.traced_program import configuration
from tests.storage.traced_disk import count_calls, injected, needs_strace

EVERY = bool(trials("QSCTL_TEST_EVERY_CALL", 0, 1))
"""Whether each call is refused once; else some of them, which are drawn."""

DRAWN = 2
ERRORS = {
    "pwrite64": ("ENOSPC", "EIO"),
    "fdatasync": ("EIO",),
    "ftruncate": ("EIO",),
    "openat": ("ENOSPC", "EMFILE"),
    "unlink": ("EIO",),
    "fallocate": ("ENOSPC",),
    "pread64": ("EIO",),
}
CASES = [(mode, call, error) for mode in ("DELETE", "WAL") for call, errors in ERRORS.items() for error in errors]


@cache
def filled(journal_mode: str) -> Path:
    folder = mkdtemp(prefix="qsctl-refused-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    state_dir = Path(folder) / "st"
    fill(state_dir, journal_mode)
    return state_dir


def files_of(state_dir: Path) -> list[Path]:
    """Return the names of the databases' files, and of what the library puts beside them."""
    databases = [each for each in state_dir.iterdir() if each.suffix == ".db" and "_" not in each.stem]
    return [each.with_name(each.name + suffix) for each in databases for suffix in ("", "-journal", "-wal", "-shm")]


@cache
def made_calls(journal_mode: str) -> Counter[str]:
    """Return how often the program makes each call about the databases' files."""
    with TemporaryDirectory(prefix="qsctl-counted-") as folder:
        state_dir = Path(folder) / "st"
        shutil.copytree(filled(journal_mode), state_dir)
        program = ("tests.service.injected_program", str(state_dir), journal_mode)
        return count_calls(program, files_of(state_dir), ERRORS, Path(folder) / "trace")


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@needs_strace
@pytest.mark.parametrize(("journal_mode", "call", "error"), CASES)
def test_what_the_system_refuses_of_a_database_is_not_reported_as_damage(
    tmp_path: Path, journal_mode: str, call: str, error: str
) -> None:
    program = ("tests.service.injected_program", str(tmp_path / "st"), journal_mode)
    count = made_calls(journal_mode)[call]
    chance = random.Random(f"{journal_mode} {call} {error}")
    drawn = range(1, count + 1) if EVERY else sorted(chance.sample(range(1, count + 1), min(DRAWN, count)))
    problems = []
    for number in drawn:
        shutil.rmtree(tmp_path / "st", ignore_errors=True)
        shutil.copytree(filled(journal_mode), tmp_path / "st")
        paths = files_of(tmp_path / "st")
        said = injected(program, paths, call, error, number, tmp_path / "trace").splitlines()
        kinds = {line.split()[0] for line in said}
        if kinds - ({"DiskFull", "DiskFailed"} if error == "ENOSPC" else {"DiskFailed"}):
            problems.append((number, count, said))
        problems += [(number, count, path.name) for path in (tmp_path / "st").iterdir() if ".damaged" in path.name]
        with open_embedded(tmp_path / "st", configuration=configuration("FULL", journal_mode)) as service:
            problems += [(number, str(each)) for each in service.damage if each.kind is not DamageKind.TORN_TAIL]
            for name in QUEUES:
                found = {each.payload for each in messages(service, name)}
                if not {f"{name} {at}".encode() for at in range(1, 4)} <= found:
                    problems.append((number, name, found))
    assert not problems, problems
