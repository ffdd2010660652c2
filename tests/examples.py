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
