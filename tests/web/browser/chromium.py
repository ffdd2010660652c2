"""Chromium for tests: where it is, why it is not, and pages that may reach nothing but loopback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

THEMES = ("light", "dark")
WIDTHS = (390, 1280)
"""Widths of the window of a telephone and of a desktop computer, in pixels."""

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def why_not() -> str:
    """Return why there is no browser here; empty where there is one."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return "" if program() else f"none of {', '.join(NAMES)} is installed"


def program() -> str | None:
    """Return the browser of the system: playwright's own would be downloaded."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def started() -> Iterator[Browser]:
    """Start the browser; end it with the `with` statement."""
    from playwright.sync_api import sync_playwright

    # Without its sandbox where it runs as root, as in a container: the pages are ours.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=[*flags, "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page, and what it did that it must not: requests beyond loopback, errors of scripts, refused contents."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Fail where the page did anything that it must not."""
        beyond = [
            address
            for address in self.requests
            if urlsplit(address).scheme not in {"data", "blob"}
            and urlsplit(address).hostname not in {"127.0.0.1", "::1"}
        ]
        assert not beyond, beyond
        assert not self.errors, self.errors
        assert not self.dialogs, self.dialogs


@contextmanager
def opened(browser: Browser, address: str, **context: Any) -> Iterator[Watched]:
    """Open an address in a window of its own, and watch what the page does."""
    window = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **context})
    try:
        page = window.new_page()
        watched = Watched(page)
        page.on("request", lambda request: watched.requests.append(request.url))
        page.on("pageerror", lambda error: watched.errors.append(str(error)))
        page.on("dialog", lambda dialog: (watched.dialogs.append(dialog.message), dialog.dismiss()))
        page.on(
            "console",
            lambda message: (
                watched.errors.append(message.text)
                if message.type == "error" and "Content Security Policy" in message.text
                else None
            ),
        )
        page.goto(address)
        yield watched
    finally:
        window.close()


def set_theme(page: Page, theme: str) -> None:
    """Choose a theme by the page's own button."""
    for _ in range(3):
        if page.locator("#theme").inner_text() == f"Theme: {theme}":
            return
        page.locator("#theme").click()
    raise AssertionError(theme)


def serious_findings(page: Page) -> list[str]:
    """Return what axe-core finds of the kinds serious and critical, one line each."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:200]}"
        for each in found
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"][:5]
    ]
