"""The three standard streams of the process, made so that none of their failures is a crash.

Decides the effect of a failing standard stream. Characters that the encoding lacks are escaped. A failed write to
standard output raises a `QsctlError` with its own exit status, and buffered data are dropped, so that the interpreter
reports nothing at its exit. Standard error fails silently: the exit status still reports the outcome. A descriptor that
was closed is opened again, before a file of the service gets its number.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from qsctl.errors import OutputClosed, OutputFailed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Output(io.FileIO):
    """Standard output whose failed writes raise a `QsctlError`."""

    is_broken = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write octets, as `io.RawIOBase` does.

        Raises:
            OutputClosed: the reader of the pipe has closed it.
            OutputFailed: the operating system refuses the data.
        """
        if self.is_broken:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            self.is_broken = True
            raise OutputClosed("the reader of standard output went away") from None
        except OSError as error:
            self.is_broken = True
            raise OutputFailed(
                f"standard output cannot be written: {error.strerror}",
                remedy="Send it to a file or a terminal that can be written.",
            ) from None


class _Errors(io.FileIO):
    """Standard error, which drops what cannot be written."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write octets as `io.RawIOBase` does; drop those that cannot be written."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def prepare_standard_streams() -> None:
    """Replace `sys.stdin`, `sys.stdout` and `sys.stderr` at the start of the process."""
    # In this order: the lowest free number is given, so each gets its own. Reading from the first and writing to the
    # second then fails as with a closed descriptor; what goes to the third is dropped.
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = _replaced(sys.stdout, 1, _Output)
    sys.stderr = _replaced(sys.stderr, 2, _Errors)


def _replaced(former: TextIO | None, descriptor: int, kind: Callable[..., io.FileIO]) -> TextIO:
    if former is not None:
        former.flush()
    raw = kind(descriptor, "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw, 1 << 16),
        encoding=former.encoding if former is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=raw.isatty() or descriptor == 2,
        write_through=former is not None and getattr(former, "write_through", False),
    )
