"""The site's page of the names for programs has each of them, with an example where it does something."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import qsctl

BUILD = Path(__file__).parents[1] / ".docs" / "build.py"


@pytest.fixture(scope="module")
def build() -> ModuleType:
    pytest.importorskip("sphinx", reason="sphinx is not installed: it is of the extra docs")
    specification = importlib.util.spec_from_file_location("docs_build", BUILD)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_promised_name_is_on_the_page(build: ModuleType) -> None:
    page = build.reference()
    for package in build.PACKAGES:
        module = importlib.import_module(package)
        missing = [each for each in module.__all__ if not each.startswith("__") and f" {package}.{each}\n" not in page]
        assert missing == [], package


def test_the_page_is_of_the_packages_that_are_promised(build: ModuleType) -> None:
    promised = (Path(qsctl.__file__).parent / "docs" / "promises.md").read_text()
    assert [each for each in build.PACKAGES if f"`{each}`" not in promised] == []


def test_every_function_of_qsctl_shows_an_example() -> None:
    functions = [each for each in qsctl.__all__ if inspect.isfunction(getattr(qsctl, each))]
    assert "sweep" in functions
    shown = {each: f"{inspect.getdoc(getattr(qsctl, each))}" for each in functions}
    examples = {
        each: [line for line in text.splitlines() if line.lstrip().startswith((">>>", "..."))]
        for each, text in shown.items()
    }
    assert [each for each in functions if not any(f"qsctl.{each}(" in line for line in examples[each])] == []
