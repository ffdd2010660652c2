"""Queues that are deleted and created again, against a plain model: see `service_schedules`.

`QSCTL_TEST_SCHEDULES=100000` runs so many schedules, from the seed `QSCTL_TEST_FIRST_SCHEDULE` on; a failure names the
seed and its steps.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from qsctl.core import engine as engine_module
from qsctl.core.hosted_service import HostedService
from qsctl.core.queue import restore
from tests.campaigns import trials
from tests.properties.service_schedules import run_schedules

SCHEDULES = trials("QSCTL_TEST_SCHEDULES", 200, 50_000)
FIRST = int(os.environ.get("QSCTL_TEST_FIRST_SCHEDULE", "1"))


@pytest.mark.campaign
def test_queues_of_any_history_agree_with_the_model() -> None:
    run_schedules(FIRST, SCHEDULES)


def test_model_finds_that_a_letter_of_another_incarnation_completes_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_label(now: int, queue: Any, letters: Any) -> None:
        own = (type(each)(each.queue, each.position, each.identity, each.reason, queue.incarnation) for each in letters)
        restore.complete_moves(now, queue, own)

    monkeypatch.setattr(engine_module, "complete_moves", by_label)
    with pytest.raises(AssertionError, match=r"seed \d+, step \d+"):
        run_schedules(1, 300)


def test_model_finds_that_a_queue_that_begins_anew_keeps_its_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostedService, "begin_anew", lambda _self: None)
    with pytest.raises(AssertionError, match="is another"):
        run_schedules(1, 300)
