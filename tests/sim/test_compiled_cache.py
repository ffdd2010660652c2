"""Where compiled code is kept: the simulator's in a directory of its own, the caller's where the caller had it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import filelock
import pytest

from qsctl.sim.kernel._unused_caches import UNUSED_AFTER_S
from qsctl.sim.kernel.cache_directory import CACHE_DIRECTORY, opened
from tests import processes
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parent.parent.parent

PROGRAM = """
import sys
from pathlib import Path

import numba

before = numba.config.CACHE_DIR
import qsctl.sim.egress.runs._run
from qsctl.sim.egress.runs._advance import advance
from qsctl.sim.kernel.cache_directory import CACHE_DIRECTORY
from qsctl.sim.kernel._compiler import CACHED
from callers import twice

assert numba.config.CACHE_DIR == before
assert twice(21) == 42
assert CACHED
print(CACHE_DIRECTORY)
print(advance.stats.cache_path)
print(twice.stats.cache_path)
"""

CALLERS = """
import numba


@numba.njit(cache=True)
def twice(value):
    return 2 * value
"""


@pytest.mark.slow
def test_importing_the_kernels_leaves_the_callers_cache_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "callers.py").write_text(CALLERS)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{tmp_path}", "XDG_CACHE_HOME": str(tmp_path)}
    done = processes.run([sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, check=True)
    ours, kernels, callers = map(Path, done.stdout.split())
    assert ours in kernels.parents
    assert callers == tmp_path / "__pycache__"


TOGETHER = """
from qsctl.sim.kernel.compilations import compilation_reported
from called import plus_one

with compilation_reported(lambda: print("compiles or waits", flush=True)):
    assert plus_one(41) == 42
print(sum(plus_one.stats.cache_misses.values()), sum(plus_one.stats.cache_hits.values()))
"""

CALLED = """
from qsctl.sim.kernel.jit import kernel


@kernel
def plus_one(value):
    return value + 1
"""


@pytest.mark.slow
def test_of_processes_that_start_together_one_compiles_and_the_others_take_it_over(tmp_path: Path) -> None:
    (tmp_path / "called.py").write_text(CALLED)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{tmp_path}", "XDG_CACHE_HOME": str(tmp_path)}
    directory = tmp_path / "qsctl" / CACHE_DIRECTORY.name
    directory.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        with filelock.FileLock(directory / "compiling.lock"):
            both = [
                stack.enter_context(
                    processes.running(
                        [sys.executable, "-c", TOGETHER],
                        env=environment,
                        cwd=tmp_path,
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                )
                for _ in range(2)
            ]
            for each in both:
                assert each.stdout is not None
                assert each.stdout.readline() == "compiles or waits\n"
        found = sorted(each.communicate(timeout=PATIENCE_S)[0].split() for each in both)
    assert found == [["0", "1"], ["1", "0"]], "misses and hits of each"


COPIED = """
import sys
from qsctl.sim.kernel.histogram import bucket_of

print(bucket_of(10**9), *(sum(each.values()) for each in (bucket_of.stats.cache_misses, bucket_of.stats.cache_hits)))
print(sys.modules[bucket_of.__module__].__file__)
"""


@pytest.mark.slow
def test_every_copy_of_the_same_sources_has_what_one_of_them_compiled(tmp_path: Path) -> None:
    found = []
    for name in ("first", "second"):
        package = tmp_path / name / "qsctl"
        package.mkdir(parents=True)
        for each in (ROOT / "qsctl").iterdir():
            if each.name != "sim":
                (package / each.name).symlink_to(each)
        shutil.copytree(ROOT / "qsctl/sim", package / "sim", copy_function=shutil.copy)  # with other times
        environment = {
            "PATH": "/usr/bin:/bin", "PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }  # fmt: skip
        done = processes.run([sys.executable, "-c", COPIED], env=environment, cwd=tmp_path, check=True)
        bucket, misses, hits, file = done.stdout.split()
        assert file.startswith(f"{package}/")
        found.append((bucket, misses, hits))
    assert found == [(found[0][0], "1", "0"), (found[0][0], "0", "1")]


@pytest.mark.slow
def test_an_edited_file_of_another_package_is_compiled_anew(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{tmp_path}", "XDG_CACHE_HOME": str(tmp_path)}
    program = "from called import plus_one; print(plus_one(41), sum(plus_one.stats.cache_misses.values()))"
    found = []
    for text in (CALLED, CALLED, CALLED.replace("+ 1", "+ 2")):
        (tmp_path / "called.py").write_text(text)
        os.utime(tmp_path / "called.py", times=(0, 0))
        done = processes.run(
            [sys.executable, "-B", "-c", program], env=environment, cwd=tmp_path, check=True
        )  # fmt: skip
        found.append(done.stdout.split())
    assert found == [["42", "1"], ["42", "0"], ["43", "1"]]


def directory_of(root: Path, number: int, unused_s: float) -> Path:
    """What a version compiled, which was used last so long ago."""
    made = root / f"kernels-{number:016x}"
    (made / "egress").mkdir(parents=True)
    (made / "egress" / "advance.nbc").write_bytes(b"code")
    os.utime(made, times=(time.time(), time.time() - unused_s))
    return made


def test_a_version_that_makes_its_directory_removes_those_that_were_unused_for_weeks(tmp_path: Path) -> None:
    old, other = directory_of(tmp_path, 1, UNUSED_AFTER_S + 3600), directory_of(tmp_path, 2, UNUSED_AFTER_S - 3600)
    foreign, linked = tmp_path / "index", tmp_path / f"kernels-{3:016x}"
    foreign.mkdir()
    linked.symlink_to(foreign, target_is_directory=True)
    for each in (foreign, linked):
        os.utime(each, times=(0, 0), follow_symlinks=False)
    made = tmp_path / f"kernels-{4:016x}"
    assert opened(made)
    assert sorted(tmp_path.iterdir()) == sorted([foreign, linked, made, other])
    assert (other / "egress" / "advance.nbc").exists()
    assert not old.exists()


def test_a_directory_that_is_used_is_marked_and_keeps_what_was_compiled(tmp_path: Path) -> None:
    used, old = directory_of(tmp_path, 1, UNUSED_AFTER_S + 3600), directory_of(tmp_path, 2, UNUSED_AFTER_S + 3600)
    assert opened(used)
    assert old.exists(), "the cache does not grow by a use, and what is old may be another environment's"
    assert opened(tmp_path / f"kernels-{3:016x}")
    assert (used / "egress" / "advance.nbc").exists()
    assert not old.exists()


def test_where_no_directory_can_be_made_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not opened(tmp_path / "file")
    assert not opened(tmp_path / "file" / "kernels")
