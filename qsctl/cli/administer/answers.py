"""The results of administration commands: each service's reply with its return code [QS 5.4]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, TypeAlias

from qsctl.cli.output.declared import DeclaredRows, Heading, varied
from qsctl.cli.output.results import Block, Plain, TextBlock
from qsctl.errors import NotFound

if TYPE_CHECKING:
    from qsctl.cli.confirmation import Hit
    from qsctl.core.messages import CommandReply

OK: Final = "OK"
DRY_RUN: Final = "DRY_RUN"
SERVICE_HELP: Final = {"service": "application name of the service that answered"}
AnsweringService: TypeAlias = Annotated[str, SERVICE_HELP["service"], Heading("Service", when=varied)]


@dataclass(frozen=True)
class ServiceAnswer:
    """A row: the reply of one service to a command that changes something."""

    return_code: Annotated[
        str, "OK (gone before, too: --idempotent), DUPLICATED (created before, --idempotent) or DRY_RUN"
    ]
    resource: Annotated[str, "the resource identifier that the command was for"]
    message: Annotated[str, "text of the reply"]
    service: AnsweringService = ""


@dataclass(frozen=True)
class ServiceAnswers(DeclaredRows, rows=ServiceAnswer, items="answers"):
    """The replies of the services that a command was sent to: one, unless the target pattern matches several."""

    answers: tuple[ServiceAnswer, ...]

    document_help: ClassVar[Mapping[str, str]] = {
        "services": "where several answered: one object each (csv and jsonl: one row each); the rest is of the first",
    }

    def document(self) -> Plain:
        """Return an object: the first answer, and the others under `services`."""
        rows = self.rows()
        return {**rows[0], **({"services": rows} if len(rows) > 1 else {})}

    def blocks(self) -> list[Block]:
        """Return a line with return code and message for each reply, preceded by the service if there are several."""
        several = len(self.answers) > 1
        return [
            TextBlock(
                f"{each.service}: " * several + f"{each.return_code}: {each.message}",
                "good" if each.return_code == OK else "plain",
            )
            for each in self.answers
        ]


def answers(resource: object, replies: Iterable[CommandReply]) -> ServiceAnswers:
    """Return the replies of services that carried out the command, or had nothing left to do."""
    return ServiceAnswers(tuple(_answer(str(resource), each) for each in replies))


def trial(resource: object, hits: Sequence[Hit]) -> ServiceAnswers:
    """Return the objects that a command would affect, one row each; one row with "nothing" if there are none."""
    found = tuple(ServiceAnswer(DRY_RUN, str(resource), hit.what, hit.service) for hit in hits)
    return ServiceAnswers(found or (ServiceAnswer(DRY_RUN, str(resource), "nothing"),))


def _answer(resource: str, reply: CommandReply) -> ServiceAnswer:
    code, text = reply.reply.retcode.name, reply.reply.text
    if reply.reply.not_found:  # the object to delete; without --idempotent this was raised as an error
        code, text = OK, f"{text}: nothing to delete"
    return ServiceAnswer(code, resource, text, reply.replying_service)


def deleted(name: str, delete: Callable[[], ServiceAnswers], *, idempotent: bool) -> ServiceAnswers:
    """Delete an object; with `idempotent`, an object that does not exist counts as deleted."""
    try:
        return delete()
    except NotFound as error:
        if not idempotent:
            raise
        return ServiceAnswers((ServiceAnswer(OK, name, f"{error.message}: nothing to delete"),))
