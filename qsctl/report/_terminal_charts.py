"""Line charts for a terminal: each line of a chart drawn separately, with its name, since colours are not used.

Only line charts are drawn; the figures of heat maps and intervals are in the page's tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qsctl.report._charts import Picture

_HEIGHT: Final = 6
_BESIDE: Final = 16
"""Number of columns reserved for the frame and the labels of the vertical axis."""

_ASCII: Final = str.maketrans({"┌": "+", "┐": "+", "└": "+", "┘": "+", "─": "-", "│": "|", "▁": "_", "µ": "u"})
SERIES_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of one line."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    values: Sequence[str] = ()
    """The texts of the positions 0, 1, 2, … if the x axis has categories instead of numbers; else empty."""


def chart_lines(picture: Picture, width: int, *, is_unicode: bool) -> list[str]:
    """Return a chart as lines of text of at most `width` columns; an empty list if it is not a line chart."""
    spec = picture.chart().to_dict()
    lines: list[str] = []
    for part in spec.get("vconcat", [spec]):
        layer = next((each for each in part.get("layer", [part]) if _mark(each) == "line"), None)
        if layer is None or "queue" not in json.dumps(layer["encoding"]):
            return []
        data = layer.get("data") or part.get("data") or {}
        values = data.get("values") or spec.get("datasets", {}).get(data.get("name", ""), [])
        encoding = layer["encoding"]
        curves = list(_curves(values, encoding))
        lines += _drawn(curves, encoding, width, is_unicode=is_unicode)
    return lines


def _mark(layer: Mapping[str, Any]) -> str:
    mark = layer.get("mark", "")
    return str(mark.get("type", "") if isinstance(mark, Mapping) else mark)


def _curves(values: Sequence[Mapping[str, Any]], encoding: Mapping[str, Any]) -> Iterator[Curve]:
    x, y = encoding["x"]["field"], encoding["y"]["field"]
    ordinal = _ordinal(values, encoding)
    for name in dict.fromkeys(str(each["queue"]) for each in values):
        mine = [each for each in values if str(each["queue"]) == name]
        xs = [float(ordinal.index(str(each[x]))) if ordinal is not None else float(each[x]) for each in mine]
        yield Curve(name, xs, [float(each[y]) for each in mine], ordinal or ())


def _ordinal(values: Sequence[Mapping[str, Any]], encoding: Mapping[str, Any]) -> list[str] | None:
    """Return the categories of an x axis in their order; None if it has numbers."""
    x = encoding["x"]["field"]
    return list(dict.fromkeys(str(each[x]) for each in values)) if encoding["x"]["type"] == "ordinal" else None


def _places(encoding: Mapping[str, Any], curve: Curve) -> str:
    """Return the legend of an x axis with categories: the text of each position; empty if it has numbers."""
    if encoding["x"]["type"] != "ordinal":
        return ""
    return f" ({', '.join(f'{place}: {value}' for place, value in enumerate(curve.values))})"


def _drawn(curves: Sequence[Curve], encoding: Mapping[str, Any], width: int, *, is_unicode: bool) -> Iterator[str]:
    from uniplot import plot_to_string

    x_is_log, y_is_log = (_is_log(encoding[axis]) for axis in "xy")
    shown = [curve for curve in curves if any(curve.ys)]
    xs = [x for curve in shown for x in curve.xs if not x_is_log or x > 0]
    if not xs:
        return
    title = encoding["x"].get("title") or ""
    axes = f"{encoding['y'].get('title') or ''}, over {title if isinstance(title, str) else ''.join(title)}"
    for curve in shown[:SERIES_MAX]:
        points = [
            (x, y)
            for x, y in zip(curve.xs, curve.ys, strict=True)
            if (x > 0 or not x_is_log) and (y > 0 or not y_is_log)
        ]
        limits = {} if min(xs) == max(xs) else {"x_min": min(xs), "x_max": max(xs)}
        text = plot_to_string(
            xs=[x for x, _ in points],
            ys=[y for _, y in points],
            lines=True,
            width=max(20, width - _BESIDE),
            height=_HEIGHT,
            x_as_log=x_is_log,
            y_as_log=y_is_log,
            character_set="braille" if is_unicode else "ascii",
            **limits,
        )
        yield f"{curve.name}: {axes}{_places(encoding, curve)}"
        yield from (line.rstrip()[:width] for line in (text if is_unicode else text.translate(_ASCII)).splitlines())
    if len(shown) > SERIES_MAX:
        yield f"{len(shown) - SERIES_MAX} more are in the other formats."


def _is_log(axis: Mapping[str, Any]) -> bool:
    return bool((axis.get("scale") or {}).get("type") == "log")
