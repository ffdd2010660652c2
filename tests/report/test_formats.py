"""A report in its other forms: Markdown, one picture, and text with charts for a terminal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from qsctl.errors import NotFound
from qsctl.report._charts import Picture, depth_chart, heat_chart, latency_chart, line_chart, picture, rate_chart
from qsctl.report._html import page_html
from qsctl.report._markdown import page_markdown, picture_names
from qsctl.report._terminal_charts import chart_lines
from qsctl.report.formats import ReportFormat, contents, format_of, write_report
from qsctl.report.page import Page, PageTable
from qsctl.report.text import page_lines

RATES = [
    {"seconds": at / 10, "queue": queue, "per_second": 100 * abs(math.sin(at / 9))}
    for queue in ("Orders", "Jobs")
    for at in range(80)
]
RATE = picture("Rates & more", "How many a second.", lambda: rate_chart(RATES, "messages/s", 8.0))
SHARES = [{"milliseconds": 10.0**at, "queue": "D-1", "share": 10.0**-at} for at in range(4)]
TAIL = picture("Tail", "How many wait.", lambda: latency_chart(SHARES))
MAP = picture(
    "Map", "Two settings.", lambda: heat_chart([{"x": "1", "y": "2", "value": 3, "label": "3"}], "a", "b", "loss")
)


def page(*pictures: Picture) -> Page:
    return Page(
        title="A *bold* <title>",
        subtitle="s_u_b",
        good=True,
        verdict=["Fine.", "Queue [x](http://evil) | y"],
        pictures=pictures,
        tables=[
            PageTable("T", ["Name", "Count"], [["a|b", "1"], ["`c`", "22"]], frozenset({1}), "`qsctl summarize` says.")
        ],
        facts={"Scenario": "<x>"},
        reproduce="qsctl simulate x",
        configuration="<xml>```</xml>",
    )


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("r.html", ReportFormat.HTML), ("r.MD", ReportFormat.MARKDOWN), ("r.svg", ReportFormat.SVG),
        ("dir.md/r.png", ReportFormat.PNG), ("r.txt", ReportFormat.TEXT), ("", ReportFormat.HTML),
    ],
)  # fmt: skip
def test_a_file_s_ending_determines_the_format(name: str, form: ReportFormat) -> None:
    assert format_of(name) is form


def test_markdown_has_its_charts_beside_it_and_nothing_of_a_name_is_markup(tmp_path: Path) -> None:
    files = contents(page(RATE, TAIL), tmp_path / "r.md", ReportFormat.MARKDOWN, "")
    assert [each.name for each in files] == ["r.md", "r-1-rates-more.svg", "r-2-tail.svg"]
    assert write_report(files) == sum(each.stat().st_size for each in tmp_path.iterdir())
    for each in ("r-1-rates-more.svg", "r-2-tail.svg"):
        svg = (tmp_path / each).read_text()
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert "currentColor" not in svg, "it stands alone, and has no page to take a colour from"
    html = MarkdownIt("commonmark").enable("table").render((tmp_path / "r.md").read_text())
    assert "<h1>A *bold* &lt;title&gt;</h1>" in html
    assert "href" not in html
    assert html.count("<img") == 2
    assert '<td>a|b</td>\n<td style="text-align:right">1</td>' in html
    assert "<td>`c`</td>" in html
    assert "&lt;xml&gt;```&lt;/xml&gt;" in html


def test_names_of_pictures_are_those_of_files() -> None:
    made = page(picture("p99: D-1 / x", "", lambda: latency_chart(SHARES)))
    assert picture_names(made, "r") == ["r-1-p99-d-1-x.svg"]
    assert page_markdown(made, ["a b.svg"]).count("(<a b.svg>)") == 1


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("form", [ReportFormat.SVG, ReportFormat.PNG])
def test_one_picture_has_every_chart_below_the_other(tmp_path: Path, form: ReportFormat) -> None:
    one, two = (
        next(iter(contents(page(*pictures), tmp_path / "r", form, "").values()))
        for pictures in ([RATE], [RATE, TAIL, MAP])
    )
    if form is ReportFormat.PNG:
        assert one.startswith(b"\x89PNG")
        assert int.from_bytes(two[20:24], "big") > 2 * int.from_bytes(one[20:24], "big"), "its height"
    else:
        assert all(title in two.decode() for title in ("Rates &amp; more", "Tail", "Map", "Fine."))
        heights = [float(ElementTree.fromstring(each).get("height", "0")) for each in (one, two)]
        assert heights[1] > 2 * heights[0]


def test_queues_with_a_scale_each_are_in_one_picture(tmp_path: Path) -> None:
    depths = [{"seconds": 1.0, "queue": queue, "work_units": depth} for queue, depth in (("low", 1), ("deep", 500))]
    apart = picture("Depth over time", "Each on its own.", lambda: depth_chart(depths, [], [], 2.0))
    drawn = next(iter(contents(page(RATE, apart), tmp_path / "r", ReportFormat.SVG, "").values())).decode()
    assert all(word in drawn for word in ("Depth over time", "low", "deep"))


def test_a_picture_of_nothing_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="has no chart"):
        contents(page(), tmp_path / "r.svg", ReportFormat.SVG, "")


@pytest.mark.parametrize("is_unicode", [True, False])
@pytest.mark.parametrize("drawn", [RATE, TAIL])
def test_a_chart_of_lines_is_drawn_in_text(drawn: Picture, is_unicode: bool) -> None:
    lines = chart_lines(drawn, 60, is_unicode=is_unicode)
    assert all(len(line) <= 60 for line in lines)
    assert all("\x1b" not in line for line in lines)
    text = "\n".join(lines)
    assert text.isascii() is not is_unicode
    names = ["Orders: messages/s, over time (s)", "Jobs: "] if drawn is RATE else ["D-1: share waiting longer"]
    assert all(name in text for name in names)


def test_a_line_in_text_goes_up_where_the_figures_do() -> None:
    values = [{"seconds": at, "queue": "Q", "per_second": at} for at in range(40)]
    lines = chart_lines(picture("t", "c", lambda: rate_chart(values, "r", 40.0)), 60, is_unicode=False)
    rows = [line[1:-1] for line in lines if line.startswith("|")]
    starts = [
        min(row.find(each) for each in set(row) - set(" _|") if each) for row in rows if set(row) - set(" _|0123456789")
    ]
    assert starts == sorted(starts, reverse=True)
    assert len(starts) > 3


def test_varied_values_are_drawn_in_their_order_and_a_map_is_not() -> None:
    points = [{"x": str(x), "queue": "D-1", "mean": x, "low": 0, "high": x} for x in (500, 1000, 2000)]
    assert chart_lines(picture("t", "c", lambda: line_chart(points, "max-depth", "ms")), 60, is_unicode=True)
    assert chart_lines(MAP, 60, is_unicode=True) == []
    assert chart_lines(picture("t", "c", lambda: rate_chart([], "r", 1.0)), 60, is_unicode=True) == []


def test_text_folds_what_is_long_and_has_all_of_the_page() -> None:
    long = "because of what was said before this, and of what came after it, as was to be expected of it"
    made = page(RATE, MAP)
    made = Page(**{**{name: getattr(made, name) for name in made.__slots__},
                   "tables": [*made.tables, PageTable("Why", ["Event", "Why"], [["e", long]])]})  # fmt: skip
    lines = list(page_lines(made, 60, is_unicode=True))
    assert all(len(line) <= 60 for line in lines)
    text = " ".join(" ".join(lines).split())
    for each in (
        "A *bold* <title>",
        "Fine.",
        "a|b",
        "qsctl summarize says.",
        "Orders: messages/s",
        long,
        "qsctl simulate x",
    ):
        assert each in text


def test_text_in_backticks_is_code_on_a_page_and_a_long_text_wraps() -> None:
    rows: list[list[str]] = [["a text of several words that is longer than forty characters"], ["x" * 50]]
    made: Any = page()
    html = page_html(Page(**{**{name: getattr(made, name) for name in made.__slots__},
                             "tables": [PageTable("T", ["A"], rows, frozenset(), "`a<b` is <i>")]}))  # fmt: skip
    assert "<code>a&lt;b</code> is &lt;i&gt;" in html
    assert html.count('<td class="prose">') == 1
