"""The results of administration commands: each service's answer with its return code [QS 5.4]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TextBlock
from qsctl.errors import NotFound

if TYPE_CHECKING:
    from qsctl.cli.confirmation import Hit
    from qsctl.core.messages import CommandReply

OK: Final = "OK"
DRY_RUN: Final = "DRY_RUN"
SERVICE_HELP = {"service": "application name of the service that answered"}


@dataclass(frozen=True)
class ServiceAnswer:
    """Reply of one service to a command that changes something."""

    service: str
    return_code: str
    message: str


@dataclass(frozen=True)
class ServiceAnswers(Result):
    """The answers of the services that a command was for: one, unless the target pattern means several."""

    resource: str
    answers: tuple[ServiceAnswer, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "return_code": "OK (gone before, too: --idempotent), DUPLICATED (created before, --idempotent) or DRY_RUN",
        "resource": "the resource identifier that the command was for",
        "message": "text of the reply",
        **SERVICE_HELP,
        "services": "where several answered: one object each (csv and jsonl: one row each); the rest is of the first",
    }
    row_fields: ClassVar[tuple[str, ...]] = ("return_code", "resource", "message", "service")

    def document(self) -> Plain:
        """Return an object: the first answer, and the others under `services`."""
        rows = self.rows()
        return {**rows[0], **({"services": rows} if len(rows) > 1 else {})}

    def rows(self) -> list[Row]:
        """One row a service."""
        return [
            {
                "return_code": each.return_code,
                "resource": self.resource,
                "message": each.message,
                "service": each.service,
            }
            for each in self.answers
        ]

    def blocks(self) -> list[Block]:
        """Return the code and the message on one line; the service before it where there are several."""
        several = len(self.answers) > 1
        return [
            TextBlock(
                f"{each.service}: " * several + f"{each.return_code}: {each.message}",
                "good" if each.return_code == OK else "plain",
            )
            for each in self.answers
        ]


def answers(resource: object, replies: Iterable[CommandReply]) -> ServiceAnswers:
    """Return the answers of services that carried the command out, or found it done."""
    return ServiceAnswers(str(resource), tuple(_answer(each) for each in replies))


def trial(resource: object, hits: Sequence[Hit]) -> ServiceAnswers:
    """Return the objects that a command would affect: one answer each, or one that states that there are none."""
    found = tuple(ServiceAnswer(hit.service, DRY_RUN, hit.what) for hit in hits)
    return ServiceAnswers(str(resource), found or (ServiceAnswer("", DRY_RUN, "nothing"),))


def _answer(reply: CommandReply) -> ServiceAnswer:
    code, text = reply.reply.retcode.name, reply.reply.text
    if reply.reply.not_found:  # what was to be deleted; where that is an error it has been raised
        code, text = OK, f"{text}: nothing to delete"
    return ServiceAnswer(reply.replying_service, code, text)


def deleted(name: str, delete: Callable[[], ServiceAnswers], *, idempotent: bool) -> ServiceAnswers:
    """Delete something; with `idempotent`, a name that means nothing counts as deleted."""
    try:
        return delete()
    except NotFound as error:
        if not idempotent:
            raise
        return ServiceAnswers(name, (ServiceAnswer("", OK, f"{error.message}: nothing to delete"),))


def service_column(rows: Sequence[Row]) -> list[Column]:
    """Return the column with the service of each row, where rows of several are listed together."""
    return [Column("service", "Service")] if len({row["service"] for row in rows}) > 1 else []
