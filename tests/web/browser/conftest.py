"""One browser for the tests of a file; skipped with the reason where there is none.

Its library runs an event loop in the thread of the tests for as long as it lasts: with it no other test of the process
can run one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.web.browser.chromium import started, why_not

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with started() as found:
        yield found
