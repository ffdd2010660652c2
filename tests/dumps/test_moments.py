"""Dates as other locales write them: each is understood, or said not to be."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.dumps.moments import DateOrder, Moment, epoch_text, from_epoch, parse_moment


def at(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 10**9  # type: ignore[arg-type, misc]


EVENING = at(2026, 11, 22, 16, 52, 14)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-22 16:52:14",
        "2026-11-22T16:52:14",
        "2026/11/22 16:52:14",
        "11/22/2026 16:52:14",
        "11/22/26 4:52:14 PM",
        "11-22-2026 04:52:14pm",
        "22.11.2026 16:52:14",
        "22. 11. 2026 16:52:14",
        "22.11.26, 16:52:14",
        "Sun Nov 22 16:52:14 2026",
        "Sun Nov 22 16:52:14 CET 2026",
        "22 Nov 2026 16:52:14",
        "So 22. Nov. 2026 16:52:14",
        "Sonntag, 22. November 2026 16:52:14",
        "dim. 22 nov. 2026 16:52:14",
        "dom 22 de nov de 2026 16:52:14",
        "zo 22 nov. 2026 16:52:14",
        "2026年11月22日 16:52:14",
    ],
)
def test_a_local_date_and_time_are_understood(text: str) -> None:
    assert parse_moment(text) == Moment(EVENING)


@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("mar. 6 janv. 2026", 1), ("Di 3 Feb 2026", 2), ("mar 3 mar 2026", 3), ("3 März 2026", 3), ("5 abr 2026", 4),
        ("5 maj 2026", 5), ("vr 5 juin 2026", 6), ("5 juil. 2026", 7), ("5 août 2026", 8), ("5 set 2026", 9),
        ("5 Okt 2026", 10), ("5 desember 2026", 12), ("5 Dez. 2026", 12), ("5 gen 2026", 1), ("5 giu 2026", 6),
    ],
)  # fmt: skip
def test_a_month_is_known_by_its_name(text: str, month: int) -> None:
    day = parse_moment(text).day
    assert day is not None
    assert day.month == month


def test_an_offset_makes_a_time_utc() -> None:
    for text in ("2026-11-22T17:52:14+01:00", "2026-11-22 11:52:14 -0500", "2026-11-22T16:52:14Z"):
        assert parse_moment(text) == Moment(EVENING, is_utc=True)


def test_a_time_alone_has_no_date() -> None:
    assert parse_moment("16:52:14") == Moment(EVENING % (86_400 * 10**9), has_date=False)
    assert str(parse_moment("16:52:14.25")) == "16:52:14.25"


def test_the_order_of_date_numbers_is_the_users_and_is_never_swapped() -> None:
    assert parse_moment("04/05/2026").day == parse_moment("05/04/2026", DateOrder.DAY_FIRST).day
    with pytest.raises(ValueError, match="--date-order dmy"):
        parse_moment("22/11/2026")
    with pytest.raises(ValueError, match="--date-order mdy"):
        parse_moment("11/22/2026", DateOrder.DAY_FIRST)


@pytest.mark.parametrize(
    "text",
    [
        "", "16", "25:00:00", "16:61:00", "2026-02-30", "0000-01-01", "Nov 22", "22 listopada 2026", "13:00 PM",
        "16:52:14+01:00", "2026-11-22T16:52:14+99:00", "22.13.2026", "22 Dec 0026", "1970-01-01T00:30+01:00",
        "9999-12-31T23:30-01:00", "nonsense", "99999999999999", "1:2:3",
    ],
)  # fmt: skip
def test_a_text_that_is_not_a_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_moment(text)


@given(st.text(max_size=30))
def test_no_text_does_more_than_raise(text: str) -> None:
    for order in DateOrder:
        try:
            parse_moment(text, order)
        except ValueError:
            continue


@given(st.integers(0, 253_402_300_799 * 10**9))
def test_seconds_since_1970_are_exact(at_ns: int) -> None:
    moment = Moment(at_ns, is_utc=True)
    assert from_epoch(epoch_text(moment).partition(" ")[0]) == moment
    assert parse_moment(str(moment)) == moment
