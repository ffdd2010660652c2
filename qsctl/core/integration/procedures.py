"""Procedures, and how a stack of them runs over a message [CLOVERLEAF].

Decides: how results of one procedure reach the next, and in which order they come out. A procedure is a function of
the message: it keeps nothing that a restart would not give back.
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
    """Why a procedure runs."""

    START = "start"
    """Its thread starts: there is no message."""
    RUN = "run"
    TIME = "time"
    """Its thread's interval is over: there is no message."""
    SHUTDOWN = "shutdown"
    """Its thread stops: there is no message."""


class ProcedureOutput(NamedTuple):
    """One message that a procedure returns, and what is to become of it. None and empty: as it was."""

    disposition: Disposition
    payload: bytes | None = None
    destination: str = ""
    transaction_id: str = ""
    priority: int | None = None
    is_recoverable: bool = False
    """From here on it is in the recovery database, whatever its connection was configured to be."""
    text: str = ""
    """Of ERROR: why."""


class ProcedureFailed(Exception):
    """A procedure failed; the message gives the reason."""


class Procedure(Protocol):
    """One procedure."""

    @property
    def name(self) -> str:
        """The name in messages."""
        ...

    def run(self, mode: ProcedureMode, context: ProcedureContext, message: Message | None) -> Sequence[ProcedureOutput]:
        """Process a message; the modes without one return nothing.

        Raises:
            ProcedureFailed: it breaks off; nothing of what it made counts.
        """
        ...

    def takes_ns(self, message: Message) -> Nanoseconds:
        """Return how long it runs; INFINITE_NS: it loops for ever."""
        ...


class StackVerdict(NamedTuple):
    """The result of a stack for one message."""

    disposition: Disposition
    message: Message
    """With the content that the procedures gave it; its place is not changed yet."""
    is_recoverable: bool
    text: str
    code: ErrorCode | None = None
    """Of ERROR: the number, where it is not the usual one."""


def run_stack(
    procedures: Sequence[Procedure], context: ProcedureContext, message: Message
) -> Generator[Nanoseconds, None, list[StackVerdict]]:
    """Run procedures one after the other over a message; yields how long each takes, returns the results in order.

    Only what continues reaches the next procedure, each result by itself.

    Raises:
        ProcedureFailed: one broke off, or returned nothing at all.
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
