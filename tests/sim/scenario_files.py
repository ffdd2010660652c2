"""Scenarios as text, and what reading them reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.declared.problems import InvalidFile
from qsctl.sim.scenario.xml import read_scenario


def written(folder: Path, text: str, name: str = "scenario.xml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(folder: Path, text: str, **variables: str) -> list[tuple[int, str]]:
    with pytest.raises(InvalidFile) as caught:
        read_scenario(written(folder, text), variables, {})
    return [(problem.line, problem.message) for problem in caught.value.problems]
