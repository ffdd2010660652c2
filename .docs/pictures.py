"""Make the pictures of `qsctl web`: `python .docs/pictures.py [FOLDER]`, with the extra `test` and Chromium installed.

The pages are served as a user sees them, on loopback: the view "What if" of the ready scenario burst with a smaller
queue beside it, and the live list of a service of its own whose queues have clients. Each page is 1280 pixels wide and
light. FOLDER is `qsctl/docs/pictures` where it is left out.
"""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

import qsctl

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
SIZE_MAX_BYTES = 200_000
MOVED = {
    "source": "burst",
    "a": "horizon=2s",
    "b": "horizon=2s\nprofile[trading]/queue[D-1]/max-depth=500",
    "side": "b",
    "queue": "D-1",
}
WATCHED_S = 45.0
"""The lines of the live list have as many seconds."""


@contextmanager
def served(*arguments: str, cwd: Path) -> Iterator[str]:
    """Start `qsctl web` and give the address that it prints."""
    command = [sys.executable, "-m", "qsctl", "web", *arguments]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = next((match for line in process.stdout if (match := re.search(r"http://\S+", line))), None)
            if found is None:
                raise SystemExit("qsctl web printed no address")
            yield found[0]
        finally:
            process.terminate()


def save(page: Page, path: Path, height: int) -> None:
    """Write what is shown, and fail where the file is larger than a page should load."""
    page.set_viewport_size({"width": 1280, "height": height})
    page.wait_for_timeout(300)  # the chart follows the size of its place
    page.screenshot(path=path)
    size = path.stat().st_size
    if size > SIZE_MAX_BYTES:
        raise SystemExit(f"{path} has {size:,} bytes, of which {SIZE_MAX_BYTES:,} are allowed")
    sys.stdout.write(f"{path}: {size:,} bytes\n")


def what_if(page: Page, folder: Path) -> None:
    """Make the picture of two settings side by side."""
    with tempfile.TemporaryDirectory() as empty, served(cwd=Path(empty)) as address:
        page.goto(f"{address}#/what_if?{urlencode(MOVED)}")
        # The simulator may have to be compiled.
        page.locator("#busy", has_text="10 repetitions; ± is half").wait_for(timeout=600_000)
        save(page, folder / "web-what-if.png", 900)


def live(page: Page, folder: Path) -> None:
    """Make the picture of the list of queues, while clients work."""
    ended = threading.Event()
    names = ("Bookings", "Invoices", "Orders", "Payments", "Shipments")
    with tempfile.TemporaryDirectory() as place:
        with qsctl.Service.embedded(Path(place) / ".qsctl") as service:
            for name in names:
                service.create_queue(name)
        worker = threading.Thread(target=work, args=(place, names, ended))
        worker.start()
        try:
            with served(cwd=Path(place)) as address:
                page.goto(f"{address}#/live")
                page.wait_for_timeout(1000 * WATCHED_S)
                save(page, folder / "web-live.png", 520)
        finally:
            ended.set()
            worker.join()


def work(place: str, names: tuple[str, ...], ended: threading.Event) -> None:
    """Write samples to all queues at rates that come and go, and consume them somewhat later, until it is ended."""
    drawn = random.Random(1)
    began = time.monotonic()
    while not ended.is_set():
        with qsctl.Service.embedded(Path(place) / ".qsctl") as service:
            for number, name in enumerate(names):
                wave = 1.0 + math.sin((time.monotonic() - began) / (3.0 + 2.0 * number))
                written = drawn.randrange(1 + round(4 * wave))
                if written:
                    service.produce(name, [b'{"number": 7}'] * written)
                for sample in service.consume(name, count=2 + number % 2):
                    sample.acknowledge()
        ended.wait(0.4)


def main() -> None:
    """Make both pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "qsctl" / "docs" / "pictures"
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed")
    # Without its sandbox where it runs as root, as in a container: the pages are ours.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*flags, "--disable-dev-shm-usage"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce")
        live(page, folder)
        what_if(page, folder)
        browser.close()


if __name__ == "__main__":
    main()
