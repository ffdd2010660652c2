"""The list and the page of a queue in a real browser: by keyboard, with hostile names, at both widths and themes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from qsctl.cli.service_options import TargetOptions
from qsctl.cli.top.live import LiveSource
from qsctl.cli.top.look import Look
from qsctl.cli.top.recorded import RunSource
from qsctl.errors import NoAnswer
from qsctl.eventlog.location import location
from qsctl.web._desk import ServiceDesk
from qsctl.web._feed import PolledSource
from tests.cli.shell import Shell
from tests.web.browser.chromium import THEMES, WIDTHS, Watched, opened, serious_findings, set_theme
from tests.web.serving import MadeUpSource, Page, look_of, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[3]
HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>\u202egnp'
QUEUE = "DomainParticipant/SharedSubscriber/Orders"


def made_up(*rows: dict[str, Any]) -> PolledSource:
    return PolledSource("service", HOSTILE, MadeUpSource(lambda: look_of(*rows)), 0.1)


@contextmanager
def shown(browser: Browser, page: Page, view: str = "", **window: Any) -> Iterator[Watched]:
    with opened(browser, f"{page.access.address}{view}", **window) as watched:
        yield watched
        watched.check()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "state")
    for words in (
        ("create-queue", "Dead", "--as-dead-letter"),
        ("create-queue", "Orders", "--dead-letter", "Dead", "--max-delivery-retries", "0"),
        ("produce", "Orders", "--text", HOSTILE.replace("\u202e", ""), "--text", '{"a": "<b>"}', "--text", "three"),
        ("consume", "Orders", "--count", "1", "--reject"),
    ):
        assert shell(*words).status == 0
    return shell


@contextmanager
def service_page(tmp_path: Path, *, allow_changes: bool = False) -> Iterator[Page]:
    desk = ServiceDesk(TargetOptions(state_dir=tmp_path / "state"))
    feed = PolledSource("service", desk.title, LiveSource(desk.open, "embedded:", keeps_open=False), 0.2)
    with served(feed, desk=desk, allow_changes=allow_changes) as page:
        yield page


def wait_for_rows(page: Any, count: int) -> None:
    """Wait for the number of rows of the list; the policy of the page forbids to wait for an expression."""
    page.locator(f"tbody tr:nth-child({count})").wait_for()
    page.locator(f"tbody tr:nth-child({count + 1})").wait_for(state="detached")


def test_a_hostile_name_runs_nothing_and_is_visible(browser: Browser) -> None:
    with served(made_up({"name": HOSTILE, "depth": 1})) as page, shown(browser, page) as watched:
        cell = watched.page.locator("tbody th")
        cell.wait_for()
        assert cell.inner_text() == HOSTILE.replace("\u202e", "\\u202e")
        cell.locator("a").click()
        watched.page.locator("h1").filter(has_text="img src").wait_for()
        assert watched.page.locator("main img, main script").count() == 0


def test_the_token_leaves_the_address_and_a_reload_keeps_the_view(browser: Browser) -> None:
    rows = [{"name": f"Q{at}", "depth": at} for at in range(60)]
    with served(made_up(*rows)) as page, shown(browser, page) as watched:
        watched.page.locator("tbody tr").first.wait_for()
        assert page.access.token not in watched.page.url
        watched.page.get_by_label("Filter").fill("Q1")
        watched.page.get_by_role("button", name="Queue").click()
        wait_for_rows(watched.page, 11)
        watched.page.reload()
        wait_for_rows(watched.page, 11)
        assert watched.page.get_by_label("Filter").input_value() == "Q1"
        assert watched.page.locator("tbody th").first.inner_text() == "Q1"
        again = watched.page.context.new_page()
        again.goto(watched.page.url)
        wait_for_rows(again, 11)


def test_a_wrong_token_is_refused_in_plain_words(browser: Browser) -> None:
    with served(made_up()) as page, opened(browser, f"{page.access.origin}/?token=wrong") as watched:
        assert "token is missing or wrong" in watched.page.inner_text("main")
        assert page.context.refused["token"] >= 1


def test_another_site_reads_nothing(browser: Browser) -> None:
    """A page of another port is the same site for cookies; it must not read, nor run, nor see that it could."""
    with served(made_up()) as other, served(made_up()) as page, opened(browser, page.access.address) as watched:
        watched.page.goto(other.access.address)
        answer = watched.page.evaluate(
            "(address) => fetch(address, {credentials: 'include'}).then((r) => r.type, () => 'failed')",
            f"{page.access.origin}/api/about",
        )
        assert answer == "failed"


def test_rows_are_reached_by_keys(browser: Browser) -> None:
    rows = [{"name": f"Q{at:02d}", "depth": at} for at in range(60)]
    with served(made_up(*rows)) as page, shown(browser, page) as watched:
        keys = watched.page.keyboard
        watched.page.locator("tbody tr").first.wait_for()
        keys.press("n")
        watched.page.get_by_text("51 to 60 of 60").wait_for()
        keys.press("p")
        watched.page.get_by_text("1 to 50 of 60").wait_for()
        keys.press("/")
        keys.type("Q07")
        wait_for_rows(watched.page, 1)
        watched.page.get_by_label("Filter").evaluate("(field) => field.blur()")
        keys.press("?")
        watched.page.get_by_role("dialog").get_by_text("filter the names").wait_for()
        keys.press("Escape")
        watched.page.get_by_role("dialog").wait_for(state="detached")
        seen = []
        for _ in range(25):
            keys.press("Tab")
            seen.append(watched.page.evaluate("document.activeElement.innerText || document.activeElement.id"))
            outline = watched.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none" or watched.page.evaluate("document.activeElement === document.body"), seen[-1]
        assert "Depth" in " ".join(seen)
        assert "Q07" in seen


def test_a_row_that_moves_keeps_the_focus(browser: Browser) -> None:
    depths = {"Q0": 4, "Q1": 3, "Q2": 2, "Q3": 1}
    feed = PolledSource(
        "service",
        "made up",
        MadeUpSource(lambda: look_of(*({"name": name, "depth": depth} for name, depth in depths.items()))),
        0.1,
    )
    with served(feed) as page, shown(browser, page) as watched:
        rows = watched.page.locator("tbody tr")
        link = watched.page.get_by_role("link", name="Q3")
        link.focus()
        for change, order in (
            ({"Q3": 9}, ["Q3", "Q0", "Q1", "Q2"]),
            ({"Q3": 0}, ["Q0", "Q1", "Q2", "Q3"]),
            ({"Q0": 1, "Q1": 2, "Q2": 3, "Q3": 4}, ["Q3", "Q2", "Q1", "Q0"]),
            ({"Q3": 2.5}, ["Q2", "Q3", "Q1", "Q0"]),
        ):
            depths.update(change)
            for at, name in enumerate(order):
                rows.nth(at).filter(has_text=name).wait_for()
            assert rows.locator("th").all_inner_texts() == order
            assert watched.page.evaluate("document.activeElement.innerText") == "Q3"
        depths.pop("Q3")
        wait_for_rows(watched.page, 3)
        assert watched.page.evaluate("document.activeElement === document.body")


def test_a_source_that_vanishes_is_reported_and_returns(browser: Browser) -> None:
    state = {"is_there": True}

    def look() -> Look:
        if not state["is_there"]:
            raise NoAnswer("no service answered")
        return look_of({"name": "Orders", "depth": 7})

    feed = PolledSource("service", "made up", MadeUpSource(look), 0.1)
    with served(feed) as page, shown(browser, page) as watched:
        watched.page.get_by_text("Orders").wait_for()
        state["is_there"] = False
        watched.page.get_by_role("alert").filter(has_text="no service answered").wait_for()
        assert watched.page.locator("tbody td.number").first.inner_text() == "7"
        state["is_there"] = True
        watched.page.get_by_role("alert").wait_for(state="hidden")


def test_commands_are_disabled_with_the_reason(browser: Browser, shell: Shell, tmp_path: Path) -> None:
    with service_page(tmp_path) as page, shown(browser, page, f"#/queue?name={QUEUE}") as watched:
        flush = watched.page.get_by_role("button", name="Flush")
        flush.wait_for()
        assert flush.is_disabled()
        assert "--allow-changes" in watched.page.locator("#why-not").inner_text()


def test_samples_are_read_by_selector_and_dead_letters_counted(browser: Browser, shell: Shell, tmp_path: Path) -> None:
    with service_page(tmp_path) as page, shown(browser, page, f"#/queue?name={QUEUE}") as watched:
        watched.page.locator(".samples li").nth(1).wait_for()
        for at in range(2):
            watched.page.locator(".samples summary").nth(at).focus()
            watched.page.keyboard.press("Enter")
        assert "<b>" in watched.page.locator(".samples pre").first.inner_text()
        assert watched.page.locator(".samples b, .samples img").count() == 0
        watched.page.get_by_label("Selector").fill("a = (")
        watched.page.keyboard.press("Enter")
        watched.page.locator("#select-error").filter(has_text="selector").wait_for()
        watched.page.get_by_role("link", name="Dead").click()
        watched.page.get_by_role("row", name="MAX_RETRIES").wait_for()


def test_a_flush_is_shown_and_then_run_by_keyboard(browser: Browser, shell: Shell, tmp_path: Path) -> None:
    with (
        service_page(tmp_path, allow_changes=True) as page,
        shown(browser, page, f"#/queue?name={QUEUE}") as watched,
    ):
        watched.page.get_by_role("button", name="Flush").focus()
        watched.page.keyboard.press("Enter")
        dialog = watched.page.get_by_role("dialog")
        run = dialog.get_by_role("button", name="Flush")
        assert run.is_disabled()
        watched.page.locator("dialog .danger:enabled").wait_for()
        assert f"qsctl flush-queue {QUEUE} --yes --service embedded:" in dialog.locator(".command").inner_text()
        assert "2" in dialog.inner_text()
        assert serious_findings(watched.page) == []
        run.focus()
        watched.page.keyboard.press("Enter")
        dialog.get_by_text("Exit status 0").wait_for()
        watched.page.keyboard.press("Escape")
        watched.page.get_by_text("No samples.").wait_for()
    assert shell("get", "status", "Orders", "-o", "json").document[0]["current_message_count"] == 0


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_views_have_no_serious_findings_and_fit(
    browser: Browser, shell: Shell, tmp_path: Path, width: int, theme: str
) -> None:
    desk = ServiceDesk(TargetOptions(state_dir=tmp_path / "state"))
    feed = PolledSource("service", desk.title, LiveSource(desk.open, "embedded:", keeps_open=False), 0.2)
    netconfig = ROOT / "fixtures/netconfig/lakeside/NetConfig"
    run = RunSource(location(str(ROOT / "fixtures/recordings/monday")), 1.0)
    with (
        served(feed, desk=desk, run=run, netconfig=netconfig) as page,
        shown(browser, page, viewport={"width": width, "height": 900}) as watched,
    ):
        watched.page.locator("tbody tr").first.wait_for()
        set_theme(watched.page, theme)
        for view in ("live", "live?source=run&at=4", f"queue?name={QUEUE}", "engine", "about"):
            watched.page.evaluate("(view) => { location.hash = `#/${view}` }", view)
            watched.page.locator("main table, main .samples li, main h2").first.wait_for()
            assert serious_findings(watched.page) == [], view
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, view


def test_the_cluster_counts_what_is_wrong_and_has_no_serious_findings(browser: Browser) -> None:
    rows = [
        {"queue_name": HOSTILE, "service": "a", "role": "master", "lag_count": 0, "has_quorum": True, "epoch": 4},
        {"queue_name": HOSTILE, "service": "b", "role": "slave", "lag_count": 3, "has_quorum": False, "epoch": 4},
        {"queue_name": "", "service": "c", "role": "no answer", "reason": "no answer within 2 s"},
    ]
    with served(made_up({"name": "Orders", "depth": 1})) as page, shown(browser, page) as watched:
        found = {"rows": rows, "count": len(rows), "help": {}}
        watched.page.route("**/api/cluster", lambda route: route.fulfill(json=found))
        watched.page.evaluate("location.hash = '#/cluster'")
        wait_for_rows(watched.page, 3)
        counts = "1 replicated queue; 1 replica without a quorum; 1 service without an answer."
        assert watched.page.get_by_role("status").first.inner_text() == counts
        assert watched.page.locator("main img, main script").count() == 0
        for width, theme in product(WIDTHS, THEMES):
            watched.page.set_viewport_size({"width": width, "height": 900})
            set_theme(watched.page, theme)
            assert serious_findings(watched.page) == [], (width, theme)
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, theme


def test_a_cluster_that_answers_slowly_is_asked_one_question_at_a_time(browser: Browser) -> None:
    """Else questions to silent services pile up, and the view "Live" waits behind them."""
    with served(made_up({"name": "Orders", "depth": 1})) as page, shown(browser, page) as watched:
        waiting: list[Any] = []
        watched.page.route("**/api/cluster", lambda route: waiting.append(route))  # noqa: PLW0108 - an attribute is set on it
        watched.page.evaluate("location.hash = '#/cluster'")
        watched.page.wait_for_timeout(5_000)
        assert len(waiting) == 1
        words = {"message": "no service answered", "remedy": "Start one.", "status": 8}
        waiting.pop().fulfill(status=504, json={"error": words})
        watched.page.get_by_role("alert").get_by_text("no service answered. Start one.").wait_for()
        watched.page.wait_for_timeout(5_000)
        assert len(waiting) == 1, "it is asked again"
        waiting.pop().fulfill(json={"rows": [], "count": 0, "help": {}})
        watched.page.get_by_text("No queue is replicated.").wait_for()
        assert watched.page.get_by_role("alert").count() == 0
