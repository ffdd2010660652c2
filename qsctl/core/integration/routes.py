"""Routes: which route details a message has, and what a translation is [CLOVERLEAF]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeAlias

from qsctl.core.integration.message import Message
from qsctl.core.integration.procedures import Procedure
from qsctl.instant import Nanoseconds


class ErrorSeverity(StrEnum):
    """The scope of an error that a translation raises with `xpmerror`."""

    ACTION = "action"
    """The translation's own error control decides."""
    CURDETAIL = "curdetail"
    """This route detail fails; the others go on."""
    ALLDETAIL = "alldetail"
    """All route details of the message fail."""


class ErrorControl(StrEnum):
    """The action of a translation at an error of severity `action`."""

    SKIP = "skip"
    """It goes on with its next statement."""
    CURDETAIL = "curdetail"
    ALLDETAIL = "alldetail"


class TranslationProduced(NamedTuple):
    """A translation made a message."""

    payload: bytes
    takes_ns: Nanoseconds = 0


class XpmError(NamedTuple):
    """A translation raised an error."""

    severity: ErrorSeverity
    text: str
    takes_ns: Nanoseconds = 0


Step: TypeAlias = TranslationProduced | XpmError


class Translation(Protocol):
    """Makes messages out of one. A function of the message, like a procedure."""

    @property
    def name(self) -> str:
        """The name in messages."""
        ...

    @property
    def error_control(self) -> ErrorControl:
        """The action at an error of severity `action`."""
        ...

    def run(self, message: Message) -> Iterator[Step]:
        """Translate a message, a step at a time.

        Raises:
            ProcedureFailed: it breaks off: all route details fail.
        """
        ...


class DetailKind(StrEnum):
    """The kind of a route detail."""

    RAW = "raw"
    """The message as it is, after optional procedures."""
    TRANSLATE = "translate"
    """Pre-procedures, translations one after the other, post-procedures."""
    GENERATE = "generate"
    """Procedures make messages; what of the source goes on is theirs to decide."""


@dataclass(frozen=True, slots=True)
class RouteDetail:
    """One detail of a route. `pre` are the procedures of a raw or a generate detail, too."""

    destinations: tuple[str, ...] = ()
    kind: DetailKind = DetailKind.RAW
    pre: tuple[Procedure, ...] = ()
    translations: tuple[Translation, ...] = ()
    """A chain: each gets what the one before it made."""
    post: tuple[Procedure, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """The route of messages of a transaction id; `ANY_TRANSACTION` is for those without another route."""

    transaction_id: str
    details: tuple[RouteDetail, ...]


ANY_TRANSACTION: Final = "*"
