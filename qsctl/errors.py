"""The caller's mistakes, each kind with the exit status that a script can rely on.

Decides: which statuses exist, what they mean to a user, and which error carries which. A peer's mistake is a refused
message (`core`), our own is an `assert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import msgspec


class ExitStatus(IntEnum):
    """The exit status of `qsctl`. 0 is success; the others are kinds of failure."""

    DONE = 0
    NO = 1
    """The answer is no: an invalid file, a failed check, a difference found."""
    USAGE = 2
    PARTLY_DONE = 3
    NOT_FOUND = 4
    DUPLICATED = 5
    """It exists already, with the same configuration [QS 5.4.1]."""
    ALREADY_EXISTS = 6
    """It exists already, with a different configuration [QS 5.4.1]."""
    REFUSED = 7
    NO_ANSWER = 8
    DAMAGED = 9
    INTERNAL = 70
    """A fault of qsctl itself (EX_SOFTWARE of sysexits)."""
    OUTPUT_FAILED = 74
    """Standard output could not be written (EX_IOERR of sysexits)."""
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141
    """The reader of standard output went away, as `head` does: what a shell reports for SIGPIPE."""


EXIT_STATUS_MEANINGS: Final[Mapping[ExitStatus, str]] = {
    ExitStatus.DONE: "done",
    ExitStatus.NO: "the answer is no: an input that is invalid or cannot be read, a failed check, a difference found, "
    "nothing to consume or to write",
    ExitStatus.USAGE: "the command line is wrong",
    ExitStatus.PARTLY_DONE: "partly done",
    ExitStatus.NOT_FOUND: "not found: a queue, a service's resource, a file, a run",
    ExitStatus.DUPLICATED: "exists already, with the same configuration (DUPLICATED); `--idempotent` makes it 0",
    ExitStatus.ALREADY_EXISTS: "exists already, with a different configuration (ALREADY_EXISTS)",
    ExitStatus.REFUSED: "refused by the service or by the operating system, unsupported, or a part that is needed is "
    "missing",
    ExitStatus.NO_ANSWER: "no answer in time",
    ExitStatus.DAMAGED: "stored state is damaged",
    ExitStatus.INTERNAL: "a fault of qsctl itself: please report it",
    ExitStatus.OUTPUT_FAILED: "standard output could not be written, as on a full disk",
    ExitStatus.INTERRUPTED: "interrupted",
    ExitStatus.OUTPUT_CLOSED: "the reader of standard output went away, as `head` does; nothing is printed about it",
}
"""The documentation of each, in Markdown."""


class QsctlError(Exception):
    """Base of every error that is shown to the user as one message.

    Args:
        message: the fault: the object, the value found, the value allowed.
        remedy: what to do next, one sentence; empty when the message contains it.
    """

    exit_status: ExitStatus = ExitStatus.NO

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.context = ""
        """The service that it is about, where a command found that out by itself among several; empty: it was given."""
        self.place = ""
        """The place where no service was found, and the source of that place."""


class InvalidInput(QsctlError):
    """A file or value that is not what it must be."""

    exit_status = ExitStatus.NO


class UsageError(QsctlError):
    """An option or argument that the command cannot take."""

    exit_status = ExitStatus.USAGE


class PartlyDone(QsctlError):
    """Something went wrong when a part of the work was done already."""

    exit_status = ExitStatus.PARTLY_DONE


class NotFound(QsctlError):
    """The named thing does not exist."""

    exit_status = ExitStatus.NOT_FOUND


class Refused(QsctlError):
    """The service refuses, or does not support, what was asked."""

    exit_status = ExitStatus.REFUSED


class NoAnswer(QsctlError):
    """No answer came within the time allowed."""

    exit_status = ExitStatus.NO_ANSWER


class Damaged(QsctlError):
    """Stored state cannot be read whole."""

    exit_status = ExitStatus.DAMAGED


class Interrupted(QsctlError):
    """The user stopped the command; its output is readable and marked as partial."""

    exit_status = ExitStatus.INTERRUPTED


class Unavailable(QsctlError):
    """A part that the command needs, such as a Java runtime, is missing on this machine."""

    exit_status = ExitStatus.REFUSED


class OutputFailed(QsctlError):
    """Standard output cannot be written: a full disk, a closed descriptor."""

    exit_status = ExitStatus.OUTPUT_FAILED


class OutputClosed(QsctlError):
    """Nothing reads standard output any more. A command ends with it in silence."""

    exit_status = ExitStatus.OUTPUT_CLOSED


UNREADABLE: Final = (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError, OverflowError)
"""Exceptions of decoding octets that are not valid, from any source.

Text that is not UTF-8 is a ValueError, as msgspec's own errors are since 0.20; nesting ends in a RecursionError, a size
that no machine has in an OverflowError.
"""
