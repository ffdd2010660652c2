"""Files that `import` reads, JSON lines: samples that are written and read again as they are, or one `InvalidInput`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from qsctl.cli.samples.sample_files import FileFormat, read_samples
from qsctl.errors import InvalidInput, UsageError
from qsctl.instant import INFINITE_NS
from tests.fuzz.target import MEMORY

DICTIONARY = (
    b'{"payload": ', b'"payload_encoding": "base64"', b'"json"', b'"attempts": ', b'"expires_at_ns": ', b"null",
    b'"dead_letter_reason": "LIFESPAN"', b'"identity": "', b'"flags": ', b"-1", b"9" * 5000, b"[" * 3000, b"\xff",
    b"\\ud800", b'"related_reader_guid": "', b"1e999", b"NaN", b"\n", b"}", b"true",
)  # fmt: skip


def one_input(data: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        file = Path(folder) / "samples"
        file.write_bytes(data)
        try:
            found = list(read_samples(file, "f", FileFormat.JSONL, None, "DDS::String"))
        except (InvalidInput, UsageError) as error:
            assert 0 < len(error.message) < 1000
            return
    for each in found:
        assert 0 <= each.expires_at_ns <= INFINITE_NS
        assert 0 <= each.flags <= 0xFFFF
        assert len(each.payload) <= len(data)
