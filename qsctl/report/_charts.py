"""Charts as static SVG, drawn with Altair and rendered without a browser, a network or a script in the page.

Every chart is drawn twice, for a wide page and for a phone, since text in a scaled picture would be too small. Text and
axes have the page's colour, so that one picture fits light and dark themes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import altair as alt
import vl_convert

WIDE: Final = 860
NARROW: Final = 310
HEIGHT: Final = 280
_LONGEST_LINE: Final = 32
_AXIS_WIDTH: Final = 70
_AXIS_HEIGHT: Final = 40
_LEAST_HEIGHT: Final = 70

QUEUE_COLOURS: Final[Mapping[str, str]] = {
    "G-1": "#8c6bb1",
    "D-1": "#d95f02",
    "D-2": "#1f9e89",
    "D-3": "#3b8bd6",
    "C-1": "#888888",
}
"""The colour of each priority queue in every chart; each has enough contrast on white and on near black."""

OTHER_COLOURS: Final = ("#3b8bd6", "#d95f02", "#1f9e89", "#8c6bb1", "#b8860b", "#c2487f", "#888888")
LIMIT_COLOUR: Final = "#d62f3a"

Drawn: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart
Values: TypeAlias = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart: a title, a sentence that describes it, and a function that draws it."""

    title: str
    caption: str
    chart: Callable[[], Drawn]
    height: int = HEIGHT

    @property
    def wide(self) -> str:
        """Return the chart for a wide page, as SVG."""
        return _svg(self.chart(), WIDE, self.height, self.title)

    @property
    def narrow(self) -> str:
        """Return the chart for a phone, as SVG."""
        return _svg(self.chart(), NARROW, self.height, self.title)


def _seconds(horizon_s: float) -> alt.X:
    """Return the time axis, in seconds from 0 to the end of the run."""
    return alt.X("seconds:Q", title="time (s)", scale=alt.Scale(domain=[0, horizon_s], nice=False))


def depth_chart(depths: Values, limits: Values, discards: Values, horizon_s: float) -> Drawn:
    """Return a chart of queue depth over time, with limits, and a tick where messages were discarded.

    Queues whose depths differ much get separate scales.

    Args:
        depths: rows with `seconds`, `queue`, `work_units`.
        limits: rows with `queue`, `work_units`, drawn as dashed lines.
        discards: rows with `seconds`, `queue`, `messages`.
        horizon_s: end of the run.
    """
    colour = _queue_colour([*depths, *limits])
    queues = list(dict.fromkeys(str(each["queue"]) for each in [*depths, *limits]))
    highest = {
        queue: max(float(each["work_units"]) for each in [*depths, *limits] if each["queue"] == queue)
        for queue in queues
    }
    if max(highest.values(), default=0.0) <= _SCALES_APART * min(highest.values(), default=0.0) or len(queues) == 1:
        return _depth_layers(depths, limits, discards, horizon_s, colour, max(highest.values(), default=1.0))
    # On a common scale the shallow queues would be flat lines.
    return alt.vconcat(
        *(
            _depth_layers(
                [each for each in depths if each["queue"] == queue],
                [each for each in limits if each["queue"] == queue],
                [each for each in discards if each["queue"] == queue],
                horizon_s,
                colour,
                highest[queue],
            )
            for queue in queues
            if highest[queue]
        )
    )


_SCALES_APART: Final = 10
"""Largest ratio of the depths of two queues that are drawn on one scale."""


def _depth_layers(
    depths: Values, limits: Values, discards: Values, horizon_s: float, colour: alt.Color, highest: float
) -> Drawn:
    # Room above the limits for the marks of the discards.
    lines = (
        _chart(depths)
        .mark_line(interpolate="step-before", strokeWidth=1.5)
        .encode(
            x=_seconds(horizon_s),
            y=alt.Y("work_units:Q", title="depth (work units)", scale=alt.Scale(domain=[0, 1.12 * (highest or 1)])),
            color=colour,
        )
    )
    dashed = _chart(limits).mark_rule(strokeDash=[6, 4], strokeWidth=1.5).encode(y="work_units:Q", color=colour)
    ticks = (
        _chart(discards)
        .mark_tick(thickness=2, size=9, color=LIMIT_COLOUR, orient="vertical")
        .encode(x="seconds:Q", y=alt.value(4))
    )
    return alt.layer(lines, dashed, ticks)


