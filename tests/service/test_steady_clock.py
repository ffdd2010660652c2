"""The clock of replicated services: what passed counts, and not what somebody set [QS 7.1.2]."""

from __future__ import annotations

import time

import pytest

from qsctl.instant import HOUR_NS, SECOND_NS
from qsctl.service.run.steady_clock import steady_clock


def test_it_begins_with_the_wall_clock() -> None:
    before = time.time_ns()
    now = steady_clock()()
    assert before - SECOND_NS < now < time.time_ns() + SECOND_NS


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS])
def test_it_follows_no_change_of_the_wall_clock(monkeypatch: pytest.MonkeyPatch, step_ns: int) -> None:
    clock = steady_clock()
    before = clock()
    wall_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns + step_ns)
    assert 0 <= clock() - before < HOUR_NS // 2
