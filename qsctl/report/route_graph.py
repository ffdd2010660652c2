"""A picture of a site's routes: source threads on the left, destination threads on the right.

Decides the layout. Sources are grouped by process; destinations are ordered by the sources that feed them, so that few
lines cross. The width of a line is its rate, on a logarithmic scale; a thread is labelled with its rate and its number
of waiting messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from qsctl.report._charts import OTHER_COLOURS, Drawn, Picture, Values, picture
from qsctl.sim.site.flows import SiteFlow

_ROW_PIXELS: Final = 22
_LEAST_PIXELS: Final = 160
_LINKS_SHOWN: Final = 400
_WIDTHS: Final = (0.6, 6.0)
_DECADES: Final = 5


def route_picture(
    flows: Sequence[SiteFlow], depths: Mapping[str, float] | None = None, links_max: int = _LINKS_SHOWN
) -> Picture:
    """Return the picture of a site's routes.

    Args:
        flows: the rates between threads.
        depths: mean number of waiting messages by thread; None without a simulation.
        links_max: number of links that are drawn, by decreasing rate.
    """
    links = _links(flows)
    shown = dict(sorted(links.items(), key=lambda each: -each[1])[:links_max])
    nodes, drawn, rows = _placed(flows, shown, depths or {})
    caption = f"{len(shown)} of {len(links)} links between threads, " if len(shown) < len(links) else ""
    caption += (
        "On the left what messages come in by, with what it feeds; on the right what they go out by, with what it is "
        "fed; a colour is a process."
    )
    if depths is not None:
        caption += " Behind the rate, what waits at the thread, in messages on average."
    return picture("Routes", caption, lambda: _graph(nodes, drawn), height=max(_LEAST_PIXELS, rows * _ROW_PIXELS))


def _links(flows: Sequence[SiteFlow]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for each in flows:
        key = (each.source, each.destination)
        found[key] = found.get(key, 0.0) + each.per_s
    return found


def _placed(
    flows: Sequence[SiteFlow], links: Mapping[tuple[str, str], float], depths: Mapping[str, float]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """Return the threads and the lines with their coordinates, and the number of rows."""
    process = {each.source: each.process for each in flows} | {
        each.destination: each.destination_process for each in flows
    }
    sources = sorted({source for source, _ in links}, key=lambda name: (process[name], name))
    left = {name: number for number, name in enumerate(sources)}
    fed: dict[str, list[tuple[int, float]]] = {}
    for (source, destination), rate in links.items():
        fed.setdefault(destination, []).append((left[source], rate))

    def middle(name: str) -> float:
        total = sum(rate for _, rate in fed[name])
        return sum(at * rate for at, rate in fed[name]) / total if total else float(fed[name][0][0])

    right = {name: number for number, name in enumerate(sorted(fed, key=lambda name: (middle(name), name)))}
    rows = max(len(left), len(right), 1)
    heights = {0: rows / max(1, len(left)), 1: rows / max(1, len(right))}
    rates: dict[tuple[int, str], float] = {}
    for (source, destination), rate in links.items():
        rates[0, source] = rates.get((0, source), 0.0) + rate
        rates[1, destination] = rates.get((1, destination), 0.0) + rate
    nodes = [
        {
            "x": side,
            "y": (number + 0.5) * heights[side],
            "process": process[name],
            "label": _label(name, rates[side, name], depths.get(name)),
            "side": side,
        }
        for side, places in ((0, left), (1, right))
        for name, number in places.items()
    ]
    fastest = max(links.values(), default=1.0) or 1.0
    drawn = [
        {
            "x": 0, "y": (left[source] + 0.5) * heights[0], "x2": 1, "y2": (right[destination] + 0.5) * heights[1],
            "process": process[source], "width": _width(rate, fastest),
        }
        for (source, destination), rate in links.items()
    ]  # fmt: skip
    return nodes, drawn, rows


def _width(rate: float, fastest: float) -> float:
    if rate <= 0:
        return _WIDTHS[0]
    decades = max(0.0, _DECADES + math.log10(rate / fastest))
    return _WIDTHS[0] + (_WIDTHS[1] - _WIDTHS[0]) * decades / _DECADES


def _label(name: str, rate: float, depth: float | None) -> str:
    waiting = "" if depth is None else f", {depth:.3g} wait"
    return f"{name}  {rate_text(rate)}{waiting}"


def rate_text(per_s: float) -> str:
    """Format a rate per second, minute or hour, whichever is readable."""
    for seconds, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if per_s * seconds >= 1 or unit == "h":
            return f"{per_s * seconds:.3g}/{unit}"
    return ""


def _graph(nodes: Values, links: Values) -> Drawn:
    processes = sorted({str(each["process"]) for each in nodes})
    colour = alt.Color(
        "process:N",
        title=None,
        scale=alt.Scale(
            domain=processes, range=[OTHER_COLOURS[at % len(OTHER_COLOURS)] for at in range(len(processes))]
        ),
        legend=None if len(processes) > len(OTHER_COLOURS) else alt.Legend(symbolType="circle"),
    )
    across = alt.Scale(domain=[-1.2, 2.2])
    rows = max((float(each["y"]) for each in nodes), default=1.0) + 0.5
    down = alt.Scale(domain=[0, rows], reverse=True)
    x, y = alt.X("x:Q", axis=None, scale=across), alt.Y("y:Q", axis=None, scale=down)

    def chart(values: Values) -> alt.Chart:
        return alt.Chart(alt.Data(values=list(values)))  # type: ignore[no-untyped-call]

    lines = (
        chart(links)
        .mark_rule(opacity=0.5)
        .encode(x=x, y=y, x2="x2:Q", y2="y2:Q", color=colour, strokeWidth=alt.StrokeWidth("width:Q", scale=None))
    )
    points = chart(nodes).mark_point(filled=True, size=40, opacity=1).encode(x=x, y=y, color=colour)
    left = chart([each for each in nodes if each["side"] == 0]).mark_text(align="right", dx=-8)
    right = chart([each for each in nodes if each["side"] == 1]).mark_text(align="left", dx=8)
    texts = [each.encode(x=x, y=y, text="label:N") for each in (left, right)]
    return alt.layer(lines, points, *texts)
