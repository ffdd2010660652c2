"""Which entries are at a quorum, and which of them are committed."""

from __future__ import annotations

import pytest

from qsctl.core.high_availability._progress import Progress
from tests.core.high_availability.logs import began, enqueued, log_of, members_of


def progress(matches: dict[str, int]) -> Progress:
    found = Progress(members_of(log_of(), matches), 1, 0)
    for name, index in matches.items():
        found[name].match_index = index
    return found


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [(5, (3, 1), 3), (5, (0, 0), 0), (5, (4, 4, 1, 1), 4), (5, (4, 3, 1), 3), (5, (4,), 4), (5, (), 5)],
)
def test_the_quorum_index_is_held_by_a_quorum(own: int, others: tuple[int, ...], expected: int) -> None:
    assert progress({f"r{at}": index for at, index in enumerate(others)}).quorum_index(own) == expected


def test_a_learner_counts_for_no_quorum() -> None:
    found = progress({"b": 5, "c": 5})
    found["b"].is_learner = found["c"].is_learner = True
    assert found.quorum_index(5) == 0
    found["c"].is_learner = False
    assert found.quorum_index(5) == 5


def test_an_entry_of_an_older_epoch_is_not_committed_by_counting() -> None:
    log = log_of(began(1), enqueued(1), began(4), enqueued(2))
    found = progress({"b": 2, "c": 2})
    assert found.committable(log, 4, epoch=4) == 0
    found["b"].match_index = 3
    assert found.committable(log, 4, epoch=4) == 3, "the older ones with the first of its own"


def test_a_quorum_counts_from_the_instant_at_which_enough_confirmed() -> None:
    found = progress(dict.fromkeys("bcde", 0))
    for at, peer in enumerate(found):
        peer.heard_at_ns = 10 * at
    assert found.quorum_heard_at_ns() == 20
