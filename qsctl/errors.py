"""Errors of the caller, each kind with an exit status that scripts can rely on.

Decides which exit statuses exist, their meaning to a user, and the status of each error. An error of a peer is a
refused message (`core`); an error of qsctl itself is a failed `assert`.
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
    """The check was done and its result is negative: an invalid file, a failed check, a difference."""
    USAGE = 2
    PARTLY_DONE = 3
    NOT_FOUND = 4
    DUPLICATED = 5
    """The object exists already, with the same configuration [QS 5.4.1]."""
    ALREADY_EXISTS = 6
    """The object exists already, with a different configuration [QS 5.4.1]."""
    REFUSED = 7
    NO_ANSWER = 8
    DAMAGED = 9
    INTERNAL = 70
    """A fault of qsctl itself (EX_SOFTWARE of sysexits)."""
    OUTPUT_FAILED = 74
    """Standard output could not be written (EX_IOERR of sysexits)."""
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141
    """The reader of standard output has closed it, as `head` does; the status that a shell reports for SIGPIPE."""


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
"""The meaning of each exit status for the documentation, in Markdown."""


class QsctlError(Exception):
    """Base class of the errors that are shown to the user as one message.

    Args:
        message: the fault: the object, the value found, the allowed values.
        remedy: the next action of the user, one sentence; empty when the message contains it.
    """

    exit_status: ExitStatus = ExitStatus.NO

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.context = ""
        """The service concerned, if the command chose it among several by itself; empty if the user named it."""
        self.place = ""
        """The location where no service was found, and the source of that location."""


class InvalidInput(QsctlError):
    """A file or a value is invalid."""

    exit_status = ExitStatus.NO


class UsageError(QsctlError):
    """An option or argument is not allowed for the command."""

    exit_status = ExitStatus.USAGE


class PartlyDone(QsctlError):
    """A part of the work failed after another part was done."""

    exit_status = ExitStatus.PARTLY_DONE


class NotFound(QsctlError):
    """A named object does not exist."""

    exit_status = ExitStatus.NOT_FOUND


class Refused(QsctlError):
    """The service refused the request, or does not support it."""

    exit_status = ExitStatus.REFUSED


class NotMaster(Refused):
    """The service holds a replica of the queue that is not the master, which alone obeys the command."""


class NoAnswer(QsctlError):
    """No reply arrived within the timeout."""

    exit_status = ExitStatus.NO_ANSWER


class Damaged(QsctlError):
    """Stored state cannot be read completely."""

    exit_status = ExitStatus.DAMAGED


class Interrupted(QsctlError):
    """The user interrupted the command; its output so far is readable and marked as partial."""

    exit_status = ExitStatus.INTERRUPTED


class Unavailable(QsctlError):
    """A part that the command needs, such as a Java runtime, is missing on this machine."""

    exit_status = ExitStatus.REFUSED


class OutputFailed(QsctlError):
    """Standard output cannot be written, because of a full disk or a closed descriptor."""

    exit_status = ExitStatus.OUTPUT_FAILED


class OutputClosed(QsctlError):
    """The reader of standard output has closed it; the command ends without a message."""

    exit_status = ExitStatus.OUTPUT_CLOSED


UNREADABLE: Final = (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError, OverflowError)
"""Exceptions raised when invalid octets of any source are decoded.

Text that is not UTF-8 is a ValueError, as msgspec's own errors are since 0.20; deep nesting raises a RecursionError, an
excessive size an OverflowError.
"""