def latency_chart(shares: Values) -> Drawn:
    """Return a chart of the share of messages that wait longer than a time, with both axes logarithmic to show the
    tail.

    Args:
        shares: rows with `milliseconds`, `share` (0 to 1) and `queue`.
    """
    drawn: Drawn = (
        _chart(shares)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("milliseconds:Q", title="time in the queue (ms)", scale=alt.Scale(type="log")),
            y=alt.Y(
                "share:Q",
                title="share waiting longer",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~%", tickCount=6),
            ),
            color=_queue_colour(shares),
            order="milliseconds:Q",
        )
    )
    return drawn


def rate_chart(rates: Values, title: str, horizon_s: float) -> Drawn:
    """Return a chart of messages per second in each window of time.

    Args:
        rates: rows with `seconds`, `queue`, `per_second`.
        title: title of the vertical axis.
        horizon_s: end of the run.
    """
    drawn: Drawn = (
        _chart(rates)
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(
            x=_seconds(horizon_s),
            y=alt.Y("per_second:Q", title=title),
            color=_queue_colour(rates),
        )
    )
    return drawn


def heat_chart(cells: Values, horizontal: str, vertical: str, measure: str) -> Drawn:
    """Return a heat map over two varied values, coloured and labelled by a measure.

    Args:
        cells: rows with `x` and `y` (the values as text), `value`, `label`.
        horizontal: title of the x axis.
        vertical: title of the y axis.
        measure: name of the measure that the colour represents.
    """
    base = _chart(cells).encode(
        x=alt.X("x:O", title=_lines(horizontal), sort=None), y=alt.Y("y:O", title=_lines(vertical), sort=None)
    )
    highest = max((float(cell["value"]) for cell in cells), default=0.0)
    fill = base.mark_rect().encode(
        color=alt.Color(
            "value:Q",
            title=measure,
            scale=alt.Scale(range=["#dbe9f6", "#08519c"], domain=[0, highest or 1]),
            legend=None,
        )
    )
    text = base.mark_text().encode(
        text="label:N",
        color=alt.condition(f"datum.value > {json.dumps(highest * 0.5)}", alt.value("#ffffff"), alt.value("#111111")),
    )
    return alt.layer(fill, text)


def line_chart(points: Values, horizontal: str, vertical: str) -> Drawn:
    """Return a chart of a measure against one varied value, with confidence intervals; for numbers, these form a band.

    Numbers are placed to scale, on a logarithmic axis if they span more than `_DECADES_APART`. Values that are not
    numbers, such as rates with a unit, are placed side by side.

    Args:
        points: rows with `x` (text), `mean`, `low`, `high`, `queue`.
        horizontal: title of the x axis.
        vertical: title of the y axis.
    """
    numbers = [_number(str(each["x"])) for each in points]
    if any(number is None for number in numbers):
        base = _chart(points).encode(x=alt.X("x:O", title=_lines(horizontal), sort=None), color=_queue_colour(points))
        spread = base.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q", title=vertical), y2="high:Q")
    else:
        known = [number for number in numbers if number is not None]
        points = [{**each, "x": number} for each, number in zip(points, known, strict=True)]
        spans = min(known) > 0 and max(known) > _DECADES_APART * min(known)
        scale = alt.Scale(type="log", nice=False) if spans else alt.Scale(zero=False, nice=False)
        # Format each tick separately: numbers formatted together are rounded in the unit of the largest.
        axis = alt.Axis(labelExpr="format(datum.value, '~s')", values=_ticks(known, spans) or alt.Undefined)
        base = _chart(points).encode(
            x=alt.X("x:Q", title=_lines(horizontal), scale=scale, axis=axis), color=_queue_colour(points)
        )
        spread = base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", title=vertical), y2="high:Q")
    lines = base.mark_line(point=True, strokeWidth=1.5).encode(y=alt.Y("mean:Q", title=vertical))
    return alt.layer(lines, spread)


