"""Programs with the wrappers are clean for type checkers in their strict modes, and wrong ones are not.

Each checker runs once over all of them: nearly all that it does is to read qsctl and the libraries that it imports.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.documents import page, programs

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).parent / "type_checked" / "wrappers.py"
WRONG = {at for at, line in enumerate(FILE.read_text().splitlines(), 1) if line.endswith("# expected error")}
OF_THE_PAGE = {f"program_{at}.py": text for at, text in enumerate(programs(page("programs")), 1)}
"""The five programs of the page `programs`, by the name of a file."""

Found = dict[str, dict[int, str]]
"""The errors, by file and line."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in {FILE.name: FILE.read_text(), **OF_THE_PAGE}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def found_by_mypy(written: Path) -> Found:
    """Findings of mypy by the settings of this repository, which are strict, and its cache of qsctl."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed: it is of the extra dev")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *map(str, sorted(written.glob("*.py")))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1, done.stdout + done.stderr
    found: Found = {name: {} for name in (FILE.name, *OF_THE_PAGE)}
    for line in done.stdout.splitlines():
        where = re.match(r"(.+\.py):(\d+): (error.*)", line)
        if where is not None:
            found.setdefault(Path(where[1]).name, {})[int(where[2])] = where[3]
    return found


@pytest.fixture(scope="module")
def found_by_pyright(written: Path) -> Found:
    if find_spec("pyright") is None or shutil.which("node") is None:
        pytest.skip("pyright, or node that it needs, is not installed")
    settings = {"typeCheckingMode": "strict", "include": ["*.py"], "extraPaths": [str(ROOT)]}
    (written / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(written)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not run here: {done.stderr[:200]}")
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1 + len(OF_THE_PAGE)
    found: Found = {name: {} for name in (FILE.name, *OF_THE_PAGE)}
    for each in report["generalDiagnostics"]:
        found.setdefault(Path(each["file"]).name, {})[each["range"]["start"]["line"] + 1] = each["message"]
    return found


@pytest.mark.slow
def test_mypy_finds_the_planted_errors_and_no_others(found_by_mypy: Found) -> None:
    assert set(found_by_mypy[FILE.name]) == WRONG, found_by_mypy


@pytest.mark.slow
def test_pyright_finds_the_planted_errors_and_no_others(found_by_pyright: Found) -> None:
    assert set(found_by_pyright[FILE.name]) == WRONG, found_by_pyright


def test_mypy_finds_nothing_in_the_programs_of_the_page(found_by_mypy: Found) -> None:
    assert {name: errors for name, errors in found_by_mypy.items() if errors} == {FILE.name: found_by_mypy[FILE.name]}


def test_pyright_finds_nothing_in_the_programs_of_the_page(found_by_pyright: Found) -> None:
    assert {name: errors for name, errors in found_by_pyright.items() if errors} == {
        FILE.name: found_by_pyright[FILE.name]
    }
