"""Ready-made machine code of kernels gives what the compiler gives, and is refused where it does not fit."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qsctl.sim
from qsctl.errors import InvalidInput, Unavailable
from qsctl.sim import ready_kernels
from qsctl.sim.kernel import ready_made as loader
from qsctl.sim.kernel.jit import KERNELS, Kernel
from qsctl.sim.kernel.processor import baselines, best_baseline
from qsctl.sim.kernel.ready_made import INDEX, damaged, first_usable, layout_of, types_of, usable
from tests import processes

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
import sys
import numpy as np
from qsctl.sim.kernel.histogram import bucket_of
from qsctl.sim.kernel.random import exponential, logarithm, normal, uniform, uniform_bits

key = np.uint64(2**64 - 59)
print(bucket_of(10**9), uniform_bits(key, 7), uniform(key, 7).hex(), logarithm(3.7).hex(), exponential(0.3).hex())
print(normal(key, 8).hex())
print("numba" in sys.modules)
"""
MAKE = """
import os, sys
from pathlib import Path
os.environ["NUMBA_CACHE_DIR"] = os.devnull + "/none"
os.environ["QSCTL_KERNELS"] = os.devnull
from qsctl.sim import ready_kernels
ready_kernels._simulate = lambda scenarios, report: exec(scenarios[0])
print(len(ready_kernels.make(Path(sys.argv[1]), (sys.argv[2],)).entries))
"""


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


