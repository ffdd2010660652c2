"""Procedures, and the run of a stack of them on a message [CLOVERLEAF].

Decides: how results of one procedure reach the next, and in which order they are returned. A procedure is a function of
the message: it keeps no state that a restart would lose.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from qsctl.core.integration.dispositions import Disposition, ProcedureContext
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.message import Message
from qsctl.instant import Nanoseconds


class ProcedureMode(StrEnum):
    """The occasion on which a procedure runs."""

    START = "start"
    """Its thread starts; there is no message."""
    RUN = "run"
    TIME = "time"
    """Its thread's interval is over; there is no message."""
    SHUTDOWN = "shutdown"
    """Its thread stops; there is no message."""


class ProcedureOutput(NamedTuple):
    """One message that a procedure returns, and its disposition. None and empty mean unchanged."""

    disposition: Disposition
    payload: bytes | None = None
    destination: str = ""
    transaction_id: str = ""
    priority: int | None = None
    is_recoverable: bool = False
    """Whether it is in the recovery database from now on, even if its connection is not logged."""
    text: str = ""
    """The reason of ERROR."""


class ProcedureFailed(Exception):
    """A procedure failed; the message gives the reason."""


class Procedure(Protocol):
    """A procedure that a thread or a route detail runs on messages."""

    @property
    def name(self) -> str:
        """Return the name for error texts."""
        ...

    def run(self, mode: ProcedureMode, context: ProcedureContext, message: Message | None) -> Sequence[ProcedureOutput]:
        """Process a message; in the modes without a message the result is empty.

        Raises:
            ProcedureFailed: it fails; all that it has produced is discarded.
        """
        ...

    def takes_ns(self, message: Message) -> Nanoseconds:
        """Return the duration of its run; INFINITE_NS: it never returns."""
        ...


class StackVerdict(NamedTuple):
    """One result of a stack of procedures for one message."""

    disposition: Disposition
    message: Message
    """The message with the content from the procedures, still at its former position."""
    is_recoverable: bool
    text: str
    code: ErrorCode | None = None
    """The error code of ERROR, if it is not the usual one of the context."""


def run_stack(
    procedures: Sequence[Procedure], context: ProcedureContext, message: Message
) -> Generator[Nanoseconds, None, list[StackVerdict]]:
    """Run procedures one after the other on a message; yield the duration of each, and return the results in order.

    Only results with CONTINUE reach the next procedure, one at a time.

    Raises:
        ProcedureFailed: a procedure failed, or returned nothing at all.
    """
    if not procedures:
        return [StackVerdict(Disposition.CONTINUE, message, is_recoverable=False, text="")]
    first, rest = procedures[0], procedures[1:]
    yield first.takes_ns(message)
    outputs = first.run(ProcedureMode.RUN, context, message)
    if not outputs:
        raise ProcedureFailed(f"{first.name} returned no message and no disposition")
    verdicts: list[StackVerdict] = []
    for output in outputs:
        result = _with(message, output)
        if output.disposition is Disposition.CONTINUE:
            for verdict in (yield from run_stack(rest, context, result)):
                recoverable = verdict.is_recoverable or output.is_recoverable
                verdicts.append(verdict._replace(is_recoverable=recoverable))
        else:
            verdicts.append(StackVerdict(output.disposition, result, output.is_recoverable, output.text))
    return verdicts


def _with(message: Message, output: ProcedureOutput) -> Message:
    return replace(
        message,
        payload=message.payload if output.payload is None else output.payload,
        destination=output.destination or message.destination,
        transaction_id=output.transaction_id or message.transaction_id,
        priority=message.priority if output.priority is None else output.priority,
    )
