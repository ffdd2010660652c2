"""What administration commands return: the service's answer with its return code (manual, section 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.results import Block, Result, TextBlock
from qsctl.errors import NotFound

if TYPE_CHECKING:
    from qsctl.core.admin.reply import Reply


@dataclass(frozen=True)
class Answer(Result):
    """One answer to a command that changes something."""

    return_code: str
    resource: str
    message: str

    field_help: ClassVar[Mapping[str, str]] = {
        "return_code": "OK, DUPLICATED (created before, --idempotent) or ERROR (gone before, --idempotent)",
        "resource": "the resource identifier that the command was for",
        "message": "what the service said",
    }

    def blocks(self) -> list[Block]:
        """The code and the message on one line."""
        return [TextBlock(f"{self.return_code}: {self.message}", "good" if self.return_code == "OK" else "plain")]


def answer(resource: object, reply: Reply) -> Answer:
    """The answer of a service that said OK."""
    return Answer(reply.retcode.name, str(resource), reply.text)


def created(resource: object, create: Callable[[], Reply], *, idempotent: bool) -> Answer:
    """Create something; with `idempotent`, what exists already with the same configuration counts as created."""
    from qsctl.client.admin import Duplicated

    try:
        return answer(resource, create())
    except Duplicated as error:
        if not idempotent:
            raise
        return Answer("DUPLICATED", str(resource), _without_code(error.message))


def deleted(name: str, delete: Callable[[], Answer], *, idempotent: bool) -> Answer:
    """Delete something; with `idempotent`, what is not there counts as deleted."""
    try:
        return delete()
    except NotFound as error:
        if not idempotent:
            raise
        return Answer("ERROR", name, _without_code(error.message))


def _without_code(message: str) -> str:
    """The service's text: `raise_unless_ok` put the return code before it."""
    from qsctl.core.admin.reply import ReturnCode

    code, colon, text = message.partition(": ")
    return text if colon and code in ReturnCode.__members__ else message
