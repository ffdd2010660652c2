"""How long tests wait for what must come: long enough for a machine that does forty other things at the same time.

A deadline of a test is there to end a test that would wait for ever. It measures nothing: a test that passes is not
slowed by a longer one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

PATIENCE_S = 180.0

_DEFAULT_OF_THE_WRAPPERS_S = 10.0
"""The default of `qsctl.client`; a test that expects nothing to come names a shorter time."""


def eventually(is_so: Callable[[], bool], timeout_s: float = PATIENCE_S) -> bool:
    """Look again and again until something is so, or the time is over."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def make_wrappers_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the wrappers of `qsctl.client` wait as long as tests do, but where a test says for how short a time."""
    from qsctl.client.aio._awaitable import AwaitableWrapper
    from qsctl.client.session import ClientSession

    def patient(timeout_s: float) -> float:
        return max(timeout_s, PATIENCE_S) if timeout_s >= _DEFAULT_OF_THE_WRAPPERS_S else timeout_s

    run_until, until = ClientSession.run_until, AwaitableWrapper._until

    def run_until_patiently(self: Any, is_done: Any, timeout_s: float, turn: Any) -> bool:
        return run_until(self, is_done, patient(timeout_s), turn)

    async def until_patiently(self: Any, is_done: Any, timeout_s: float) -> bool:
        return await until(self, is_done, patient(timeout_s))

    monkeypatch.setattr(ClientSession, "run_until", run_until_patiently)
    monkeypatch.setattr(AwaitableWrapper, "_until", until_patiently)
