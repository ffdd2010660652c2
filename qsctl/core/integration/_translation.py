"""The processing of a message by a route detail [CLOVERLEAF].

Decides: the sequence of pre-procedures, translations and post-procedures, and the scope of each error.
`_translation_thread` decides the queues of the results, and their records.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from qsctl.core.integration.dispositions import ALLOWED, FATAL, Disposition, ProcedureContext
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.message import Message
from qsctl.core.integration.procedures import Procedure, ProcedureFailed, StackVerdict, run_stack
from qsctl.core.integration.routes import (
    ANY_TRANSACTION,
    DetailKind,
    ErrorControl,
    ErrorSeverity,
    Route,
    RouteDetail,
    Translation,
    TranslationProduced,
)
from qsctl.instant import Nanoseconds

Running: TypeAlias = Generator[Nanoseconds, None, None]


class TranslationResult(NamedTuple):
    """One message that a route detail produced."""

    message: Message
    is_sent: bool
    """Whether it is sent by SEND: to the destination in its metadata instead of those of the detail."""
    is_rerouted: bool
    is_recoverable: bool


Collect: TypeAlias = Callable[[TranslationResult], None]


class DetailFailed(Exception):
    """A failure of one route detail; the others continue."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class AllDetailsFailed(DetailFailed):
    """A failure of all route details of the message."""


class Panic(Exception):
    """A failure that ends the process; the message states the reason."""


def route_of(routes: Sequence[Route], transaction_id: str) -> Route | None:
    """Return the route of a transaction id, else that of `ANY_TRANSACTION`; None: there is neither."""
    found = {route.transaction_id: route for route in routes}
    return found.get(transaction_id) or found.get(ANY_TRANSACTION)


def run_detail(detail: RouteDetail, source: Message, collect: Collect) -> Running:
    """Run a route detail; yield the duration of each step, and pass each result to `collect`.

    Raises:
        DetailFailed: this detail fails, or all do.
        Panic: a procedure returned a disposition that ends the process.
    """
    for verdict in (yield from _run(detail.pre, source)):
        if verdict.disposition is not Disposition.CONTINUE:
            _collect(verdict, collect)
        elif detail.kind is DetailKind.TRANSLATE and detail.translations:
            yield from _translate(detail, detail.translations, verdict, collect)
        else:
            yield from _finish(detail, verdict, collect)


def _translate(detail: RouteDetail, chain: Sequence[Translation], given: StackVerdict, collect: Collect) -> Running:
    """Run the first translation of a chain, and the rest of the chain on each of its results."""
    translation, rest = chain[0], chain[1:]
    try:
        for step in translation.run(given.message):
            yield step.takes_ns
            if isinstance(step, TranslationProduced):
                made = given._replace(message=replace(given.message, payload=step.payload))
                if rest:
                    yield from _translate(detail, rest, made, collect)
                else:
                    yield from _finish(detail, made, collect)
            else:
                _raise(translation, step.severity, step.text)
    except ProcedureFailed as error:
        raise AllDetailsFailed(ErrorCode.TRANSLATION, f"{translation.name}: {error}") from error


def _raise(translation: Translation, severity: ErrorSeverity, text: str) -> None:
    """Raise the error that `xpmerror` requested; severity `action` follows the translation's error control."""
    reach = translation.error_control.value if severity is ErrorSeverity.ACTION else severity.value
    if reach == ErrorControl.SKIP:
        return
    failure = DetailFailed if reach == ErrorSeverity.CURDETAIL else AllDetailsFailed
    raise failure(ErrorCode.XPM_ERROR, f"{translation.name}: {text}")


def _finish(detail: RouteDetail, given: StackVerdict, collect: Collect) -> Running:
    """Run the post-procedures on one result."""
    for verdict in (yield from _run(detail.post, given.message)):
        recoverable = verdict.is_recoverable or given.is_recoverable
        _collect(verdict._replace(is_recoverable=recoverable), collect)


def _run(procedures: Sequence[Procedure], message: Message) -> Generator[Nanoseconds, None, list[StackVerdict]]:
    try:
        verdicts = yield from run_stack(procedures, ProcedureContext.ROUTE_DETAIL, message)
    except ProcedureFailed as error:
        raise AllDetailsFailed(ErrorCode.ROUTE_DETAIL, str(error)) from error
    for verdict in verdicts:
        disposition = verdict.disposition
        if disposition in FATAL:
            raise Panic(f"{disposition} in a route detail of message {message.mid}")
        if disposition is Disposition.ERROR:
            raise AllDetailsFailed(ErrorCode.ROUTE_DETAIL, verdict.text or "a procedure returned ERROR")
        if disposition not in ALLOWED[ProcedureContext.ROUTE_DETAIL]:
            raise AllDetailsFailed(
                ErrorCode.ROUTE_DETAIL, f"{disposition} is not allowed in {ProcedureContext.ROUTE_DETAIL.value}"
            )
    return verdicts


def _collect(verdict: StackVerdict, collect: Collect) -> None:
    disposition = verdict.disposition
    if disposition is not Disposition.KILL:
        is_sent, is_rerouted = disposition is Disposition.SEND, disposition is Disposition.REROUTE
        collect(TranslationResult(verdict.message, is_sent, is_rerouted, verdict.is_recoverable))
