"""Files of administration keys: keys, or one error that has nothing of the file in it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from qsctl.config.signing_keys import KEYS_MAX, read_keys, retire_keys, rotate_keys
from qsctl.errors import InvalidInput
from tests.fuzz.target import MEMORY

DICTIONARY = (
    b"# ",
    b"\n",
    b"\r\n",
    b"\x0b",
    b"\x85",
    b"ab" * 32,
    b"0" * 64,
    b"\xff",
    b"\xef\xbb\xbf",
    b"\0",
    b" ",
    b"0x",
)


def one_input(data: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        file = Path(folder) / "admin.key"
        file.touch(mode=0o600)
        file.write_bytes(data)
        try:
            keys = read_keys(file)
        except InvalidInput as error:
            text = f"{error.message} {error.remedy}".replace(str(file), "")
            assert not re.search(r"[0-9a-fA-F]{32}", text)
            return
        assert 1 <= len(keys) <= KEYS_MAX
        assert rotate_keys(file)[1] == keys[0]
        assert retire_keys(file) == read_keys(file)
