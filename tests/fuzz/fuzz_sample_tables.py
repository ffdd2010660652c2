"""Files that `import` reads, Parquet: samples, or one `InvalidInput`; no more than a multiple of the file's size."""

from __future__ import annotations

import tempfile
from pathlib import Path

from qsctl.cli.samples.sample_files import EXPANDED_BYTES_MIN, FileFormat, read_samples
from qsctl.errors import InvalidInput
from tests.fuzz.target import MEMORY

DICTIONARY = (b"PAR1", b"payload", b"attempts", b"\x15\x00", b"\xff\xff\xff\xff\x07", b"\x28\xb5\x2f\xfd")
SHORT_COUNT = 200


def one_input(data: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        file = Path(folder) / "samples"
        file.write_bytes(data)
        try:
            size_bytes = sum(len(each.payload) for each in read_samples(file, "f", FileFormat.PARQUET, None, ""))
        except InvalidInput as error:
            assert error.message
            return
    assert size_bytes <= EXPANDED_BYTES_MIN
