"""Listings of recovery and error databases: messages that read back as they are printed, or one `InvalidFile`."""

from __future__ import annotations

import io

from qsctl.declared.problems import SHOWN_MAX, InvalidFile
from qsctl.dumps.groups import GroupBy, grouped
from qsctl.dumps.model import ListingForm
from qsctl.dumps.moments import DateOrder
from qsctl.dumps.read import read_messages
from qsctl.dumps.write import listing
from tests.dumps.listed import as_listed

DICTIONARY = (
    b"Created  Message Id  s e d Prio  State  Length  Source  Dest\n", b"------- ---- - - -\n", b"[0.0.1] ", b"[1.2.",
    b"16:52:14 ", b"4:52 PM ", b"22.11.2026 ", b"2026-11-22T16:52:14Z ", b"11/22/2026 ", b"Sun Nov 22 2026\n",
    b"(no date)\n", b"P D N ", b"E R Y ", b"5120 ", b" 11 ", b"1004 ", b"12.345 ", b"99999999999999999999 ", b" - ",
    b"msg: 0x1\n", b"    msgMid : ", b"    msgState : words (7)\n", b"    msgRecoveryDbState: 7\n",
    b"    message : 'MSH|\\x0d'\n",
    b"    msgTimeStartIb : 1.5 (x)\n", b"    msgFlags : 0x8002 (USERDB)\n", b"    msgUserData : \\u0010ffff\\x41\\\\\n",
    b"  Owner : x\n", b"\nTotal: 1 message\n", b"hcidbdump -r\n", b"C\n", b"l T\n", b"\t", b"\r\n", b"\n", b"\0",
    b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\\x20", b"midNULL", b" : ", b"\xc2\x85", b"\xe2\x80\xa8",
)  # fmt: skip
SHORT_COUNT = 300


def one_input(data: bytes) -> None:
    for order in DateOrder:
        _read(data, order)


def _read(data: bytes, order: DateOrder) -> None:
    try:
        messages = list(read_messages(io.BytesIO(data), "f", order=order, with_data=True))
    except InvalidFile as error:
        assert 0 < len(error.problems) <= SHOWN_MAX
        assert all(each.line <= data.count(b"\n") + 1 for each in error.problems)
        assert len(error.message) < 100_000
        assert all(line.isprintable() for line in error.message.splitlines())
        return
    assert sum(group.messages for group in grouped(messages, list(GroupBy), None)) == len(messages)
    for form in ListingForm:
        text = "".join(f"{line}\n" for line in listing(messages, form))
        assert all(line.isprintable() for line in text.split("\n"))
        back = list(read_messages(io.BytesIO(text.encode()), "printed", with_data=True))
        assert back == [as_listed(each, form) for each in messages]
