"""Range queries of Prometheus: series of values over time, from the HTTP API or from a file with its reply.

Decides which values are accepted. A value that is negative or not a finite number becomes 0 and is counted; a step for
which a series has no value becomes 0.

Source: Prometheus documentation, "HTTP API", range queries.
"""

from __future__ import annotations

import itertools
import json
import math
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qsctl.broker.client import HttpClient
from qsctl.declared.problems import shown
from qsctl.errors import InvalidInput, NotFound

POINTS_MAX: Final = 11_000
"""Largest number of values in a series, the limit of a server for one request."""
SERIES_MAX: Final = 10_000
FILE_BYTES_MAX: Final = 64 * 1024 * 1024
_GAP_MIN_S: Final = 0.001
"""Values of which the times differ by less than this many seconds belong to one instant."""
_NOT_A_RANGE: Final = "Export the reply to /api/v1/query_range as it is."
_NOT_PROMETHEUS: Final = "Check that the address is that of a Prometheus server, and the query."


@dataclass(frozen=True, slots=True)
class RateSeries:
    """A series: its labels as text, and a value for each step from the start of the range."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RateRange:
    """The series of a range, `step_s` seconds between values; `left_out` counts the invalid values, which became 0."""

    series: tuple[RateSeries, ...]
    step_s: float
    left_out: int = 0


def query_range(client: HttpClient, query: str, start_s: float, end_s: float, step_s: float) -> RateRange:
    """Return the series that a query yields over a range of time.

    Args:
        client: client of the Prometheus server.
        query: PromQL, such as rate(messages_total[1m]).
        start_s: Unix time of the first value.
        end_s: upper limit of the Unix time of the last value.
        step_s: seconds between two values.

    Raises:
        InvalidInput: the range has more values than a server computes, or the reply is not valid.
        NotFound: the query yields no series.
        NoAnswer, Refused: the server does not answer, or refuses.
    """
    count = int((end_s - start_s) / step_s) + 1
    if not 1 <= count <= POINTS_MAX:
        raise InvalidInput(
            f"the range has {count:,} values a series", remedy=f"Choose a larger step: at most {POINTS_MAX:,}."
        )
    asked = {"query": query, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:g}"}
    body = client.query(
        "/api/v1/query_range", urllib.parse.urlencode(asked).encode("ascii"), "application/x-www-form-urlencoded"
    )
    where = f"{client.address}/api/v1/query_range"
    found = [_values(each, start_s, step_s, count, where) for each in _result(body, where)]
    if not found:
        raise NotFound(f"{where}: the query has no series in this time", remedy="Check names, labels and the time.")
    series = tuple(sorted((each for each, _ in found), key=lambda each: each.name))
    return RateRange(series, step_s, sum(left_out for _, left_out in found))


def read_range(body: bytes, where: str) -> RateRange:
    """Return the series of a file that holds the reply to a range query, its `data`, or the list of its series.

    The step is the shortest time between two values. Counters, whose names end with `_total` or `_count`, are converted
    to rates: the increase since the previous value (since zero after a reset) divided by the time between; the range
    then begins with the second value.

    Args:
        body: the file's content, at most `FILE_BYTES_MAX` octets.
        where: name of the file in error messages.

    Raises:
        InvalidInput: the file is too large, is not a range, or has too many values.
        NotFound: the file has no series with values.
    """
    if len(body) > FILE_BYTES_MAX:
        raise InvalidInput(f"{where} has more than {FILE_BYTES_MAX:,} bytes", remedy="Export a shorter range.")
    result = _result(body, where, _NOT_A_RANGE)
    pairs = [list(_pairs(each.get("values"), where, _NOT_A_RANGE)) for each in result]
    if not any(pairs):
        raise NotFound(f"{where} has no series with values", remedy=_NOT_A_RANGE)
    start_s, step_s, count = _steps(pairs, where)
    counters = [_is_counter(each) for each in result]
    found = [_values(each, start_s, step_s, count, where, _NOT_A_RANGE) for each in result]
    if any(counters):
        found = [
            (_rates(one, each, start_s, step_s, count), 0) if is_counter else (one, left_out)
            for is_counter, each, (one, left_out) in zip(counters, pairs, found, strict=True)
        ]
        found = [(RateSeries(one.name, one.values[1:]), left_out) for one, left_out in found]
    series = tuple(sorted((each for each, _ in found), key=lambda each: each.name))
    return RateRange(series, step_s, sum(left_out for _, left_out in found))


def _steps(pairs: Sequence[Sequence[tuple[float, float]]], where: str) -> tuple[float, float, int]:
    """Return the Unix time of the first value, the seconds between two values, and the number of values in a series."""
    times = sorted({at_s for each in pairs for at_s, _ in each})
    gaps = [after - before for before, after in itertools.pairwise(times) if after - before >= _GAP_MIN_S]
    if not gaps:
        raise InvalidInput(f"{where} has values of one instant: they state no rate over time", remedy=_NOT_A_RANGE)
    step_s = min(gaps)
    count = (times[-1] - times[0]) / step_s
    if not count < POINTS_MAX:
        raise InvalidInput(
            f"{where}: a range of {times[-1] - times[0]:g} s has too many steps of {step_s:g} s",
            remedy=f"Export a shorter range: at most {POINTS_MAX:,} values of a series.",
        )
    return times[0], step_s, round(count) + 1


def _is_counter(found: Mapping[str, Any]) -> bool:
    metric = found.get("metric")
    name = metric.get("__name__") if isinstance(metric, dict) else None
    return isinstance(name, str) and name.endswith(("_total", "_count"))


def _rates(
    series: RateSeries, pairs: Sequence[tuple[float, float]], start_s: float, step_s: float, count: int
) -> RateSeries:
    """Return the rates of a counter's series; the steps of a gap have the mean rate between the values around it."""
    counted = {round((at_s - start_s) / step_s): value for at_s, value in pairs if math.isfinite(value) and value >= 0}
    numbers = sorted(number for number in counted if 0 <= number < count)
    rates = [0.0] * count
    for before, after in itertools.pairwise(numbers):
        more = counted[after] - counted[before]
        rate = (counted[after] if more < 0 else more) / ((after - before) * step_s)
        rates[before + 1 : after + 1] = [rate] * (after - before)
    return RateSeries(series.name, tuple(rates))


