"""Compare what workers report with what a run without them prints."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.processes import run

ROOT = Path(__file__).parent.parent
TESTS = """
import pytest

@pytest.fixture
def broken_at_its_end():
    yield
    raise LookupError("at its end")

@pytest.fixture
def broken():
    raise LookupError("at its begin")

def test_passes(): print("of the call")
def test_fails(): assert False
def test_is_skipped(): pytest.skip("for a reason")
def test_fails_at_its_end(broken_at_its_end): print("before its end")
def test_fails_at_its_begin(broken): ...
@pytest.mark.xfail
def test_is_expected_to_fail(): assert False
"""


def test_a_worker_reports_all_that_is_not_passed(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "tests.worker_reports", "--rootdir", str(tmp_path)]
    printed = [
        run([*command, "--numprocesses", number, str(tmp_path)], cwd=ROOT, env=environment).stdout
        for number in ("0", "1")
    ]
    summaries = [sorted(re.findall(r"^(?:[A-Z]{5,} .*|=+ .* in )", text, re.MULTILINE)) for text in printed]
    assert summaries[0] == summaries[1]
    assert "1 failed, 2 passed, 1 skipped, 1 xfailed, 2 errors" in summaries[0][0]
    assert all("before its end" in text for text in printed)
