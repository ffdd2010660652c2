"""The compiled model of a broker's queue against the plain one, equal to the message.

`QSCTL_TEST_RANDOM_QUEUES` is how many random scenarios are tried.
"""

from __future__ import annotations

import pytest

from tests.campaigns import trials
from tests.sim.random_queues import compare_queue, random_queue

RANDOM_QUEUES = trials("QSCTL_TEST_RANDOM_QUEUES", 30, 2000)
_PARTS = 10


@pytest.mark.slow(beyond=4)
@pytest.mark.campaign
@pytest.mark.parametrize("part", range(_PARTS))
def test_the_kernel_and_the_plain_queue_agree_to_the_message(part: int) -> None:
    for number in range(part, RANDOM_QUEUES, _PARTS):
        compare_queue(random_queue(number))
