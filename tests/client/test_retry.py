"""Attempts and pauses."""

from __future__ import annotations

import pytest

from qsctl.client import Retry
from qsctl.errors import UsageError
from tests.examples import run


def test_the_examples_are_true() -> None:
    run("qsctl.client._retry")


def test_pauses_grow_to_their_bound_and_jitter_only_shortens_them() -> None:
    for jitter in (0.0, 0.5, 1.0):
        pauses = list(Retry(attempts=6, first_s=1.0, factor=2.0, longest_s=5.0, jitter=jitter).pauses())
        for pause, longest in zip(pauses, [1.0, 2.0, 4.0, 5.0, 5.0], strict=True):
            assert longest * (1 - jitter) <= pause <= longest
    assert list(Retry(attempts=1).pauses()) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"attempts": 0}, "attempts 0"),
        ({"first_s": -1.0}, "first_s"),
        ({"factor": 0.5}, "factor"),
        ({"longest_s": float("nan")}, "longest_s"),
        ({"longest_s": float("inf")}, "longest_s"),
        ({"jitter": 1.5}, "jitter"),
    ],
)
def test_values_out_of_range_are_refused(arguments: dict[str, float], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        Retry(**arguments)  # type: ignore[arg-type]
