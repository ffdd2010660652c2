"""The view "What if" in Chromium: every control, by keyboard and by screen reader, its address, and hostile names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from qsctl.web._context import AskedSources
from tests.web.browser.chromium import THEMES, WIDTHS, Watched, opened, serious_findings, set_theme
from tests.web.serving import Page as Served
from tests.web.serving import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("browser")]

DEPTH = "profile[trading]/queue[D-1]/max-depth"
SMALL = "horizon=300ms\ngroup[desks]/count=4\nport[p1]/rate=40 Mbit/s"
_ANSWERED_MS = 600_000  # kernels may have to be compiled
_SOON_MS = 60_000


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served() as found:
        yield found


@contextmanager
def view(
    browser: Browser, server: Served, parameters: dict[str, str] | None = None, **window: Any
) -> Iterator[Watched]:
    """Open the view and wait for its whole answer."""
    from urllib.parse import urlencode

    query = urlencode({"source": "burst", "a": SMALL, "repetitions": "3", **(parameters or {})})
    with opened(browser, f"{server.access.address}#/what_if?{query}", **window) as watched:
        answered(watched.page)
        yield watched
        watched.check()


def answered(page: Page) -> None:
    """Wait until the newest question has its last answer."""
    page.wait_for_function(
        """() => {
            const { done, asked } = document.querySelector('#results')?.dataset ?? {};
            return done && done === asked;
        }""",
        timeout=_ANSWERED_MS,
    )


def field(page: Page, path: str, kind: str = "text") -> Any:
    return page.locator(f'input[data-path="{path}"][type="{kind}"]')


def settings_of(page: Page, side: str = "a") -> dict[str, str]:
    """Return the settings that the address has."""
    text = page.evaluate("side => new URLSearchParams(location.hash.split('?')[1]).get(side) ?? ''", side)
    return dict(line.split("=", 1) for line in text.split("\n") if line)


def test_a_slider_moves_by_keyboard_and_changes_answer_and_address(browser: Browser, server: Served) -> None:
    with view(browser, server) as watched:
        page = watched.page
        before = page.locator("#sentences").inner_text()
        slider = field(page, DEPTH, "range")
        slider.focus()
        for _ in range(14):
            page.keyboard.press("ArrowLeft")
        answered(page)
        value = int(field(page, DEPTH).input_value())
        assert 2 <= value < 400
        assert settings_of(page)[DEPTH] == str(value) == slider.get_attribute("aria-valuetext")
        page.locator("#busy", has_text="3 repetitions; ± is half the 95 % interval.").wait_for()
        after = page.locator("#sentences").inner_text()
        assert after != before
        assert re.search(r"D-1 loses [0-9.]+ % ± [0-9.]+ % of its messages", after)


def test_a_text_is_accepted_in_the_scenarios_spelling_and_an_error_is_shown_beside_it(
    browser: Browser, server: Served
) -> None:
    with view(browser, server) as watched:
        page = watched.page
        text = field(page, "group[desks]/round-trip")
        text.fill("0.0015s")
        text.press("Enter")
        page.wait_for_function("() => location.hash.includes('round-trip%3D1.5ms')", timeout=_SOON_MS)
        assert text.input_value() == "1.5ms"
        text.fill("soon")
        text.press("Enter")
        page.wait_for_selector('input[aria-invalid="true"]', timeout=_SOON_MS)
        error = page.locator(f"#{(text.get_attribute('aria-describedby'))}")
        assert "'soon' is not a finite duration with a unit" in error.inner_text()
        assert settings_of(page)["group[desks]/round-trip"] == "1.5ms"  # an error changes nothing
        answered(page)


def test_reload_and_a_copied_address_show_the_same(browser: Browser, server: Served) -> None:
    parameters = {"b": f"{SMALL}\n{DEPTH}=200", "side": "b", "queue": "D-1", "seed": "5"}
    with view(browser, server, parameters) as watched:
        page = watched.page
        address, shown = page.url, page.locator("#sentences").inner_text()
        assert "With B, D-1" in shown
        page.reload()
        answered(page)
        assert page.url == address
        assert page.locator("#sentences").inner_text() == shown
        assert field(page, DEPTH).input_value() == "200"
        assert "token" not in address
        other = page.context.new_page()
        other.goto(address)
        answered(other)
        assert other.locator("#sentences").inner_text() == shown


def test_two_sides_are_compared_and_each_keeps_its_settings(browser: Browser, server: Served) -> None:
    with view(browser, server) as watched:
        page = watched.page
        page.locator("#compare").press("Enter")
        answered(page)
        assert "loses the same" in page.locator("#sentences").inner_text()
        field(page, DEPTH).fill("150")
        field(page, DEPTH).press("Enter")
        page.wait_for_function("() => new URLSearchParams(location.hash.split('?')[1]).get('b').includes('=150')")
        answered(page)
        assert re.search(
            r"With B, D-1 loses [0-9.]+ percentage points ± \S+ percentage points more", page.inner_text("#sentences")
        )
        page.get_by_role("button", name="Settings of A").press("Enter")
        page.wait_for_function("value => document.querySelector('#set-0-text').value === value", arg="2000")
        assert DEPTH not in settings_of(page)
        assert settings_of(page, "b")[DEPTH] == "150"
        page.locator("#compare").press("Enter")
        answered(page)
        assert "With B" not in page.locator("#sentences").inner_text()


def test_an_overtaken_question_paints_nothing(browser: Browser, server: Served) -> None:
    """The answers of older questions are held back by the network and come last."""
    held: list[Any] = []

    def hold(route: Any) -> None:
        depth = json.loads(route.request.post_data)["sides"][0].get(DEPTH)
        if depth == "100":
            held.append(route)  # answered below, when the newer question has its answer
        else:
            route.continue_()

    with view(browser, server) as watched:
        page = watched.page
        page.route("**/api/what-if/answer", hold)
        field(page, DEPTH).fill("100")
        field(page, DEPTH).press("Enter")
        page.wait_for_function("() => location.hash.includes('max-depth%3D100')")
        while not held:
            page.wait_for_timeout(20)
        field(page, DEPTH).fill("5000")
        field(page, DEPTH).press("Enter")
        answered(page)
        shown = page.locator("#sentences").inner_text()
        assert "D-1 loses nothing" in shown
        for route in held:
            route.continue_()
        page.wait_for_timeout(500)
        assert page.locator("#sentences").inner_text() == shown


@pytest.mark.slow
def test_every_control_has_a_name_and_is_reached_by_the_keyboard(browser: Browser, server: Served) -> None:
    with view(browser, server) as watched:
        page = watched.page
        page.locator("summary", has_text="All settings").press("Enter")
        page.locator("#as-table summary").press("Enter")
        page.locator("#write").press("Enter")
        page.wait_for_selector("#written pre")
        wanted = page.evaluate(
            """() => [...document.querySelectorAll('main input, main select, main button, main summary')]
                .filter((each) => !each.disabled).length"""
        )
        reached = set()
        page.locator("#source").focus()
        for _ in range(wanted + 40):
            reached.add(page.evaluate("() => [...document.querySelectorAll('*')].indexOf(document.activeElement)"))
            page.keyboard.press("Tab")
        assert len(reached) >= wanted
        assert serious_findings(page) == []


def test_others_are_filtered_and_the_table_has_the_depth(browser: Browser, server: Served) -> None:
    with view(browser, server) as watched:
        page = watched.page
        page.locator("summary", has_text="All settings").click()
        page.locator("#filter").fill("congestion")
        choice = page.locator('select[data-path$="congestion-control"]')
        choice.select_option("cubic")
        page.wait_for_function("() => location.hash.includes('congestion-control%3Dcubic')")
        answered(page)
        page.locator("#as-table summary").click()
        rows = page.locator("#as-table tbody tr").all_inner_texts()
        assert 10 <= len(rows) <= 30
        assert rows[0].startswith("from 0 s")
        title = page.locator("#picture svg title").text_content() or ""
        assert title.startswith("Depth of D-1 over 300 ms: at most ")


def test_commands_and_files_are_written(browser: Browser, server: Served) -> None:
    with view(browser, server) as watched:
        page = watched.page
        field(page, DEPTH).fill("150")
        field(page, DEPTH).press("Enter")
        page.wait_for_function("() => location.hash.includes('max-depth%3D150')")
        answered(page)
        page.locator("#write").click()
        page.wait_for_selector("#written pre")
        command = page.locator('pre[data-form="simulate"]').inner_text()
        assert command.startswith("qsctl simulate burst --seed 1 --replications 3")
        assert f"'{DEPTH}=150'" in command
        with page.expect_download() as download:
            page.get_by_role("button", name="Save burst.xml").click()
        assert Path(download.value.path()).read_text().startswith("<?xml")


def test_a_hostile_scenario_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    text = Path("fixtures/scenarios/burst.xml").read_text(encoding="utf-8")
    hostile = "&lt;img src=x onerror=alert(1)&gt;&lt;script&gt;alert(2)&lt;/script&gt;"
    path = tmp_path / "<img src=x onerror=alert(3)>.xml"
    start, end = text.index("<description>"), text.index("</description>")
    path.write_text(text[:start] + f"<description>{hostile}\u202e" + text[end:], encoding="utf-8")
    with served(what_if=AskedSources((path,))) as server, view(browser, server, {"source": str(path)}) as watched:
        page = watched.page
        assert "<img src=x onerror=alert(1)>" in page.locator("#description").inner_text()
        assert "\\u202e" in page.locator("#description").inner_text()
        page.locator("#write").click()
        page.wait_for_selector("#written pre")
        assert page.locator("main img, main script").count() == 0


def test_an_address_with_anything_in_it_is_shown_as_what_it_is(browser: Browser, server: Served) -> None:
    parameters = {"source": "<b>nothing</b>", "a": "x=1\n=\nhorizon=300ms\n<i>=2", "seed": "-1", "repetitions": "1e9"}
    from urllib.parse import urlencode

    with opened(browser, f"{server.access.address}#/what_if?{urlencode(parameters)}") as watched:
        page = watched.page
        answered(page)
        assert page.locator("main b, main i").count() == 0
        assert page.locator("#source").input_value() == "burst"
        watched.check()


def test_the_view_fits_its_window_and_has_no_serious_finding(browser: Browser, server: Served) -> None:
    with view(browser, server, {"b": f"{SMALL}\n{DEPTH}=200", "side": "b"}) as watched:
        page = watched.page
        for width, theme in product(WIDTHS, THEMES):
            page.set_viewport_size({"width": width, "height": 844})
            set_theme(page, theme)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width, theme
            assert serious_findings(page) == [], (width, theme)