def _result(body: bytes, where: str, remedy: str = _NOT_PROMETHEUS) -> list[Mapping[str, Any]]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{where}: the reply is not valid JSON", remedy=remedy) from None
    if remedy == _NOT_A_RANGE and not (isinstance(document, dict) and "data" in document):
        document = {"data": document if isinstance(document, dict) else {"resultType": "matrix", "result": document}}
    data = document.get("data") if isinstance(document, dict) else None
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list) or (isinstance(data, dict) and data.get("resultType") != "matrix"):
        raise InvalidInput(f"{where}: the reply is not the matrix of a range query", remedy=remedy)
    if len(result) > SERIES_MAX:
        raise InvalidInput(f"{where}: {len(result):,} series", remedy=f"Sum them in the query: at most {SERIES_MAX:,}.")
    if not all(isinstance(each, dict) for each in result):
        raise InvalidInput(f"{where}: a series of the reply is not an object", remedy=remedy)
    return result


def _values(
    found: Mapping[str, Any], start_s: float, step_s: float, count: int, where: str, remedy: str = _NOT_PROMETHEUS
) -> tuple[RateSeries, int]:
    metric = found.get("metric")
    labels = metric if isinstance(metric, dict) else {}
    name = shown(", ".join(f"{key}={value}" for key, value in sorted(labels.items()) if key != "__name__")[:200])
    values = [0.0] * count
    left_out = 0
    for at_s, value in _pairs(found.get("values"), where, remedy):
        number = round((at_s - start_s) / step_s)
        if 0 <= number < count:
            is_rate = math.isfinite(value) and value >= 0
            values[number] = value if is_rate else 0.0
            left_out += not is_rate
    return RateSeries(name, tuple(values)), left_out


def _pairs(values: object, where: str, remedy: str) -> Iterator[tuple[float, float]]:
    if not isinstance(values, list) or len(values) > POINTS_MAX:
        raise InvalidInput(f"{where}: a series of the reply has no list of values", remedy=remedy)
    for each in values:
        try:
            at_s, text = each
            pair = float(at_s), float(text) if isinstance(text, str) and len(text) <= 40 else math.nan
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"{where}: a value of the reply is not a pair of a time and a text", remedy=remedy
            ) from None
        if not math.isfinite(pair[0]):
            raise InvalidInput(f"{where}: a time of the reply is not a number", remedy=remedy)
        yield pair
