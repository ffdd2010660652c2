"""Quantiles of Student's t against printed tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.summary.inference.student import _two_sided, t_quantile


@pytest.mark.parametrize(
    ("confidence", "freedom", "quantile"),
    [(0.95, 1, 12.7062047362), (0.95, 9, 2.2621571628), (0.99, 4, 4.6040948713), (0.9, 30, 1.6972608866)],
)
def test_quantiles_are_those_of_the_tables(confidence: float, freedom: int, quantile: float) -> None:
    assert t_quantile(confidence, freedom) == pytest.approx(quantile, rel=1e-9)


@given(st.floats(0.01, 0.999), st.integers(1, 10_000))
def test_a_quantile_holds_its_probability(confidence: float, freedom: int) -> None:
    assert _two_sided(t_quantile(confidence, freedom), freedom) == pytest.approx(confidence, abs=1e-9)


@pytest.mark.parametrize(("confidence", "freedom"), [(0.0, 3), (1.0, 3), (0.95, 0)])
def test_what_is_no_confidence_or_has_no_freedom_is_refused(confidence: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(confidence, freedom)
