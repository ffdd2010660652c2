"""Exported ranges of Prometheus: rates of equal length that are finite, or `InvalidInput` or `NotFound`."""

from __future__ import annotations

import math

from qsctl.broker.prometheus import POINTS_MAX, read_range
from qsctl.errors import InvalidInput, NotFound

DICTIONARY = (
    b'{"data": {"resultType": "matrix", "result": [', b'{"metric": {"__name__": "a_total"}, "values": [', b'[1, "2"]',
    b"NaN", b'"NaN"', b'"+Inf"', b"1e308", b'"1e308"', b"-1", b"null", b"[", b"]", b"}", b",", b"1764183600.5",
)  # fmt: skip
SHORT_COUNT = 300


def one_input(data: bytes) -> None:
    try:
        found = read_range(data, "f")
    except (InvalidInput, NotFound) as error:
        assert error.message.startswith("f")
        assert error.message.isprintable()
        return
    assert found.series
    assert 0 < found.step_s < math.inf
    assert len({len(each.values) for each in found.series}) == 1
    for each in found.series:
        assert 0 < len(each.values) <= POINTS_MAX
        assert all(0 <= value < math.inf for value in each.values)
