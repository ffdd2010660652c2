"""What the docstrings of the public surface show is what it does."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import qsctl
from qsctl.summary.spark.session import MASTER_VARIABLE
from tests.examples import run

PUBLIC = ("qsctl", "qsctl.summary", "qsctl.client", "qsctl.client.aio")


def test_a_program_simulates_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("qsctl")


@pytest.mark.spark
def test_a_notebook_summarizes_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(MASTER_VARIABLE, "local[2]")  # the session of the other tests: Java need not start once more
    run("qsctl.summary")
    assert (tmp_path / "tables" / "losses").is_dir()


def test_every_public_package_shows_an_example_and_lists_its_names() -> None:
    for name in PUBLIC:
        package = importlib.import_module(name)
        assert ">>> " in (inspect.getdoc(package) or ""), name
        assert all(each in package.__all__ for each in package.__all__), name
        for each in package.__all__:
            assert each.startswith("__") or inspect.getdoc(getattr(package, each)), f"{name}.{each}"


def test_importing_qsctl_imports_nothing_else_of_it() -> None:
    script = "import sys, qsctl; print(*(name for name in sys.modules if name.startswith('qsctl')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["qsctl"]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'qsctl' has no attribute 'nothing'"):
        qsctl.nothing  # type: ignore[attr-defined]  # noqa: B018