def printed(folder: Path, program: str = PROGRAM, **variables: str) -> list[str]:
    done = processes.run(
        [sys.executable, "-c", program], env=environment(QSCTL_KERNELS=str(folder), **variables), check=True
    )
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small kernels, made by a process of its own."""
    if best_baseline() is None:
        pytest.skip("machine code is not shared on this architecture")
    if not ready_kernels.can_make():
        pytest.skip("llvmlite loads ready-made kernels, and is too old to make them")
    folder = tmp_path_factory.mktemp("ready") / "kernels"
    done = processes.run([sys.executable, "-c", MAKE, str(folder), PROGRAM], env=environment(), check=True)
    assert int(done.stdout.split()[-1]) >= 6
    return folder


def changed(made: Path, tmp_path: Path, **values: Any) -> Path:
    folder = tmp_path / "changed"
    shutil.copytree(made, folder)
    index = json.loads((folder / INDEX).read_text())
    (folder / INDEX).write_text(json.dumps({**index, **values}))
    return folder


def test_an_llvmlite_that_cannot_make_them_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_kernels, "can_make", lambda: False)
    with pytest.raises(Unavailable, match=r"llvmlite .* cannot make them"):
        ready_kernels.make(tmp_path / "kernels")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_ready_made_kernels_give_what_compiled_ones_give_without_numba(made: Path, tmp_path: Path) -> None:
    *ready, has_numba = printed(made)
    *compiled, has_numba_too = printed(tmp_path / "none")
    assert ready == compiled
    assert (has_numba, has_numba_too) == ("False", "True")


def test_ready_made_kernels_need_no_home_and_no_folder_to_write_to(made: Path) -> None:
    found = printed(made, HOME=os.devnull, XDG_CACHE_HOME=os.devnull, NUMBA_CACHE_DIR=os.devnull)
    assert found[-1] == "False"


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"sources": "0" * 32}, "other sources"),
        ({"features": ["avx2", "of-the-future"]}, "this processor lacks of-the-future"),
        ({"triple": "riscv64-unknown-linux-gnu"}, "it was made for riscv64"),
        ({"format": 99}, "format 99"),
        ({"entries": 3}, "cannot be read"),
    ],
)
def test_ready_made_kernels_are_refused_where_they_do_not_fit(
    made: Path, tmp_path: Path, values: dict[str, Any], why: str
) -> None:
    folder = changed(made, tmp_path, **values)
    index, found = usable(folder)
    assert index is None
    assert why in found
    assert printed(folder)[-1] == "True"


@pytest.mark.slow
def test_a_damaged_or_missing_object_file_is_never_loaded(made: Path, tmp_path: Path) -> None:
    folder = changed(made, tmp_path)
    files = sorted(folder.glob("*.o"))
    for each in files[::2]:
        each.write_bytes(b"\x7fELF" + each.read_bytes()[8:])
    for each in files[1::2]:
        each.unlink()
    *values, has_numba = printed(folder)
    assert has_numba == "True"
    assert values == printed(made)[:-1]


@pytest.mark.slow
def test_a_function_that_the_c_library_lacks_is_not_called(made: Path, tmp_path: Path) -> None:
    index = json.loads((made / INDEX).read_text())
    entries = [{**each, "needs": ["no_such_function"]} for each in index["entries"]]
    assert printed(changed(made, tmp_path, entries=entries))[-1] == "True"


@pytest.mark.slow
def test_ready_scenarios_call_every_kernel_that_python_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in pkgutil.walk_packages(qsctl.sim.__path__, "qsctl.sim."):
        importlib.import_module(module.name)
    called: set[str] = set()
    plain = Kernel.__call__

    def noting(self: Kernel, *arguments: Any, **named: Any) -> Any:
        called.add(self.name)
        return plain(self, *arguments, **named)

    monkeypatch.setattr(Kernel, "__call__", noting)
    reported: list[tuple[int, int]] = []
    ready_kernels._simulate(ready_kernels.SCENARIOS, lambda done, total, _: reported.append((done, total)))
    assert reported == [(done, len(reported)) for done in range(len(reported))]
    left = {name.removeprefix("qsctl.sim.") for name in KERNELS if name.startswith("qsctl.")} - {
        name.removeprefix("qsctl.sim.") for name in called
    }
    only_called_by_kernels = {"kernel.histogram.bucket_of", "kernel.histogram.count_unfinished"}
    only_called_by_kernels |= {
        f"kernel.random.{name}" for name in ("beyond_tail", "normal", "normal_by_rejection", "with_sign")
    }
    of_the_page_alone = {"depth_moves.count_moves"}
    assert left == only_called_by_kernels | of_the_page_alone


def test_kernels_that_a_user_made_are_used_after_those_of_the_installation(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QSCTL_KERNELS", raising=False)
    monkeypatch.setattr(loader, "INSTALLED", tmp_path / "none")
    monkeypatch.setattr(loader, "OWN", tmp_path / "none")
    assert first_usable() is None
    monkeypatch.setattr(loader, "OWN", made)
    found = first_usable()
    assert found is not None
    assert found[0] == made
    assert damaged(*found) == []
    monkeypatch.setattr(loader, "INSTALLED", copied := changed(made, tmp_path))
    found = first_usable()
    assert found is not None
    assert found[0] == copied
    (broken, missing, *_) = sorted(copied.glob("*.o"))
    broken.write_bytes(b"none")
    missing.unlink()
    assert sorted(damaged(*found)) == sorted([broken.name, missing.name])


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if best_baseline() is None or not ready_kernels.can_make():
        pytest.skip("kernels cannot be made here")
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(ready_kernels, "_simulate", lambda *_: pytest.fail("it compiles"))
    with pytest.raises(InvalidInput, match="cannot be written"):
        ready_kernels.make(tmp_path / "file" / "kernels")


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    done = processes.run(
        [sys.executable, "-m", "qsctl.sim.ready_kernels", str(tmp_path)], env=environment(), check=False
    )
    assert done.returncode == 1
    assert "has other files" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["letter"]


def test_the_types_of_a_call_differ_by_layout_and_kind_of_number() -> None:
    rows = np.dtype([("time", "i8"), ("client", "i4")], align=True)
    packed = np.dtype([("time", "i8"), ("client", "i4")])
    assert layout_of(rows) != layout_of(packed)
    array = np.zeros(4, rows)
    locked = array.copy()
    locked.flags.writeable = False
    kinds = types_of((array, array[::2], locked, 1, 2**63, np.uint64(1), 1.0, True))
    assert kinds[0].startswith("array ")
    assert kinds[1:] == ("other", "other", "int64", "int", "uint64", "float64", "bool")


def test_baselines_demand_less_and_less() -> None:
    demands = [each.features for each in baselines()]
    assert demands == sorted(demands, key=len, reverse=True)
