"""The file of contexts, which every command reads: contexts, or one `InvalidInput`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from qsctl.cli.context.file import read_contexts
from qsctl.errors import InvalidInput
from tests.fuzz.target import MEMORY

DICTIONARY = (
    b"use = ", b"[contexts.", b"]", b"service = ", b'"dds:7"', b"timeout = ", b"9" * 5000, b"[" * 2000, b"{a=", b"\xff",
    b"1979-05-27", b"inf", b'"""', b"state-dir", b"\n",
)  # fmt: skip


def one_input(data: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        file = Path(folder) / "config.toml"
        file.write_bytes(data)
        former = os.environ.get("QSCTL_CONFIG")
        os.environ["QSCTL_CONFIG"] = str(file)
        try:
            read_contexts()
        except InvalidInput as error:
            assert 0 < len(error.message) < 2000
        finally:
            if former is None:
                del os.environ["QSCTL_CONFIG"]
            else:
                os.environ["QSCTL_CONFIG"] = former
