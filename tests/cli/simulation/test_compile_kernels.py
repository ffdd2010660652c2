"""`qsctl compile` makes kernels where there are none, and `qsctl doctor` shows which are used."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qsctl.errors import InvalidInput, Unavailable
from qsctl.sim import ready_kernels
from qsctl.sim.kernel import jit
from qsctl.sim.kernel import ready_made as loader
from qsctl.sim.kernel.processor import best_baseline
from qsctl.sim.kernel.ready_made import FORMAT, INDEX, KernelEntry, KernelIndex, digest_of
from tests.cli.simulation.small_runs import qsctl

CHILD = """
import sys
from pathlib import Path
folder = Path(sys.argv[1])
print("0 of 2: burst", flush=True)
print("1 of 2: clinic", flush=True)
{does}
"""


def filled(folder: Path, *, data: bytes = b"code") -> Path:
    """Write an index with one object file, for this machine and these sources."""
    from llvmlite import binding

    if (baseline := best_baseline()) is None:
        pytest.skip("machine code is not shared on this architecture")
    folder.mkdir(parents=True, exist_ok=True)
    entry = KernelEntry("qsctl.none", (), (), "none", "000.o", digest_of(b"code"), ())
    index = KernelIndex(FORMAT, loader.sources_digest(), str(binding.get_process_triple()), baseline.name, (), (entry,))
    (folder / INDEX).write_bytes(msgspec.json.encode(index))
    (folder / "000.o").write_bytes(data)
    return folder


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The installation's folder and the user's, both not there yet."""
    monkeypatch.delenv("QSCTL_KERNELS", raising=False)
    found = tmp_path / "installed", tmp_path / "cache" / "own"
    monkeypatch.setattr(loader, "INSTALLED", found[0])
    monkeypatch.setattr(loader, "OWN", found[1])
    return found


def made_by(does: str, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Have another program make the kernels; return the commands that were started."""
    from qsctl.cli.simulation import compile_kernels as command

    started: list[list[str]] = []
    plain = command.subprocess.Popen

    def popen(line: list[str], **options: Any) -> Any:
        started.append(line)
        return plain([line[0], "-c", CHILD.replace("{does}", does), line[-1]], **options)

    monkeypatch.setattr(command.subprocess, "Popen", popen)
    return started


def kernels_finding() -> dict[str, Any]:
    findings = json.loads(qsctl("doctor", "-o", "json").stdout)["findings"]
    return next(each for each in findings if each["part"] == "compiled kernels")


def test_kernels_of_the_installation_are_not_made_again(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(folders[0])
    started = made_by("raise SystemExit(1)", monkeypatch)
    done = json.loads(qsctl("compile", "-o", "json").stdout)
    assert (done["folder"], done["kernels"], done["made"], started) == (str(folders[0]), 1, False, [])
    finding = kernels_finding()
    assert finding["good"]
    assert str(folders[0]) in finding["found"]


def test_kernels_are_made_in_the_users_cache_by_the_installation(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = kernels_finding()
    assert (finding["good"], finding["needed"]) == (False, False)
    assert "qsctl compile" in finding["remedy"]
    filled(tmp_path / "ready")
    started = made_by("import shutil; shutil.copytree(%r, folder)" % str(tmp_path / "ready"), monkeypatch)  # noqa: UP031
    done = json.loads(qsctl("compile", "-o", "json").stdout)
    assert (done["folder"], done["made"]) == (str(folders[1]), True)
    assert started[0][1:] == ["-P", "-m", ready_kernels.__name__, str(folders[1])]
    assert kernels_finding()["good"]
    assert not json.loads(qsctl("compile", "-o", "json").stdout)["made"]


def test_damaged_kernels_are_reported_and_made_again_in_their_place(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(folders[1], data=b"other")
    finding = kernels_finding()
    assert not finding["good"]
    assert "1 of 1 files are damaged" in finding["found"]
    started = made_by("(folder / '000.o').write_bytes(b'code')", monkeypatch)
    assert json.loads(qsctl("compile", "-o", "json").stdout)["made"]
    assert started[0][-1] == str(folders[1])


@pytest.mark.parametrize(
    ("does", "status", "text"),
    [
        ("print('/x cannot be written: it is full'); raise SystemExit(1)", InvalidInput.exit_status, "it is full"),
        (
            "print('too old'); print('Newer.'); raise SystemExit(7)",
            Unavailable.exit_status,
            "Newer.",
        ),
        ("raise TypeError('no such type')", Unavailable.exit_status, "the compiler failed: TypeError: no such type"),
        ("import os; os.kill(os.getpid(), 9)", Unavailable.exit_status, "ended with -9"),
        ("", Unavailable.exit_status, "cannot be used here"),
    ],
)
def test_what_cannot_be_made_is_one_message_with_its_exit_status(
    does: str, status: int, text: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made_by(does, monkeypatch)
    done = qsctl("compile")
    assert done.exit_code == status
    assert text in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_an_installation_without_the_compiler_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.cli.simulation.compile_kernels.is_missing", lambda module: module == "numba")
    done = qsctl("compile")
    assert done.exit_code == Unavailable.exit_status
    assert "this needs numba, for simulations" in done.stderr


def test_kernels_of_plain_python_are_not_compiled(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "COMPILED", False)
    done = qsctl("compile")
    assert done.exit_code == Unavailable.exit_status
    assert "NUMBA_DISABLE_JIT" in done.stderr


def test_kernels_for_another_machine_are_named_by_doctor(folders: tuple[Path, Path]) -> None:
    index = json.loads((filled(folders[0]) / INDEX).read_text())
    (folders[0] / INDEX).write_text(json.dumps({**index, "features": ["of-the-future"]}))
    found = kernels_finding()["found"]
    assert "this processor lacks of-the-future" in found


def test_chosen_folder_is_the_only_one(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    filled(folders[0])
    monkeypatch.setenv("QSCTL_KERNELS", os.devnull)
    assert loader.first_usable() is None