def _ticks(numbers: Sequence[float], is_logarithmic: bool) -> list[float]:
    """Return the tick values of an axis: all numbers if they are few, else powers of ten on a logarithmic axis.

    An empty list leaves the choice to Vega.
    """
    found = sorted(set(numbers))
    if len(found) <= _MOST_TICKS:
        return found
    return [10.0**n for n in range(math.ceil(math.log10(found[0])), 1 + int(math.log10(found[-1])))] * is_logarithmic


_DECADES_APART: Final = 30
_MOST_TICKS: Final = 8


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def front_chart(points: Values, horizontal: str, vertical: str) -> Drawn:
    """Return a scatter chart of two measures in which the points of the Pareto front are joined.

    Args:
        points: rows with `x`, `y`, `label`, `front` (whether no other point is better on both).
        horizontal: title of the x axis.
        vertical: title of the y axis.
    """
    base = _chart(points).encode(
        x=alt.X("x:Q", title=horizontal, scale=alt.Scale(zero=False, nice=True, padding=12)),
        y=alt.Y("y:Q", title=vertical),
    )
    dots = base.mark_point(filled=True, size=60).encode(color=_staying_colour("front"))
    best = _chart([each for each in points if each["front"]])
    line = best.mark_line(interpolate="step-after", strokeWidth=1.2, color="#d95f02").encode(
        x="x:Q", y="y:Q", order="x:Q"
    )
    names = best.mark_text(align="left", dx=6, dy=-6, fill="currentColor").encode(x="x:Q", y="y:Q", text="label:N")
    return alt.layer(dots, line, names)


def ranking_chart(points: Values, title: str) -> Drawn:
    """Return a chart of a measure of each point with its confidence interval, one point below the other in the given
    order.

    Args:
        points: rows with `label`, `mean`, `low`, `high`, `stays` (whether no other point is significantly better).
        title: title of the measure's axis.
    """
    base = _chart(points).encode(
        y=alt.Y("label:N", title=None, sort=None, axis=_names_axis(points, "label")), color=_staying_colour("stays")
    )
    spread = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title, scale=alt.Scale(zero=False)), x2="high")
    return alt.layer(spread, base.mark_point(filled=True, size=60).encode(x="mean:Q"))


def difference_chart(differences: Values) -> Drawn:
    """Return a chart of differences between A and B with their intervals, relative to the mean of A, around zero.

    Args:
        differences: rows with `what`, `mean`, `low`, `high` (fractions of A's mean), `verdict`.
    """
    colour = alt.Color(
        "verdict:N",
        title="better",
        scale=alt.Scale(domain=["A", "B", "undecided"], range=["#d95f02", "#1f9e89", "#888888"]),
        legend=alt.Legend(columns=2),
    )
    base = _chart(differences).encode(
        y=alt.Y("what:N", title=None, sort=None, axis=_names_axis(differences, "what")), color=colour
    )
    spread = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title="B − A, share of A", axis=alt.Axis(format="+%")), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=60).encode(x="mean:Q")
    zero = _chart([{"at": 0}]).mark_rule(strokeDash=[4, 3], opacity=0.6).encode(x="at:Q")
    return alt.layer(zero, spread, dots)


def _names_axis(values: Values, field: str) -> alt.Axis:
    """Return an axis of names with room for the longest name in a wide font, since the reader's font is unknown."""
    longest = max((len(str(each[field])) for each in values), default=0)
    return alt.Axis(labelLimit=_WIDEST_NAME, minExtent=min(_WIDEST_NAME, longest * _WIDEST_LETTER))


_WIDEST_NAME: Final = 180
_WIDEST_LETTER: Final = 7.5
"""Width of the widest letter, in pixels."""


def _staying_colour(field: str) -> alt.Color:
    """Return the colours of points: one for those that no other point beats, one for the rest."""
    scale = alt.Scale(domain=[True, False], range=["#d95f02", "#888888"])
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=None)


