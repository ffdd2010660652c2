"""The example programs as processes."""

from __future__ import annotations

import doctest
import importlib


def run(module: str, **names: object) -> None:
    """Run the examples of a module's docstring; `names` are there already."""
    found = importlib.import_module(module)
    (example,) = [
        each
        for each in doctest.DocTestFinder().find(found, module, globs={**names})
        if each.name == module and each.examples
    ]
    outcome = doctest.DocTestRunner(verbose=False).run(example)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def run_all(module: str) -> None:
    """Run the examples of all docstrings of a module."""
    found = importlib.import_module(module)
    runner = doctest.DocTestRunner(verbose=False)
    for each in doctest.DocTestFinder().find(found, module):
        runner.run(each)
    outcome = runner.summarize(verbose=False)
    assert outcome.attempted > 0
    assert outcome.failed == 0
