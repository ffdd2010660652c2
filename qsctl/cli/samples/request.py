"""`qsctl request`: send a request through a queue and wait for the reply [QS 2.11, 8.3]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.results import Block, Plain, Result, Row, TextBlock
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.service_options import DdsOptions, QueueArgument

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)


@dataclass(frozen=True)
class RequestReplies(Result):
    """The replies to one request, in the order of their arrival."""

    request: str
    replies: tuple[str, ...]

    field_help: ClassVar[Mapping[str, str]] = {"request": "identity of the request", "reply": "a reply's content"}
    row_fields: ClassVar[tuple[str, ...]] = ("request", "reply")

    def rows(self) -> Sequence[Row]:
        """Return a row for each reply."""
        return [{"request": self.request, "reply": reply} for reply in self.replies]

    def document(self) -> Plain:
        """Return the request's identity and its replies."""
        return {"request": self.request, "replies": list(self.replies)}

    def blocks(self) -> Sequence[Block]:
        """Return the replies alone."""
        return [TextBlock(reply) for reply in self.replies]


@COMMANDS.command(
    "request",
    examples=(
        "qsctl request Quotes@Desk --text 'EURUSD' --service dds:7",
        "qsctl request Quotes --file question.bin --replies 2 --timeout 30s --service dds:7",
    ),
)
def request(
    queue: QueueArgument,
    text: Annotated[str | None, typer.Option(help="Text of the request.", show_default="standard input")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", help="File whose content is the request; -: standard input.", show_default="standard input"
        ),
    ] = None,
    reply_topic: Annotated[str, typer.Option(help="Topic of the reply queue.", show_default="TOPICReply")] = "",
    replies: Annotated[int, typer.Option("--replies", "-n", min=1, help="Number of replies to wait for.")] = 1,
    source_guid: Annotated[
        str,
        typer.Option(
            metavar="HEX",
            help="GUID of the requester that replies are addressed to; `qsctl consume --source-guid` gets late ones.",
            show_default="a new one",
        ),
    ] = "",
    *,
    service: DdsOptions,
) -> Iterator[RequestReplies]:
    """Send a request, print the replies, then acknowledge them.

    Exits with 8 when fewer replies arrived than were waited for, after printing those that arrived, and with 7 when the
    queue rejected the request.
    """
    from qsctl.cli.location import seconds
    from qsctl.cli.samples._request_queue import printable, request_content, request_queue
    from qsctl.client import QueueRequester
    from qsctl.errors import NoAnswer
    from qsctl.identity import guid_from_hex

    wait_s = seconds(service.timeout, "--timeout")
    source = guid_from_hex(source_guid) if source_guid else None
    content = request_content(text, file)
    topic, subscriber, domain_id, settings = request_queue(queue, service.service, wait_s)
    with QueueRequester(
        topic,
        subscriber,
        domain_id,
        reply_topic=reply_topic,
        source_guid=source,
        acknowledges=False,
        settings=settings,
    ) as requester:
        requester.wait_for_queue(wait_s)
        identity = requester.send(content)
        found = requester.held_replies(identity, replies, wait_s)
        if found:
            yield RequestReplies(str(identity), tuple(printable(each.payload or b"") for each in found))
            requester.acknowledge(found)
        if len(found) < replies:
            reply_queue = f"{reply_topic or topic + 'Reply'}@{subscriber}"
            raise NoAnswer(
                f"{len(found)} of {replies} replies to {identity} arrived in {wait_s:g} s",
                remedy="Check that a replier is running, or give it more time with --timeout. A late reply waits: "
                f"qsctl consume {reply_queue} --source-guid {requester.source_guid.hex()} --service {service.service}",
            )