def _lines(title: str) -> list[str]:
    """Split a path that is too long for a phone into two lines: the element, and the name of its setting."""
    place, slash, name = title.rpartition("/")
    return [f"{place}/", name] if slash and len(title) > _LONGEST_LINE else [title]


def _chart(values: Values) -> alt.Chart:
    return alt.Chart(alt.Data(values=list(values)))  # type: ignore[no-untyped-call]


def _queue_colour(values: Values) -> alt.Color:
    queues = list(dict.fromkeys(str(value["queue"]) for value in values))
    known = [queue for queue in QUEUE_COLOURS if queue in queues]
    others = [queue for queue in queues if queue not in QUEUE_COLOURS]
    colours = [QUEUE_COLOURS[queue] for queue in known]
    colours += [OTHER_COLOURS[number % len(OTHER_COLOURS)] for number in range(len(others))]
    return alt.Color("queue:N", title=None, scale=alt.Scale(domain=[*known, *others], range=colours))


def picture(
    title: str,
    caption: str,
    chart: Callable[[], Drawn],
    *,
    height: int = HEIGHT,
) -> Picture:
    """Return the picture of a chart; `chart` is called each time the picture is rendered."""
    return Picture(title, caption, chart, height)


def chart_config(width: int, ink: str) -> dict[str, Any]:
    """Return the Vega configuration of every chart: fonts, axes and legend, in the colour `ink`."""
    legend = {"orient": "bottom", "direction": "horizontal", "title": None, "labelFontSize": 12}
    axis = {
        "labelColor": ink,
        "titleColor": ink,
        "domainColor": ink,
        "tickColor": ink,
        "gridColor": ink,
        "gridOpacity": 0.15,
        "domainOpacity": 0.5,
        "tickOpacity": 0.5,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelOverlap": True,
    }
    return {
        "font": "system-ui, sans-serif",
        "padding": {"left": 5, "top": 5, "right": 14, "bottom": 5},  # the reader's font may be wider than ours
        "view": {"stroke": None},
        "axis": {**axis, "tickCount": 5 if width == NARROW else 10},
        "axisX": {"labelAngle": 0},
        "legend": {**legend, "columns": 3 if width == NARROW else 7, "labelColor": ink, "titleColor": ink},
        "rule": {"color": ink},
        "text": {"fontSize": 9 if width == NARROW else 12},
    }


def _svg(chart: Drawn, width: int, height: int, title: str) -> str:
    spec: dict[str, Any] = chart.to_dict()
    spec |= {"background": None, "config": chart_config(width, "currentColor")}
    parts = spec.get("vconcat")
    if parts is None:
        spec |= {"width": width, "height": height, "autosize": {"type": "fit", "contains": "padding"}}
    else:  # concatenated charts cannot be fitted: leave room for their axes
        for part in parts:
            part |= {"width": width - _AXIS_WIDTH, "height": max(_LEAST_HEIGHT, height // len(parts) - _AXIS_HEIGHT)}
    svg = vl_convert.vegalite_to_svg(json.dumps(spec))
    return _scalable(svg, title)


def _scalable(svg: str, title: str) -> str:
    """Return an SVG without a fixed size, which the page scales, with an accessible label and unique clip-path
    names.
    """
    opening = re.match(r"<svg[^>]*>", svg)
    assert opening is not None
    width = re.search(r'\bwidth="([\d.]+)"', opening[0])
    height = re.search(r'\bheight="([\d.]+)"', opening[0])
    assert width is not None
    assert height is not None
    # Clip paths have the same names in every SVG; in one page their names must differ.
    own = hashlib.blake2b(svg.encode(), digest_size=4).hexdigest()
    svg = re.sub(r'(id="|url\(#)(clip|gradient)', rf"\g<1>c{own}\g<2>", svg)
    opening = re.match(r"<svg[^>]*>", svg)
    assert opening is not None
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{label}" viewBox="0 0 {width[1]} {height[1]}">{svg[opening.end() :]}'
    )
