"""Tests may be asked for in any order: each has the fixtures of its folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.processes import run

ROOT = Path(__file__).parent.parent


def test_a_file_between_two_of_a_folder_leaves_both_their_fixtures() -> None:
    asked = ["tests/dds/test_story.py", "tests/test_own_folder.py", "tests/dds/test_limits.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = run([sys.executable, "-m", "pytest", "--setup-plan", "--quiet", *asked], cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("SETUP    F domain") > len(asked)
