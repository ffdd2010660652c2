"""Listings that a timer takes: their times, their instants, what is left out, and what they say of rates and ages."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pytest

from qsctl.core.integration.message import MessageId
from qsctl.declared.problems import InvalidFile
from qsctl.dumps.figures import EngineFigures, QueueKey, TakenAt, history_of
from qsctl.dumps.model import ListedMessage, ListingForm
from qsctl.dumps.moments import SECOND_NS, Moment
from qsctl.dumps.series import read_series
from qsctl.dumps.write import listing
from qsctl.errors import InvalidInput, NotFound

NOON = TakenAt.of_local(datetime(2026, 11, 22, 12, 0))
KEY = QueueKey("lab", 11, "outbound post-TPS")


def listed(number: int, *, seconds: int = 0, state: int = 11) -> ListedMessage:
    created = Moment(NOON.local.at_ns + seconds * SECOND_NS)
    return ListedMessage(
        MessageId(0, 1, number), state, created, "E", "D", False, 5120, 10, "adt", "lab", source_mid=MessageId(0, 1, 1)
    )  # fmt: skip


def write(path: Path, messages: Iterable[ListedMessage], form: ListingForm = ListingForm.LONG) -> Path:
    path.write_text("".join(f"{line}\n" for line in listing(messages, form)), encoding="utf-8")
    return path


def read(*sources: Path, last: int = 60) -> tuple[list[EngineFigures], list[str]]:
    notes: list[str] = []
    return read_series(sources, last, notes.append), notes


def test_the_time_of_a_listing_is_in_its_name_or_that_of_the_file(tmp_path: Path) -> None:
    for name in ("rec-20261122-1201.txt", "rec_2026-11-22T12.00.txt", "rec.20261122120230.txt"):
        write(tmp_path / name, [listed(1)])
    looks, _ = read(tmp_path)
    assert [each.taken.local.time_of_day for each in looks] == ["12:00:00", "12:01:00", "12:02:30"]
    write(tmp_path / "newest.txt", [listed(1)])
    for number, path in enumerate(sorted(tmp_path.iterdir())):
        os.utime(path, (1_000_000 + 60 * number, 1_000_000 + 60 * number))
    looks, _ = read(tmp_path)
    assert Path(looks[0].sources[0]).name == "newest.txt"
    assert [each.taken.utc_ns // SECOND_NS for each in looks] == [1_000_000 + 60 * number for number in range(4)]


def test_listings_of_both_databases_are_one_instant_and_half_of_one_is_left_out(tmp_path: Path) -> None:
    for minute in range(3):
        write(tmp_path / f"rec-20261122-120{minute}00.txt", [listed(number) for number in range(minute + 1)])
        write(tmp_path / f"err-20261122-120{minute}04.txt", [listed(9, state=405)] * (minute > 0))
    looks, notes = read(tmp_path)
    assert [(each.recovery_messages, each.errors) for each in looks] == [(1, {}), (2, {405: 1}), (3, {405: 1})]
    assert notes == []
    write(tmp_path / "rec-20261122-120300.txt", [])
    looks, notes = read(tmp_path)
    assert (len(looks), "belongs to it is missing" in notes[0]) == (3, True)


def test_a_listing_that_is_being_written_does_not_count_yet(tmp_path: Path) -> None:
    for minute in range(3):
        write(tmp_path / f"rec-20261122-120{minute}.txt", [listed(number) for number in range(50)])
    newest = tmp_path / "rec-20261122-1203.txt"
    whole = (tmp_path / "rec-20261122-1202.txt").read_bytes()
    for size in (0, 40, len(whole) // 2, len(whole) - len("Total: 50 messages\n") - 1, len(whole) - 12):
        newest.write_bytes(whole[:size])
        looks, notes = read(tmp_path)
        assert (len(looks), looks[-1].recovery_messages, len(notes)) == (3, 50, 1), size
    newest.write_bytes(whole)
    assert len(read(tmp_path)[0]) == 4


def test_other_files_of_a_folder_are_passed_over_or_named(tmp_path: Path) -> None:
    write(tmp_path / "rec-20261122-1200.txt", [listed(1)])
    write(tmp_path / "rec-20261122-1201.txt", [listed(1)])
    (tmp_path / "rec-20261122-1202.txt").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "rec-20261122-1203.txt.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / ".hidden-20261122-1204").write_text("x", encoding="utf-8")
    (tmp_path / "folder-20261122-1205").mkdir()
    looks, notes = read(tmp_path)
    assert (len(looks), [Path(each.split(": ")[1]).name for each in notes]) == (2, ["rec-20261122-1202.txt"])


def test_what_is_no_series_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no listings"):
        read(tmp_path)
    with pytest.raises(NotFound, match="no file"):
        read(tmp_path / "missing")
    (tmp_path / "a").write_text("x", encoding="utf-8")
    with pytest.raises(InvalidFile):
        read(tmp_path)
    (tmp_path / "b").write_text("x", encoding="utf-8")
    with pytest.raises(InvalidInput, match="none of 2 files"):
        read(tmp_path)


def test_rates_are_the_least_that_they_were_and_the_end_is_extrapolated(tmp_path: Path) -> None:
    write(tmp_path / "r-20261122-1200.txt", [listed(number) for number in range(100)])
    write(tmp_path / "r-20261122-1210.txt", [listed(number, seconds=300) for number in range(70, 130)])
    write(tmp_path / "r-20261122-1220.txt", [listed(number, seconds=600) for number in range(110, 140)])
    looks, _ = read(tmp_path)
    (trend,) = history_of(looks).trends()
    assert (trend.key, trend.messages, trend.arrived, trend.left, trend.before) == (KEY, 30, 10, 40, 60)
    assert trend.growth_per_s == pytest.approx(-30 / 600)
    assert trend.empty_after_ns == 600 * SECOND_NS
    assert trend.oldest_age_ns == 600 * SECOND_NS
    (trend,) = history_of(looks, over_ns=1200 * SECOND_NS).trends()
    assert (trend.arrived, trend.left, trend.before) == (30, 100, 100)
    (growing,) = history_of(looks[1::-1]).trends()
    assert growing.empty_after_ns is None
    (alone,) = history_of(looks[:1]).trends()
    assert (alone.arrived, alone.growth_per_s, alone.empty_after_ns) == (None, None, None)


def test_the_last_message_of_a_thread_is_that_of_any_listing(tmp_path: Path) -> None:
    write(tmp_path / "r-20261122-1200.txt", [listed(1, seconds=-60)])
    write(tmp_path / "r-20261122-1205.txt", [])
    write(tmp_path / "r-20261122-1210.txt", [])
    looks, _ = read(tmp_path)
    assert history_of(looks).last_receive_ns == {"adt": 660 * SECOND_NS}


@pytest.mark.parametrize(
    ("created", "age_s"),
    [
        (Moment(11 * 3600 * SECOND_NS, has_date=False), 3600),
        (Moment(13 * 3600 * SECOND_NS, has_date=False), 23 * 3600),
        (Moment((12 * 3600 + 240) * SECOND_NS, has_date=False), 0),
        (Moment(NOON.local.at_ns - SECOND_NS), 1),
        (Moment(NOON.local.at_ns + SECOND_NS), 0),
        (Moment(NOON.utc_ns - SECOND_NS, is_utc=True), 1),
    ],
)
def test_ages_are_counted_on_the_clock_of_what_they_are_of(created: Moment, age_s: int) -> None:
    """A clock that is four minutes ahead is no message of yesterday."""
    assert NOON.age_ns(created) == age_s * SECOND_NS


def test_no_earlier_listing_is_read_than_is_needed(tmp_path: Path) -> None:
    for minute in range(9):
        write(tmp_path / f"r-20261122-120{minute}.txt", [listed(number) for number in range(minute)])
    (tmp_path / "r-20261122-1203.txt").write_text("never read\nTotal: 1\n", encoding="utf-8")
    notes: list[str] = []
    looks = read_series([tmp_path], 60, notes.append, is_enough=lambda found: len(found) == 5)
    assert ([each.recovery_messages for each in looks], notes) == ([4, 5, 6, 7, 8], [])


def test_listings_of_other_installations_are_a_series_too(tmp_path: Path) -> None:
    """Short ones without dates, other columns, another encoding: each is an instant."""
    fixtures = Path(__file__).parents[2] / "fixtures" / "dumps"
    for minute, name in enumerate(("short", "long", "columns", "extended")):
        octets = (fixtures / f"{name}.txt").read_bytes()
        (tmp_path / f"r-20261122-120{minute}.txt").write_bytes(octets)
        utf16 = octets.decode("utf-8").encode("utf-16")
        (tmp_path / f"r-20261122-121{minute}.txt").write_bytes(utf16)
    looks, _ = read(tmp_path)
    counts = [each.recovery_messages + each.error_messages for each in looks]
    assert counts[: len(counts) // 2] == counts[len(counts) // 2 :]
    assert all(counts)


def test_a_post_translation_queue_belongs_to_its_destination_under_any_holder(tmp_path: Path) -> None:
    file = tmp_path / "r.txt"
    file.write_text(
        "12:00:00 [0.0.1] P D N 5120 7 594 adt lab\n12:00:00 [0.0.2] P D N 5120 5 594 adt\n", encoding="utf-8"
    )
    looks, _ = read(file)
    assert [(key.thread, key.state) for key in sorted(looks[0].queues)] == [("lab", 7), ("translation", 5)]
