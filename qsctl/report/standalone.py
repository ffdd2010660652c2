"""The charts of a page as one SVG or PNG picture: the verdict at the top, the charts below each other."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import vl_convert

from qsctl.errors import NotFound
from qsctl.report._charts import WIDE, Picture, chart_config
from qsctl.report.page import Page

_INK: Final = "#1b1f24"
_FAINT: Final = "#59636e"
_LINE_CHARACTERS: Final = 120
_PIXELS_A_POINT: Final = 2.0


def page_svg(page: Page) -> str:
    """Return the charts of a page as one SVG.

    Raises:
        NotFound: the page has no chart.
    """
    svg: str = vl_convert.vegalite_to_svg(json.dumps(_spec(page)))
    return svg


def page_png(page: Page) -> bytes:
    """Return the charts of a page as one PNG, at twice the resolution of the SVG.

    Raises:
        NotFound: the page has no chart.
    """
    png: bytes = vl_convert.vegalite_to_png(json.dumps(_spec(page)), scale=_PIXELS_A_POINT)
    return png


def picture_svg(picture: Picture) -> str:
    """Return one chart as an SVG for use outside a page: black on white."""
    svg: str = vl_convert.vegalite_to_svg(json.dumps(_finished(_drawn(picture))))
    return svg


def _spec(page: Page) -> dict[str, Any]:
    if not page.pictures:
        raise NotFound(f"{page.title} has no chart", remedy="Choose --format html, md or text: they have its tables.")
    charts: Sequence[Any] = [_drawn(each) for each in page.pictures]
    lines = [page.subtitle, *(line for each in page.verdict for line in textwrap.wrap(each, _LINE_CHARACTERS))]
    title = alt.TitleParams(
        page.title, subtitle=lines, anchor="start", fontSize=20, subtitleFontSize=13, subtitleColor=_FAINT, offset=20
    )
    return _finished(alt.vconcat(*charts, spacing=32).resolve_scale(color="independent").properties(title=title))


def _drawn(picture: Picture) -> Any:
    caption = textwrap.wrap(picture.caption, _LINE_CHARACTERS)
    title = alt.TitleParams(picture.title, subtitle=caption, anchor="start", frame="group", subtitleColor=_FAINT)
    chart = picture.chart()
    if isinstance(chart, alt.VConcatChart):  # only its parts have a size
        parts = [each.properties(width=WIDE, height=picture.height // len(chart.vconcat)) for each in chart.vconcat]
        return alt.vconcat(*parts).properties(title=title)
    return chart.properties(width=WIDE, height=picture.height, title=title)


def _finished(chart: Any) -> dict[str, Any]:
    spec: dict[str, Any] = chart.to_dict()
    spec |= {"background": "white", "padding": 20, "config": chart_config(WIDE, _INK)}
    return spec
