"""Frames of up to 64 samples and answers for ranges of numbers, against a plain model: see `frame_schedules`.

`QSCTL_TEST_FRAME_SCHEDULES=100000` runs this number of schedules, from the seed `QSCTL_TEST_FIRST_FRAME_SCHEDULE` on; a
failure names the seed and its steps.
"""

from __future__ import annotations

import os
import re

import pytest

from qsctl.core.queue._delivery_groups import DeliveryGroup
from qsctl.core.queue._lifespan import Lifespans
from tests.campaigns import trials
from tests.properties.frame_schedules import run_schedules

SCHEDULES = trials("QSCTL_TEST_FRAME_SCHEDULES", 50, 100_000)
FIRST = int(os.environ.get("QSCTL_TEST_FIRST_FRAME_SCHEDULE", "1"))


def find_planted_error(first: int, count: int) -> None:
    """Demand that one of these schedules differs from the model."""
    try:
        run_schedules(first, count)
    except AssertionError as found:
        assert re.search(r"seed \d+, step \d+", str(found))
        return
    pytest.fail(
        f"none of {count} schedules from seed {first} on finds the planted error; if their draws have changed, search "
        "some hundred further seeds for one that does, and begin a little before it"
    )


@pytest.mark.campaign
def test_frames_and_ranges_agree_with_the_model() -> None:
    run_schedules(FIRST, SCHEDULES)


def test_model_finds_that_a_sweep_of_a_group_loses_a_waiting_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    drop = DeliveryGroup.drop

    def lose(group: DeliveryGroup) -> None:
        length = len(group._fresh)
        drop(group)
        if len(group._fresh) < length and group._fresh:
            group._fresh.pop()

    monkeypatch.setattr(DeliveryGroup, "drop", lose)
    find_planted_error(381, 120)


def test_model_finds_that_a_sweep_of_lifespans_loses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    leave = Lifespans.leave

    def lose(lifespans: Lifespans, count: int = 1) -> None:
        length = len(lifespans._row)
        leave(lifespans, count)
        if len(lifespans._row) < length:
            lifespans._row.clear()

    monkeypatch.setattr(Lifespans, "leave", lose)
    find_planted_error(1221, 30)
