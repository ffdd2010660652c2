"""The programs of `fixtures/foreign`, built and started, and a service on their queue.

Decides: how they are built without CMake, so that a test needs a compiler and the library alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.dds.c_peer import COMPILER, ENVIRONMENT, IDLC
from tests.dds.service_process import ServiceProcess
from tests.processes import run, running

ROOT = Path(__file__).parents[2]
FOREIGN = ROOT / "fixtures" / "foreign"
QUEUE_IDL = ROOT / "schemas" / "qsctl_queue.idl"
WRAPPERS = Path(__file__).parent / "peer" / "wrappers.py"

_CXX = shutil.which("c++") or shutil.which("g++")
_FASTDDSGEN = shutil.which("fastddsgen")
_FAST_HEADER = Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp")

needs_fast_dds = pytest.mark.skipif(
    _CXX is None or _FASTDDSGEN is None or not _FAST_HEADER.exists(),
    reason="needs a C++ compiler, and libfastrtps-dev and fastddsgen of Debian",
)

FOREIGN_ENVIRONMENT = {
    **ENVIRONMENT,
    "FASTRTPS_DEFAULT_PROFILES_FILE": str(FOREIGN / "cpp" / "loopback.xml"),
    "PYTHONDONTWRITEBYTECODE": "1",
}


def build_c(directory: Path, *programs: str) -> dict[str, Path]:
    """Build programs of `fixtures/foreign/c`; the path of each by its name."""
    for idl in (QUEUE_IDL, FOREIGN / "order.idl", FOREIGN / "hello_world.idl"):
        run([str(IDLC), str(idl)], cwd=directory, check=True)
    types = [f"-I{directory}", "qsctl_queue.c", "order.c", "hello_world.c"]
    for program in programs:
        source = str(FOREIGN / "c" / f"{program}.c")
        strict = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]
        command = [str(COMPILER), *strict, "-o", program, source, *types, "-lddsc"]
        run(command, cwd=directory, check=True)
    return {program: directory / program for program in programs}


def build_fast(directory: Path, *programs: str) -> dict[str, Path]:
    """Build programs of `fixtures/foreign/cpp` with the types that `fastddsgen` makes."""
    idls = (FOREIGN / "hello_world.idl",) if programs == ("hello_world",) else (QUEUE_IDL, FOREIGN / "order.idl")
    for idl in idls:
        run([str(_FASTDDSGEN), "-replace", "-d", str(directory), str(idl)], cwd=directory, check=True)

    def compile_one(source: Path) -> Path:
        made = directory / f"{source.name}.o"
        command = [str(_CXX), "-std=c++17", "-O1", f"-I{directory}", "-c", "-o", str(made), str(source)]
        run(command, cwd=directory, check=True)
        return made

    with ThreadPoolExecutor(2) as pool:
        types = list(pool.map(compile_one, sorted(directory.glob("*.cxx"))))
        mains = list(pool.map(compile_one, [FOREIGN / "cpp" / f"{each}.cpp" for each in programs]))
    built = {}
    for main in mains:
        name = f"fast_{main.name.partition('.')[0]}"
        objects = [str(each) for each in (main, *types)]
        run([str(_CXX), "-o", name, *objects, "-lfastrtps", "-lfastcdr"], cwd=directory, check=True)
        built[name] = directory / name
    return built


def python_program(name: str) -> list[str]:
    """The command of a program of `fixtures/foreign/python`: it must not see qsctl."""
    return [sys.executable, "-P", "-c", _WITHOUT_QSCTL, str(FOREIGN / "python"), name]


_WITHOUT_QSCTL = """
import runpy, sys
folder, name = sys.argv[1:3]
sys.path.insert(0, folder)
sys.modules["qsctl"] = None  # an import of it fails
sys.argv[:3] = [name]
runpy.run_path(f"{folder}/{name}", run_name="__main__")
"""


def wrapper(role: str, *arguments: object) -> list[str]:
    """The command of a program with qsctl's own wrappers."""
    return [sys.executable, str(WRAPPERS), role, str(FOREIGN / "queue.xml"), *map(str, arguments)]


class ForeignService(ServiceProcess):
    """A service on the queues of a file of `fixtures/foreign`, in a domain of the test."""

    def __init__(self, directory: Path, domain: int, response_timeout_s: int = 5, file: str = "queue.xml") -> None:
        text = (FOREIGN / file).read_text(encoding="utf-8")
        text = text.replace("<domain_id>0<", f"<domain_id>{domain}<").replace("<sec>5<", f"<sec>{response_timeout_s}<")
        storage = ("--persistent-storage-path", str(directory))
        super().__init__(directory, domain, *storage, configuration=self.changed(text))

    @staticmethod
    def changed(text: str) -> str:
        """The configuration that is served."""
        return text


@contextmanager
def program(command: Sequence[str | os.PathLike[str]], output: Path) -> Iterator[subprocess.Popen[str]]:
    """A program whose output is a file, while the block runs; it is in the domain's loopback only."""
    with (
        output.open("wb") as out,
        running(command, env=FOREIGN_ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=out, text=True) as process,
    ):
        yield process
