"""Logs that agree, logs that do not, and which of two is more up to date."""

from __future__ import annotations

import pytest

from qsctl.core.high_availability._log import LastEntry, LogSnapshot
from qsctl.identity import SampleIdentity
from tests.core.high_availability.cluster import STREAM, WRITER
from tests.core.high_availability.logs import began, enqueued, log_of


def test_an_entry_has_the_epoch_of_the_last_master_before_it() -> None:
    log = log_of(began(1), enqueued(1), began(4), enqueued(2))
    assert [log.epoch_at(index) for index in range(5)] == [0, 1, 1, 4, 4]
    assert log.last == LastEntry(4, 4)


def test_a_shorter_log_of_a_later_epoch_is_more_up_to_date() -> None:
    longer, later = log_of(began(1), enqueued(1), enqueued(2)), log_of(began(1), began(2))
    assert later.last > longer.last


def test_logs_agree_where_epoch_and_index_are_the_same() -> None:
    log = log_of(began(1), enqueued(1))
    assert log.agrees(0, 0)
    assert log.agrees(2, 1)
    assert not log.agrees(2, 2)
    assert not log.agrees(3, 1)


def test_the_first_conflict_is_the_first_entry_of_another_epoch() -> None:
    log = log_of(began(1), enqueued(1), enqueued(2))
    assert log.first_conflict(2, (enqueued(1), enqueued(2)), 1) == 4
    assert log.first_conflict(2, (enqueued(1), began(3), enqueued(7)), 1) == 3
    assert log.first_conflict(4, (enqueued(3),), 1) == 4


def test_a_conflict_is_searched_behind_the_whole_epoch_but_never_in_what_is_committed() -> None:
    log = log_of(began(1), began(2), enqueued(1), enqueued(2), enqueued(3))
    assert log.last_before(9) == 5
    assert log.last_before(5) == 1
    log.commit(3)
    assert log.last_before(5) == 3


def test_a_truncated_log_forgets_the_epochs_behind_and_remembers_the_samples() -> None:
    log = log_of(began(1), enqueued(1), began(2), enqueued(2))
    log.truncate(3)
    assert log.last == LastEntry(1, 2)
    assert log.uncommitted_index(STREAM, SampleIdentity(WRITER, 1)) == 2
    assert not log.uncommitted_index(STREAM, SampleIdentity(WRITER, 2))
    assert log.was_taken_back(STREAM, SampleIdentity(WRITER, 2))
    assert not log.was_taken_back(STREAM, SampleIdentity(WRITER, 1))


def test_an_entry_that_was_taken_back_is_dead_once_a_later_epoch_is_committed() -> None:
    log = log_of(began(1), enqueued(1))
    log.truncate(2)
    log.append([enqueued(2)])
    log.commit(2)
    assert log.was_taken_back(STREAM, SampleIdentity(WRITER, 1))
    log.append([began(2)])
    log.commit(3)
    assert not log.was_taken_back(STREAM, SampleIdentity(WRITER, 1))


def test_a_committed_entry_is_never_taken_back() -> None:
    log = log_of(began(1), enqueued(1))
    log.commit(2)
    with pytest.raises(AssertionError, match="entry 2 is committed"):
        log.truncate(2)


def test_a_compacted_log_keeps_the_epochs_of_what_is_left() -> None:
    log = log_of(began(1), enqueued(1), began(2), enqueued(2), enqueued(3))
    log.commit(4)
    log.compact(4, (began(2),))
    assert (log.base.index, log.base.epoch, log.last_index, len(log)) == (4, 2, 5, 1)
    assert log.epoch_at(4) == log.epoch_at(5) == 2
    assert log.agrees(1, 9), "what is committed is the same in every log"
    with pytest.raises(LookupError, match="no entry 4"):
        log.entry(4)
    assert log.entry(5) == (2, enqueued(3))


def test_octets_of_payload_are_those_of_the_snapshot_and_of_the_entries() -> None:
    log = log_of(began(1), enqueued(1), enqueued(2), enqueued(3), enqueued(4))
    size_bytes = len(enqueued(1).payload)
    assert log.payload_bytes == 4 * size_bytes
    log.truncate(5)
    assert log.payload_bytes == 3 * size_bytes
    log.commit(3)
    log.compact(3, (began(1), enqueued(2)))
    assert log.payload_bytes == 2 * size_bytes
    log.commit(4)
    log.compact(4, (began(1),))
    assert log.payload_bytes == 0
    log.install(LogSnapshot(7, 3, (began(3), enqueued(5), enqueued(6))))
    assert log.payload_bytes == 2 * size_bytes


def test_an_installed_snapshot_takes_back_what_it_replaces() -> None:
    log = log_of(began(1), enqueued(1), enqueued(2))
    log.commit(1)
    log.install(LogSnapshot(7, 3, (began(3),)))
    assert (log.last, log.commit_index) == (LastEntry(3, 7), 7)
    assert not log.was_taken_back(STREAM, SampleIdentity(WRITER, 1)), "epoch 3 is committed"


def test_what_a_snapshot_replaced_was_taken_back() -> None:
    log = log_of(began(1), enqueued(1))
    log.install(LogSnapshot(4, 1, (began(1),)))
    assert log.was_taken_back(STREAM, SampleIdentity(WRITER, 1))
