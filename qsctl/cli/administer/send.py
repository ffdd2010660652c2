"""`qsctl send`: send an administration command in its raw form [QS 5.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli.administer.answers import SERVICE_HELP
from qsctl.cli.command import Commands
from qsctl.cli.output.results import Block, ListResult, Row, TextBlock, plain
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import ServiceOptions
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.cli.administer.snippets import SnippetPlace
    from qsctl.core.messages import CommandReply

COMMANDS: Final = Commands(panel=SERVICE_PANEL)


@dataclass(frozen=True)
class Replies(ListResult):
    """All replies to a command, whatever their return codes."""

    replies: tuple[CommandReply, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "return_code": "OK, ANNOUNCEMENT, ERROR, UNSUPPORTED, ALREADY_EXISTS or DUPLICATED",
        "string_body": "text of the reply",
        "body": "status, data or message, as in `qsctl get`, in the service's own structure",
        "intermediate": "whether more replies to the same command follow",
        **SERVICE_HELP,
    }
    row_fields: ClassVar[tuple[str, ...]] = tuple(field_help)

    @property
    def exit_status(self) -> ExitStatus:
        """Return the exit status for the first reply that is not OK; DONE if all are."""
        from qsctl.client.administration import error_of

        errors = (error_of(each.reply) for each in self.replies)
        return next((error.exit_status for error in errors if error is not None), ExitStatus.DONE)

    def rows(self) -> Sequence[Row]:
        """Return one row per reply."""
        return [
            {
                "return_code": each.reply.retcode.name,
                "string_body": each.reply.text,
                "body": plain(each.reply.body),
                "intermediate": each.intermediate,
                "service": each.replying_service,
            }
            for each in self.replies
        ]

    def blocks(self) -> Sequence[Block]:
        """Return a line for each reply, preceded by the service if there are several, and its body as JSON."""
        import json

        several = len({each.replying_service for each in self.replies}) > 1
        blocks: list[Block] = []
        for each in self.replies:
            code, text = each.reply.retcode.name, each.reply.text
            line = f"{each.replying_service}: " * several + (f"{code}: {text}" if text else code)
            blocks.append(TextBlock(line, "good" if code == "OK" else "bad"))
            if each.reply.body is not None:
                blocks.append(TextBlock(json.dumps(plain(each.reply.body), ensure_ascii=False, indent=2)))
        return blocks


@COMMANDS.command(
    "send",
    examples=(
        "qsctl send GET '*' /data",
        "qsctl send DELETE MyService /domain_participant/P/shared_subscriber/S/shared_reader_queue/Q",
        "qsctl send GET MyService /domain_participant/P/shared_subscriber/S/shared_reader_queue/Q/message "
        "'@sample_queue_status = SENT_MESSAGE_STATUS'",
    ),
)
def send(
    action: Annotated[
        str, typer.Argument(help="Action of the command: CREATE, DELETE, GET or SHUTDOWN.", show_default=False)
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="SERVICE",
            help="Application name of the service, or a POSIX pattern such as '*'.",
            show_default=False,
        ),
    ],
    resource: Annotated[
        str,
        typer.Argument(
            metavar="[RESOURCE]", help="Resource identifier, as in /data; SHUTDOWN has none.", show_default=False
        ),
    ] = "",
    body: Annotated[
        str, typer.Argument(help='Body of the command: XML as str://"<…>", or a sample selector.', show_default=False)
    ] = "",
    *,
    service: ServiceOptions,
) -> Replies:
    """Send a command in its raw form and show every reply.

    Exits with the status of the first reply that is not OK: 4 not found, 5 DUPLICATED, 6 ALREADY_EXISTS, 7 any other
    ERROR or UNSUPPORTED.
    """
    from qsctl.cli.administer.snippets import Snippet, checked_selector, queue_of_xml, subscriber_of_xml, surroundings
    from qsctl.core.admin.command import CommandAction, FlushQueue, GetMessages
    from qsctl.core.admin.request import command_of
    from qsctl.resource import parse_resource

    with service.open(target) as administration:
        sent = None
        if action.strip().upper() == CommandAction.CREATE:
            sent = administration.create_from_body(parse_resource(resource), body)
        elif action.strip().upper() == CommandAction.UPDATE:
            sent = administration.update_from_body(parse_resource(resource), body)
        if sent is not None:
            return Replies(tuple(sent))

        def place() -> SnippetPlace:
            return surroundings(administration.connection, parse_resource(resource))

        request = command_of(
            action,
            resource,
            body,
            read_queue=lambda xml: queue_of_xml(Snippet(xml, "BODY"), place()),
            read_subscriber=lambda xml: subscriber_of_xml(Snippet(xml, "BODY"), place()),
        )
        if isinstance(request, FlushQueue | GetMessages):
            checked_selector(request.selector)
        return Replies(tuple(administration.send(request)))
