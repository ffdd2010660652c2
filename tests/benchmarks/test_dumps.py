"""How long a listing of a recovery database takes to read and to print: beside what splitting its lines takes."""

from __future__ import annotations

import io
from typing import Any

import pytest

from qsctl.dumps.groups import GroupBy, grouped
from qsctl.dumps.model import ListedMessage, ListingForm
from qsctl.dumps.read import read_messages
from qsctl.dumps.write import listing

ROWS = 20_000


@pytest.fixture(scope="module", params=list(ListingForm))
def listed(request: pytest.FixtureRequest) -> tuple[bytes, list[ListedMessage]]:
    rows = "".join(
        f"{at // 3600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d} [0.0.{at}] P D N 5120 {at % 11 + 1} {at % 5000} "
        f"in_{at % 20} out_{at % 30}\n"
        for at in range(ROWS)
    )
    messages = list(read_messages(io.BytesIO(rows.encode()), "rows"))
    text = "".join(f"{line}\n" for line in listing(messages, request.param))
    return text.encode(), messages


def test_splitting_lines(benchmark: Any, listed: tuple[bytes, list[ListedMessage]]) -> None:
    benchmark(lambda: [line.split() for line in listed[0].decode().splitlines()])


def test_reading_a_listing(benchmark: Any, listed: tuple[bytes, list[ListedMessage]]) -> None:
    found = benchmark(lambda: list(read_messages(io.BytesIO(listed[0]), "f")))
    assert len(found) == ROWS


def test_printing_a_listing(benchmark: Any, listed: tuple[bytes, list[ListedMessage]]) -> None:
    benchmark(lambda: sum(len(line) for line in listing(listed[1], ListingForm.SHORT)))


def test_grouping_by_state_and_thread(benchmark: Any, listed: tuple[bytes, list[ListedMessage]]) -> None:
    groups = benchmark(lambda: grouped(listed[1], [GroupBy.STATE, GroupBy.THREAD], None))
    assert sum(group.messages for group in groups) == ROWS
