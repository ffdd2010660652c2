"""Programs with the wrappers are clean for type checkers in their strict modes, and wrong ones are not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "type_checked" / "wrappers.py"
WRONG = {at for at, line in enumerate(FILE.read_text().splitlines(), 1) if line.endswith("# expected error")}

pytestmark = pytest.mark.slow


def test_mypy_finds_the_planted_errors_and_no_others(tmp_path: Path) -> None:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed: it is of the extra dev")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-error-summary", "--cache-dir"]
    done = subprocess.run([*command, str(tmp_path), "--config-file", "", str(FILE)], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    found = {int(each[1]) for line in lines if (each := re.match(rf".*{FILE.name}:(\d+): error", line))}
    assert found == WRONG, done.stdout + done.stderr


def test_pyright_finds_the_planted_errors_and_no_others(tmp_path: Path) -> None:
    if find_spec("pyright") is None or shutil.which("node") is None:
        pytest.skip("pyright, or node that it needs, is not installed")
    settings = {
        "typeCheckingMode": "strict",
        "include": ["program.py"],
        "extraPaths": [str(Path(__file__).parents[2])],
        "reportUnusedExpression": False,
    }
    (tmp_path / "program.py").write_text(FILE.read_text())
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not run here: {done.stderr[:200]}")
    reports = json.loads(done.stdout)["generalDiagnostics"]
    found = {each["range"]["start"]["line"] + 1: each["message"] for each in reports}
    assert set(found) == WRONG, found
