"""Files of metadata and of messages for a resend: entries that are whole, or one error that names lines."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from qsctl.cli.engine._message_files import Framing, read_metadata, split_messages
from qsctl.errors import InvalidInput
from tests.fuzz.target import MEMORY

DICTIONARY = (
    b"{MID {{DOMAIN 0} {HUB 1} {NUM 5}}} ", b"{MID 0.1.5} ", b"{PRIORITY 6000} ", b"{DESTCONN lab} ",
    b"{USERDATA {a b}} ", b"{SOURCECONN adt} ", b"{TRXID A01}", b"{{", b"}}", b"\\{", b"\\u00e9", b'"', b"\n", b"\r\n",
    b"0000000004abcd", b"9999999999", b"\xff", b"\xef\xbb\xbf", b"\0", b"[0.1.5]", b"{}", b"\\",
)  # fmt: skip
SHORT_COUNT = 300
_FOLDER = tempfile.TemporaryDirectory(dir=MEMORY)


def one_input(data: bytes) -> None:
    path = Path(_FOLDER.name) / "x.meta"
    path.write_bytes(data)
    try:
        found = read_metadata(path)
    except InvalidInput as error:
        assert len(error.message) < 100_000
    else:
        assert len({each.mid for each in found}) == len(found) > 0
        assert all(1 <= each.line <= data.count(b"\n") + 1 for each in found)
        assert all(each.edit.priority is None or 0 <= each.edit.priority <= 65_535 for each in found)
    for framing in Framing:
        with suppress(InvalidInput):
            messages = split_messages(data, framing, "x")
            assert all(messages)
            assert sum(map(len, messages)) <= len(data)
