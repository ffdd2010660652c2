"""Files of any size and content take the memory of a line, and end with an error."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from qsctl.declared.problems import InvalidFile
from qsctl.dumps._extended_block import MOST_OTHERS
from qsctl.dumps.groups import GroupBy, grouped
from qsctl.dumps.lines import LONGEST_LINE_BYTES
from qsctl.dumps.read import read_messages

MEGABYTE = 1 << 20


class Endless(io.RawIOBase):
    """The same piece again and again, up to so many octets; counts what was read."""

    def __init__(self, piece: bytes, size_bytes: int) -> None:
        self._block = piece * (131_072 // len(piece) + 1)
        self._period = len(piece)
        self._left = size_bytes
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "nothing asks for all of it"
        at = self.read_bytes % self._period
        data = self._block[at : at + min(size, self._left)]
        self.read_bytes += len(data)
        self._left -= len(data)
        return data


def peak_bytes(stream: io.RawIOBase) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidFile):
            for _ in read_messages(stream, "f"):  # type: ignore[arg-type]
                pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("piece", [b"a", b"\0", b"\xff\xfe\xfd", b"[0.0.1] ", b"msgMid : "], ids=repr)
def test_a_line_without_end_takes_no_more_than_the_longest_line(piece: bytes) -> None:
    stream = Endless(piece, 100 * MEGABYTE)
    assert peak_bytes(stream) < 6 * LONGEST_LINE_BYTES
    assert stream.read_bytes <= 2 * LONGEST_LINE_BYTES


@pytest.mark.parametrize("piece", [b"\0\n", b"nonsense\n", b"[0.0.1] x\n", b"msg: 0x1\n", b"C\n"], ids=repr)
def test_a_file_of_lines_that_are_not_understood_ends_early(piece: bytes) -> None:
    stream = Endless(piece, 100 * MEGABYTE)
    assert peak_bytes(stream) < 2 * MEGABYTE
    assert stream.read_bytes <= MEGABYTE


def test_a_message_with_lines_without_end_is_refused_and_forgotten() -> None:
    lines = b"msg: 0x1\n" + b"".join(b"    msgX%d : y\n" % number for number in range(MOST_OTHERS + 5))
    with pytest.raises(InvalidFile, match="too many lines that are not known"):
        list(read_messages(io.BytesIO(lines), "f"))


def test_groups_take_memory_by_their_number() -> None:
    row = b"06:12:40 [0.0.311] P D N 5120 11 594 adt_in lab_out\n"
    tracemalloc.start()
    try:
        messages = read_messages(Endless(row, 5_000 * len(row)), "f")  # type: ignore[arg-type]
        (group,) = grouped(messages, [GroupBy.STATE], None)
        assert tracemalloc.get_traced_memory()[1] < MEGABYTE // 2
    finally:
        tracemalloc.stop()
    assert group.messages == 5_000


def test_a_run_of_dashes_or_brackets_costs_no_more_than_its_length() -> None:
    for line in (b"-" * MEGABYTE, b"[" * MEGABYTE, b"1.1." * (MEGABYTE // 4), b"a : " * (MEGABYTE // 4)):
        with pytest.raises(InvalidFile):
            list(read_messages(io.BytesIO(line + b"\n"), "f"))
