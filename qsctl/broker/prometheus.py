"""A range of a Prometheus server: series of values over time, by its HTTP API.

Decides: what a value is. One that is no finite number, or below zero, counts as 0, and is counted; so does a step that
a series has no value for.

Source: Prometheus documentation, "HTTP API", range queries.
"""

from __future__ import annotations

import json
import math
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from qsctl.broker.client import HttpClient
from qsctl.config.problems import shown
from qsctl.errors import InvalidInput, NotFound

POINTS_MAX: Final = 11_000
"""Of one series: what a server computes in a request."""
SERIES_MAX: Final = 10_000
_NOT_PROMETHEUS: Final = "Check that the address is that of a Prometheus server, and the query."


@dataclass(frozen=True, slots=True)
class RateSeries:
    """One series: its labels in words, and a value for each step from the start of the range."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RateRange:
    """The series of a range, `step_s` seconds between values; `left_out`: values that are none, taken as 0."""

    series: tuple[RateSeries, ...]
    step_s: float
    left_out: int = 0


def query_range(client: HttpClient, query: str, start_s: float, end_s: float, step_s: float) -> RateRange:
    """Return what a query gives over a time.

    Args:
        client: asks the server.
        query: in PromQL, such as rate(messages_total[1m]).
        start_s: Unix time of the first value.
        end_s: Unix time of the last one at most.
        step_s: seconds between two values.

    Raises:
        InvalidInput: the range has more values than a server computes, or the reply is none.
        NotFound: there is no series.
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


def _result(body: bytes, where: str) -> list[Mapping[str, Any]]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{where}: the reply is not JSON that can be read", remedy=_NOT_PROMETHEUS) from None
    data = document.get("data") if isinstance(document, dict) else None
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list) or (isinstance(data, dict) and data.get("resultType") != "matrix"):
        raise InvalidInput(f"{where}: the reply is no matrix of a range query", remedy=_NOT_PROMETHEUS)
    if len(result) > SERIES_MAX:
        raise InvalidInput(f"{where}: {len(result):,} series", remedy=f"Sum them in the query: at most {SERIES_MAX:,}.")
    if not all(isinstance(each, dict) for each in result):
        raise InvalidInput(f"{where}: a series of the reply is no object", remedy=_NOT_PROMETHEUS)
    return result


def _values(found: Mapping[str, Any], start_s: float, step_s: float, count: int, where: str) -> tuple[RateSeries, int]:
    metric = found.get("metric")
    labels = metric if isinstance(metric, dict) else {}
    name = shown(", ".join(f"{key}={value}" for key, value in sorted(labels.items()) if key != "__name__")[:200])
    values = [0.0] * count
    left_out = 0
    for at_s, value in _pairs(found.get("values"), where):
        number = round((at_s - start_s) / step_s)
        if 0 <= number < count:
            is_rate = math.isfinite(value) and value >= 0
            values[number] = value if is_rate else 0.0
            left_out += not is_rate
    return RateSeries(name, tuple(values)), left_out


def _pairs(values: object, where: str) -> Iterator[tuple[float, float]]:
    if not isinstance(values, list) or len(values) > POINTS_MAX:
        raise InvalidInput(f"{where}: a series of the reply has no list of values", remedy=_NOT_PROMETHEUS)
    for each in values:
        try:
            at_s, text = each
            pair = float(at_s), float(text) if isinstance(text, str) and len(text) <= 40 else math.nan
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"{where}: a value of the reply is no pair of a time and a text", remedy=_NOT_PROMETHEUS
            ) from None
        if not math.isfinite(pair[0]):
            raise InvalidInput(f"{where}: a time of the reply is no number", remedy=_NOT_PROMETHEUS)
        yield pair
