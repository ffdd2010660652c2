"""Routes, route details and translations [CLOVERLEAF]: the configuration of a message's routing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeAlias

from qsctl.core.integration.message import Message
from qsctl.core.integration.procedures import Procedure
from qsctl.instant import Nanoseconds


class ErrorSeverity(StrEnum):
    """The scope of an error that a translation raises by `xpmerror`."""

    ACTION = "action"
    """Decided by the translation's own error control."""
    CURDETAIL = "curdetail"
    """This route detail fails; the others continue."""
    ALLDETAIL = "alldetail"
    """All route details of the message fail."""


class ErrorControl(StrEnum):
    """The effect of an error of severity `action` in a translation."""

    SKIP = "skip"
    """The translation continues with its next statement."""
    CURDETAIL = "curdetail"
    ALLDETAIL = "alldetail"


class TranslationProduced(NamedTuple):
    """A message that a translation produced."""

    payload: bytes
    takes_ns: Nanoseconds = 0


class XpmError(NamedTuple):
    """An error that a translation raised."""

    severity: ErrorSeverity
    text: str
    takes_ns: Nanoseconds = 0


Step: TypeAlias = TranslationProduced | XpmError


class Translation(Protocol):
    """A translation of one message into any number of messages; like a procedure, a function without state."""

    @property
    def name(self) -> str:
        """Return the name for error texts."""
        ...

    @property
    def error_control(self) -> ErrorControl:
        """Return the effect of an error of severity `action`."""
        ...

    def run(self, message: Message) -> Iterator[Step]:
        """Yield the steps of the translation of a message.

        Raises:
            ProcedureFailed: it fails, and with it all route details.
        """
        ...


class DetailKind(StrEnum):
    """The kind of a route detail."""

    RAW = "raw"
    """Sends the message unchanged, after optional procedures."""
    TRANSLATE = "translate"
    """Runs pre-procedures, a chain of translations, and post-procedures."""
    GENERATE = "generate"
    """Runs procedures that make messages and decide whether the source continues."""


@dataclass(frozen=True, slots=True)
class RouteDetail:
    """One detail of a route. `pre` are also the procedures of a raw or generate detail."""

    destinations: tuple[str, ...] = ()
    kind: DetailKind = DetailKind.RAW
    pre: tuple[Procedure, ...] = ()
    translations: tuple[Translation, ...] = ()
    """A chain: each translates the messages that the one before produced."""
    post: tuple[Procedure, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """The route of messages of a transaction id; `ANY_TRANSACTION` is for ids without a route of their own."""

    transaction_id: str
    details: tuple[RouteDetail, ...]


ANY_TRANSACTION: Final = "*"
