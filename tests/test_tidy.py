"""The repository read as text: small files, no leftovers, nothing that only holds on one machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP_LEVEL = {"pyproject.toml", "README.md", "LICENSE", "qsctl", "fixtures", "schemas", "tests", "completions"}
LONGEST_FILE_LINES = 400


def tracked() -> list[Path]:
    """Files under version control, or all of a tree that came without it."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]


FILES = tracked()
SOURCES = [path for path in FILES if path.suffix == ".py"]
MODULES = [path for path in SOURCES if path.is_relative_to(ROOT / "qsctl")]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_source_file_is_small_enough_to_hold_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_leftovers(path: Path) -> None:
    if path == Path(__file__):
        return
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError|assert True\b|breakpoint\(\)", text)


def test_the_top_level_is_the_agreed_one() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES if not name(path).startswith(".")} == TOP_LEVEL


def imported_modules() -> set[str]:
    found: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def test_no_module_is_an_orphan() -> None:
    from qsctl.cli.app import COMMAND_MODULES

    used = imported_modules() | {f"qsctl.cli.{module}" for module in COMMAND_MODULES} | {"qsctl.__main__"}
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in MODULES if path.stem != "__init__"}
    assert sorted(modules - used) == []


def test_every_module_says_what_it_decides() -> None:
    silent = [name(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


def test_nothing_names_a_home_of_one_machine() -> None:
    pattern = re.compile(r"(?<![\w.])/(work|root|home/[a-z]+)/")
    named = [
        name(path)
        for path in FILES
        if path.suffix in {".py", ".md", ".toml", ".xml", ".xsd", ".txt", ""} and path != Path(__file__)
        and pattern.search(path.read_text(encoding="utf-8", errors="replace"))
    ]  # fmt: skip
    assert named == []


def test_only_the_edges_catch_everything_and_keep_it() -> None:
    """To tidy up and raise again is no catching; the writer thread hands its failure to those who wait for it.

    What goes wrong in a completer would be printed into the line that is being typed.
    The DDS library raises bare `Exception` for octets that are no sample: `types` makes that one error of its own.
    """
    edges = {
        "qsctl/cli/app.py",
        "qsctl/cli/completers.py",
        "qsctl/config/types.py",
        "qsctl/service/daemon.py",
        "qsctl/transport/dds/boundary.py",
    }
    caught = {
        name(path)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    }
    assert caught <= edges


def test_only_the_renderer_prints() -> None:
    printers = {
        name(path)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printers <= {"qsctl/cli/output/render.py"}
