"""Listings of other installations parse, or each line that is not understood is named (fixtures/dumps)."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from qsctl.core.integration.message import MessageId
from qsctl.declared.problems import SHOWN_MAX, InvalidFile
from qsctl.dumps.model import ListedMessage
from qsctl.dumps.moments import DateOrder
from qsctl.dumps.read import read_messages

FIXTURES = Path(__file__).parents[2] / "fixtures" / "dumps"
ROW = "06:12:40 [0.0.311] P D N 5120 11 594 adt_in lab_out"


def read(data: bytes | str, **options: object) -> list[ListedMessage]:
    octets = data.encode() if isinstance(data, str) else data
    return list(read_messages(io.BytesIO(octets), "f", **options))  # type: ignore[arg-type]


def problems(data: bytes | str, **options: object) -> list[tuple[int, str]]:
    with pytest.raises(InvalidFile) as caught:
        read(data, **options)
    return [(each.line, each.message) for each in caught.value.problems]


def fixture(name: str) -> list[ListedMessage]:
    return read((FIXTURES / name).read_bytes(), with_data=True)


def test_a_short_listing_whose_blanks_were_lost_parses() -> None:
    messages = fixture("short.txt")
    assert [(each.mid.number, each.state, each.destination) for each in messages] == [
        (311, 11, "lab_out"), (313, 11, "lab_out"), (315, 11, "lab_out"), (322, 7, "rad_out"),
        (330, 2, ""), (331, 5, ""),
    ]  # fmt: skip
    assert (messages[4].message_class, messages[4].type, messages[4].forward) == ("E", "R", False)
    assert messages[2].priority == 6144


def test_columns_in_another_order_and_unknown_ones_keep_their_place() -> None:
    first, second, third = fixture("columns.txt")
    assert (first.owner, first.others) == ("lab_out", (("Tries", "3"), ("Ward", "ICU")))
    assert (second.size_bytes, second.others) == (12_575, (("Tries", "0"),))
    assert (third.destination, third.forward, third.others) == ("", True, (("Tries", "0"), ("Ward", "ICU")))
    assert str(third.created) == "2026-11-22T08:00:03"


def test_a_long_listing_in_two_languages_parses() -> None:
    first, second = fixture("long.txt")
    assert (str(first.created), first.destination, first.owner) == ("2026-11-22T06:12:40", "lab_out", "lab_out")
    assert ("Site", "hospital") in first.others
    assert (str(second.created), second.destination) == ("2026-12-22T07:55:10", "rad_out")


def test_an_extended_listing_parses_with_its_data() -> None:
    first, second = fixture("extended.txt")
    assert (first.state, first.source_mid, first.flags) == (101, None, 0x8002)
    assert str(first.created) == "2026-11-22T06:12:40.349Z"
    assert first.data is not None
    assert first.data.count(b"\r") == 2
    assert second.source_mid == MessageId(0, 0, 605050)
    assert second.size_bytes == len(second.data or b"")


def test_every_cut_line_is_named_in_one_run() -> None:
    assert problems((FIXTURES / "cut.txt").read_bytes()) == [
        (4, "the row is cut: it has no State"),
        (5, "this line is not understood"),
        (6, "column Type is not understood"),
        (6, "column Length is not understood"),
        (7, "column Created is not understood: hour must be in 0..23"),
        (9, "the listing is cut or was put together from parts"),
    ]


def test_rows_without_any_heading_parse_as_grep_leaves_them() -> None:
    (message,) = read(ROW)
    assert (message.source, message.destination, message.size_bytes) == ("adt_in", "lab_out", 594)


def test_prompts_titles_and_totals_of_others_are_passed_over() -> None:
    text = f"$ hcidbdump -r\nRecovery Database\n\n{ROW}\n\n1 messages found\nTotal records: 1\n"
    assert len(read(text)) == 1


def test_a_total_that_does_not_fit_means_that_lines_are_missing() -> None:
    assert problems(f"{ROW}\n\nTotal: 2 messages\n") == [(3, "the listing is cut or was put together from parts")]


def test_an_id_that_is_too_long_for_its_column_moves_the_row() -> None:
    heading = "Created  Message Id     s e d Prio  State  Length Source          Dest\n"
    rule = "-------- -------------- - - - ---- ------ ------- --------------- ----\n"
    (message,) = read(heading + rule + ROW.replace("[0.0.311]", "[123456.123456.123456789]") + "\n")
    assert (message.mid.number, message.state, message.destination) == (123456789, 11, "lab_out")


def test_a_line_in_another_encoding_is_named_and_its_encoding_can_be_given() -> None:
    data = f"{ROW}\n{ROW.replace('lab', 'kühl')}\n".encode("cp1252")
    assert problems(data) == [(2, "this is not UTF-8")]
    assert read(data, encoding="cp1252")[1].destination == "kühl_out"
    assert len(read(f"{ROW}\n{ROW}\n".encode("utf-16"))) == 2


def test_a_line_of_binary_data_is_named() -> None:
    assert problems(f"{ROW}\n".encode() + b"\x00\x01\x02\n") == [(2, "this is binary data")]


def test_dates_with_the_day_first_need_the_option() -> None:
    text = "Created Message Id State\n22/11/2026 06:12:40 [0.0.1] 11\n"
    assert "--date-order dmy" in problems(text)[0][1]
    assert str(read(text, order=DateOrder.DAY_FIRST)[0].created) == "2026-11-22T06:12:40"


def test_a_message_of_the_extended_form_that_is_cut_is_named_by_its_first_line() -> None:
    assert problems("msg: 0x1\n    msgMid            : [0.0.1]\n") == [(1, "the message is cut: it has no msgState")]
    cut = "msg: 0x1\n    msgMid            : [0.0.1]\n    msgState          : 7\n    message           : 'MSH|^\n"
    assert problems(cut) == [(4, "the data of the message is cut: it does not begin and end with a quote")]


def test_a_state_in_words_of_another_language_counts_by_its_number() -> None:
    text = "msg: 0x1\n msgMid : [0.0.1]\n msgState : Warteschlange\n msgRecoveryDbState: 7\n"
    assert read(text)[0].state == 7


def test_a_file_that_is_something_else_is_one_error() -> None:
    assert problems("") == [(0, "there is no listing in it")]
    assert problems("   \n\n") == [(0, "there is no listing in it")]
    assert len(problems("some text\n" * 1000)) == SHOWN_MAX


def test_an_empty_listing_is_one() -> None:
    assert read("Created  Message Id  s e d Prio State Length Source Dest\n") == []
    assert read("\nTotal: 0 messages\n") == []
